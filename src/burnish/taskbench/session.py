"""A started system, and runs on it that are timed and checked."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import psutil

from burnish.taskbench._native import Int64s
from burnish.taskbench.bodies import expected_output
from burnish.taskbench.errors import ValidationError
from burnish.taskbench.graph import Graph
from burnish.taskbench.kernel import Kernel
from burnish.taskbench.ledger import shared_ledger
from burnish.taskbench.systems import System, load
from burnish.taskbench.systems.base import Outputs

#: What keeps numerical libraries from starting threads of their own.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Run:
    """One execution: seconds of wall-clock and of CPU time (all processes), seconds until everything was launched."""

    elapsed: float
    cpu: float
    launched: float | None
    tasks: int


def cpu_seconds(pids: Sequence[int]) -> dict[int, float]:
    """CPU time used so far by each process that is alive, finished threads included."""
    out = {}
    for pid in pids:
        try:
            # Linux: the CPU clock of any process has the id (~pid << 3) | 2, with a resolution of 1 ns.
            out[pid] = time.process_time() if pid == os.getpid() else time.clock_gettime((~pid << 3) | 2)
        except OSError:
            try:
                times = psutil.Process(pid).cpu_times()
                out[pid] = times.user + times.system
            except psutil.Error:
                continue
    return out


class Session:
    """A system from ``start`` to ``stop``.

    ``start_seconds`` is how long starting took. :meth:`run` raises
    :class:`~burnish.taskbench.errors.ValidationError` if the system executes a graph wrongly.
    """

    def __init__(self, system: System, workers: int, ledger: Any) -> None:
        self.system, self.workers, self.ledger = system, workers, ledger
        start = time.perf_counter()
        system.start(workers)
        self.start_seconds = time.perf_counter() - start
        self.version = system.version()

    def run(self, graphs: Sequence[Graph], kernel: Kernel) -> Run:
        """Execute the graphs once and check outputs and number of executed tasks."""
        kernel = replace(kernel, ledger=self.ledger.path)
        self.ledger.reset()
        pids = self.system.processes()
        with frozen_garbage():
            before = cpu_seconds(pids)
            start = time.perf_counter()
            outputs = self.system.run(graphs, kernel)
            elapsed = time.perf_counter() - start
            after = cpu_seconds(list(before))
        tasks = check_run(graphs, outputs, self.ledger.executed + outputs.elsewhere, kernel.validate)
        cpu = sum(after[pid] - before[pid] for pid in after)
        return Run(elapsed, cpu, outputs.launched, tasks)

    def records(self) -> Int64s:
        """Columns :data:`~burnish.taskbench.ledger.RECORD_COLUMNS` of the last run, by time of completion."""
        records: Int64s = self.ledger.records()
        return records[records[:, 1].argsort(kind="stable")]


@contextmanager
def session(system: str | System, workers: int | None = None, records: int = 0) -> Iterator[Session]:
    """Start ``system``; ``records`` is the room for a timeline. Stops it whatever happens."""
    system = load(system) if isinstance(system, str) else system
    with shared_ledger(records) as ledger, one_thread():
        try:
            yield Session(system, workers or usable_cores(), ledger)
        finally:
            stop_quietly(system)


def stop_quietly(system: System) -> None:
    """Stop; a system that failed to start may have nothing to stop."""
    try:
        system.stop()
    except AttributeError:  # start() raised before it made what stop() would end
        return


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def one_thread() -> Iterator[None]:
    """Numerical libraries of processes started inside use one thread each."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def frozen_garbage() -> Iterator[None]:
    """What exists now is not looked at by the garbage collector inside, the same for every system."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def check_run(graphs: Sequence[Graph], outputs: Outputs, executed: int, validated: bool = True) -> int:
    """Number of tasks; raises ValidationError if tasks are missing or too many, or a final output is wrong."""
    wanted = sum(graph.counts().tasks for graph in graphs)
    if executed != wanted:
        raise ValidationError(f"executed {executed} tasks, the graphs have {wanted}")
    if not validated:
        return wanted
    for graph, final in zip(graphs, outputs.final, strict=True):
        points = graph.points(graph.steps - 1)
        if len(final) != len(points):
            raise ValidationError(f"graph {graph.index}: {len(final)} final outputs for {len(points)} points")
        for p, output in zip(points, final, strict=True):
            if not np.array_equal(np.asarray(output), expected_output(graph, graph.steps - 1, p)):
                raise ValidationError(f"graph {graph.index}: wrong final output of point {p}")
    return wanted
