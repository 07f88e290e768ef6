"""Kill workers of the example programs at random times; every run must end with the bits of the sequential run.

    python benchmarks/runtime_kill.py --kills 20

One JSON line per trial: program, kills, seconds, seconds without kills, equal.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import threading
import time

import psutil

from burnish import runtime as rt
from burnish.cli.tour.runtime import Program, programs


def workers() -> list[int]:
    return [c.pid for c in psutil.Process().children() if c.status() != psutil.STATUS_ZOMBIE]


def trial(program: Program, expected: list[bytes], rng: random.Random) -> dict[str, object]:
    kills: list[int] = []
    stop = threading.Event()

    def killer() -> None:
        while not stop.wait(rng.uniform(0.02, 0.3)):
            alive = workers()
            if alive:
                kills.append(rng.choice(alive))
                os.kill(kills[-1], signal.SIGKILL)

    with rt.start(executor="processes", workers=2, recovery="retry"):
        thread = threading.Thread(target=killer)
        thread.start()
        start = time.perf_counter()
        runs = 0
        equal = True
        try:
            while not kills or not runs:
                equal &= [a.tobytes() for a in program.run()] == expected
                runs += 1
        finally:
            stop.set()
            thread.join()
        seconds = (time.perf_counter() - start) / runs
    return {"program": program.name, "kills": len(kills), "runs": runs, "seconds": seconds, "equal": equal}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20, help="at least so many kills in all")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    chosen = programs()
    expected = {}
    for program in chosen:
        with rt.start(executor="serial"):
            expected[program.name] = [a.tobytes() for a in program.run()]
    kills, all_equal = 0, True
    while kills < options.kills:
        program = rng.choice(chosen)
        row = trial(program, expected[program.name], rng)
        kills += int(str(row["kills"]))
        all_equal &= bool(row["equal"])
        print(json.dumps(row), flush=True)
    print(json.dumps({"kills": kills, "all_equal": all_equal}))
    return 0 if all_equal else 1


if __name__ == "__main__":
    sys.exit(main())
