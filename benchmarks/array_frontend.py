"""The array examples on bn and on NumPy: seconds per step and their ratio, one JSON line per case.

    python benchmarks/array_frontend.py [--workers 2] [--repeats 5] [--cases cfd,jacobi,cg,swe]

Ratios above 1 mean that bn is faster. Runs of the two alternate and the least time of each counts, so that a loaded
machine disturbs both alike.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import burnish.runtime.array as bn
from burnish import runtime as rt

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def cfd(n: int, steps: int) -> Callable[[Any], Any]:
    module = example("cfd")
    channel = module.Channel(nx=n, ny=n, dt=1e-4)

    def run(xp: Any) -> Any:
        module.bn = xp
        return module.simulate(channel, module.disturbed(channel), steps)[0]

    return run


def jacobi(n: int, steps: int) -> Callable[[Any], Any]:
    module = example("jacobi")
    rng = np.random.default_rng(0)
    matrix, b = rng.random((n, n)), rng.random(n)
    d = 1.25 * matrix.sum(axis=1)

    def run(xp: Any) -> Any:
        module.bn = xp
        return module.iterate(xp.asarray(matrix), xp.asarray(d), xp.asarray(b), steps)

    return run


def cg(n: int, steps: int) -> Callable[[Any], Any]:
    module = example("cg")
    b = np.random.default_rng(0).random((n, n))

    def run(xp: Any) -> Any:
        module.bn = xp
        return module.solve(xp.asarray(b), 0.0, steps, check_every=10)[0]

    return run


def swe(n: int, steps: int) -> Callable[[Any], Any]:
    module = example("shallow_water")

    def run(xp: Any) -> Any:
        module.bn = xp
        return module.simulate(module.drop(n), steps, 1.0 / n, 0.4 / n)[0]

    return run


CASES: dict[str, tuple[Callable[[int, int], Callable[[Any], Any]], list[tuple[int, int]]]] = {
    "cfd": (cfd, [(64, 100), (128, 100), (512, 10)]),
    "jacobi": (jacobi, [(200, 400), (1000, 100)]),
    "cg": (cg, [(64, 400), (256, 100)]),
    "swe": (swe, [(64, 50), (128, 50), (512, 5)]),
}


def timed(run: Callable[[Any], Any], xp: Any) -> float:
    start = time.perf_counter()
    np.asarray(run(xp))
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cases", default=",".join(CASES))
    options = parser.parse_args()
    for name in options.cases.split(","):
        make, sizes = CASES[name]
        for n, steps in sizes:
            run = make(n, steps)
            rt.start(executor="threads", workers=options.workers)
            times = {"bn": [timed(run, bn)], "numpy": [timed(run, np)]}
            launches = rt.stats()["launches"]
            for _ in range(options.repeats):
                times["bn"].append(timed(run, bn))
                times["numpy"].append(timed(run, np))
            stats = rt.stats()
            ours, numpys = min(times["bn"]), min(times["numpy"])
            print(
                json.dumps(
                    {
                        "case": name,
                        "n": n,
                        "steps": steps,
                        "workers": options.workers,
                        "bn_us_per_step": round(ours / steps * 1e6, 1),
                        "numpy_us_per_step": round(numpys / steps * 1e6, 1),
                        "ratio": round(numpys / ours, 3),
                        "launches_per_step": round(launches / steps, 1),
                        "replayed": round(stats["replayed"] / stats["launches"], 3),
                        "traces": [t["length"] for t in rt.traces() if t["replays"] > 5],
                    }
                ),
                flush=True,
            )
            rt.stop()


if __name__ == "__main__":
    main()
