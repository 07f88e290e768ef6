"""The systems that can execute a task graph: one module each, imported when used."""

from __future__ import annotations

import difflib
import importlib
from typing import cast

from burnish.taskbench.errors import GraphError
from burnish.taskbench.systems.base import Outputs, System

__all__ = ["SYSTEMS", "Outputs", "System", "load"]

#: Name -> (module, class, one line).
SYSTEMS: dict[str, tuple[str, str, str]] = {
    "burnish": ("burnish", "Burnish", "ours: threads, native bodies, index launches, auto-traced"),
    "burnish_untraced": ("burnish", "BurnishUntraced", "ours, untraced"),
    "burnish_manual": ("burnish", "BurnishManual", "ours, traced by hand"),
    "burnish_single": ("burnish", "BurnishSingle", "ours, one launch per task, auto-traced"),
    "burnish_single_untraced": ("burnish", "BurnishSingleUntraced", "ours, one launch per task, untraced"),
    "burnish_python": ("burnish", "BurnishPython", "ours, Python bodies, index launches, auto-traced"),
    "burnish_serial": ("burnish", "BurnishSerial", "ours, in sequence"),
    "burnish_processes": ("burnish", "BurnishProcesses", "ours, Python bodies in worker processes"),
    "serial": ("serial", "Serial", "one task after another"),
    "threads": ("threads", "Threads", "concurrent.futures threads, dependence counting"),
    "threads_barrier": ("threads_barrier", "ThreadsBarrier", "concurrent.futures threads, a barrier per step"),
    "processes": ("processes", "Processes", "concurrent.futures processes, dependence counting"),
    "joblib": ("joblib", "Joblib", "joblib threads, a barrier per step"),
    "joblib_loky": ("joblib", "JoblibLoky", "joblib processes, a barrier per step"),
    "dask": ("dask", "Dask", "dask threaded scheduler, raw graph"),
    "dask_delayed": ("dask", "DaskDelayed", "dask.delayed on threads"),
    "distributed": ("distributed", "Distributed", "dask.distributed, local cluster"),
    "ray": ("ray", "Ray", "ray tasks"),
    "ray_actors": ("ray_actors", "RayActors", "ray actors, one per worker"),
    "parsl": ("parsl", "Parsl", "parsl apps on threads"),
    "parsl_htex": ("parsl_htex", "ParslHtex", "parsl apps on the high-throughput executor"),
    "legate": ("legate", "Legate", "legate Python tasks"),
    "openmp": ("openmp", "OpenMP", "OpenMP task depend (C++, compiled on demand)"),
    "taskflow": ("taskflow", "Taskflow", "Taskflow, graph built and run (C++, compiled on demand)"),
    "taskflow_rerun": ("taskflow", "TaskflowRerun", "Taskflow, graph built before"),
    "taskflow_async": ("taskflow", "TaskflowAsync", "Taskflow dependent_async"),
    "starpu": ("starpu", "StarPU", "StarPU task_submit (C++, compiled on demand)"),
    "mpi": ("mpi", "Mpi", "mpi4py, bulk synchronous"),
    "torch": ("torch", "Torch", "torch.distributed (gloo), bulk synchronous"),
}


def load(name: str) -> System:
    """A new, not yet started system. Raises GraphError for an unknown name."""
    if name not in SYSTEMS:
        near = difflib.get_close_matches(name, SYSTEMS, n=1, cutoff=0.0)
        raise GraphError(f"unknown system '{name}'", hint=f"did you mean '{near[0]}'?")
    module, cls, _ = SYSTEMS[name]
    return cast(System, getattr(importlib.import_module(f"burnish.taskbench.systems.{module}"), cls)())
