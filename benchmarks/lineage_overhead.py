"""What the lineage log costs a program of 1 ms tasks: CPU time of the whole process with and without the log.

    python benchmarks/lineage_overhead.py [--tasks N] [--dir DIR]

Variants: a log that survives power loss (``host``) or process death (``process``), with payloads made natively (as the
launch path does) or from Python dataclasses. Rounds of all variants alternate; the minimum of each counts. One JSON line.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from burnish.runtime.lineage import DirectoryStore, LineageLog
from burnish.runtime.lineage.records import Argument, Kind, Launch, encode

LAUNCH = Launch(37, (1024,), tuple(Argument(1003 + i, (), i % 3, 31) for i in range(4)), (1e-7, 10_000))
PAYLOAD = encode(LAUNCH)


def cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def run(tasks: int, work: np.ndarray, rounds: int, step: Callable[[], object]) -> float:
    before = cpu()
    for _ in range(tasks):
        step()
        for _ in range(rounds):
            np.sqrt(work, out=work)
    return (cpu() - before) / tasks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--dir", default=".")
    args = parser.parse_args()
    work = np.random.default_rng(0).random(20_000)
    rounds = max(1, round(20 * 1e-3 / run(20, work, 20, lambda: None)))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=args.dir)))
        logs = {
            d: stack.enter_context(LineageLog(DirectoryStore(folder / d, durability=d))) for d in ("host", "process")
        }
        steps: dict[str, Callable[[], object]] = {"none": lambda: None}
        for name, log in logs.items():
            steps[f"{name}, native payload"] = lambda log=log: log.native.append(Kind.LAUNCH, 0, PAYLOAD)
            steps[f"{name}, dataclass"] = lambda log=log: log.append(Kind.LAUNCH, LAUNCH)
        best = dict.fromkeys(steps, float("inf"))
        for _ in range(9):
            for name, step in steps.items():
                best[name] = min(best[name], run(args.tasks, work, rounds, step))
    line = {
        "benchmark": "lineage_overhead",
        "task_ms": best["none"] * 1e3,
        "ratio": {name: value / best["none"] for name, value in best.items() if name != "none"},
        "bytes_per_launch": len(PAYLOAD) + 24,
    }
    print(json.dumps(line))


if __name__ == "__main__":
    main()
