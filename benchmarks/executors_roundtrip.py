"""Cost of a Python-bodied task in a worker process: CPU time of driver and worker together, per task.

    python benchmarks/executors_roundtrip.py [--tasks N] [--batch B] [--spin NANOSECONDS]

The task has four array arguments of 1000 doubles and one scalar, an empty body, and no result. One JSON line; the
peer measured in the same run is ``concurrent.futures.ProcessPoolExecutor`` with the same arrays passed by pickle.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import psutil

from burnish.runtime.executors import Pool, message, native


def body(a, b, c, d, w):
    return None


def cpu(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def own_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measure_burnish(tasks: int, batch: int, spin_ns: int) -> dict[str, float]:
    with Pool(1, spin_ns=spin_ns) as pool:
        worker, function = pool[0], pool.publish(message.pack_function(body, "body"))
        arrays = [native.array_desc(pool.arena.alloc(8000), "<f8", 8, [1000], [8], i > 1) for i in range(4)]
        request = native.request(message.pack)
        for _ in range(batch):
            request.task(5, False)
            request.object(function)
            for array in arrays:
                request.array(array)
            request.value(0.5)
        data = request.finish()
        before, start = own_cpu() + cpu(worker.pid), time.perf_counter()
        for _ in range(tasks // batch):
            worker.channel.send(data, worker.pidfd)
            worker.channel.wait(worker.pidfd)
        wall = time.perf_counter() - start
        used = own_cpu() + cpu(worker.pid) - before
    return {"cpu_us": used / tasks * 1e6, "wall_us": wall / tasks * 1e6}


def measure_futures(tasks: int) -> dict[str, float]:
    arrays = [np.zeros(1000) for _ in range(4)]
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        pool.submit(body, *arrays, 0.5).result()
        (pid,) = pool._processes
        before, start = own_cpu() + cpu(pid), time.perf_counter()
        for _ in range(tasks):
            pool.submit(body, *arrays, 0.5).result()
        wall = time.perf_counter() - start
        used = own_cpu() + cpu(pid) - before
    return {"cpu_us": used / tasks * 1e6, "wall_us": wall / tasks * 1e6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=20_000)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--spin", type=int, default=0)
    args = parser.parse_args()
    ours = min((measure_burnish(args.tasks, args.batch, args.spin) for _ in range(5)), key=lambda m: m["cpu_us"])
    peer = min((measure_futures(args.tasks // 10) for _ in range(3)), key=lambda m: m["cpu_us"])
    line = {
        "benchmark": "executors_roundtrip",
        "batch": args.batch,
        "spin_ns": args.spin,
        "burnish": ours,
        "concurrent.futures": peer,
        "ratio": peer["cpu_us"] / ours["cpu_us"],
    }
    print(json.dumps(line))


if __name__ == "__main__":
    main()
