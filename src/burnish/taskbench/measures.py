"""Everything but METG: each function measures one session and returns :class:`Measurement` records.

All take a ``budget`` in seconds and shrink the run until it fits; what was run is in the record.
"""

from __future__ import annotations

import statistics
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import psutil

from burnish.taskbench.graph import Graph
from burnish.taskbench.kernel import Kernel
from burnish.taskbench.records import Measurement, load_average
from burnish.taskbench.session import Run, Session
from burnish.taskbench.slots import Slots, measure_peak

EMPTY = Kernel("empty")
REPETITIONS = 5
IMBALANCES = (0.0, 0.5, 1.0, 1.5, 2.0)
OUTPUTS = (16, 256, 4096, 65536)
TARGET_TASK = 1e-4  # seconds; the task size at which hiding and imbalance are looked at


def record(session: Session, graphs: Sequence[Graph], kernel: Kernel, runs: Sequence[Run], **more: Any) -> Measurement:
    """What ``runs`` of ``graphs`` say."""
    counts = [graph.counts() for graph in graphs]
    launched = [run.launched for run in runs if run.launched is not None]
    fields = {"launched": min(launched) if launched else None} | {
        k: more.pop(k) for k in ("peaks", "efficiency", "granularity") if k in more
    }
    return Measurement(
        session.system.name, session.version, kernel.impl, tuple(graphs), kernel, session.workers,
        tuple(run.elapsed for run in runs), tuple(run.cpu for run in runs), sum(c.tasks for c in counts),
        sum(c.dependencies for c in counts), kernel.validate, load_average(), extra=more, **fields,
    )  # fmt: skip


def fitted(session: Session, graph: Graph, kernel: Kernel, seconds: float, most: int | None = None) -> Graph:
    """``graph`` with as many steps as take about ``seconds``, found by doubling from 20; at most ``most`` steps."""
    steps, limit = 20, most or 1 << 16
    while True:
        candidate = replace(graph, steps=min(steps, limit))
        elapsed = session.run([candidate], kernel).elapsed
        if steps >= limit or elapsed * 2 > seconds:
            return candidate
        steps = int(steps * min(16.0, max(2.0, seconds / elapsed / 2)))


def tasks(session: Session, graph: Graph, budget: float, kernel: Kernel = EMPTY) -> list[Measurement]:
    """Cost of empty tasks: wall-clock and CPU time per task, launch-only time where the system has it."""
    graph = fitted(session, graph, kernel, budget / (REPETITIONS + 2))
    runs = [session.run([graph], kernel) for _ in range(REPETITIONS)]
    return [record(session, [graph], kernel, runs, measure="tasks", **per_task(runs))]


def per_task(runs: Sequence[Run]) -> dict[str, float]:
    """Microseconds per task: the least of several runs, since noise only adds."""
    out = {
        "wall_us": min(run.elapsed / run.tasks for run in runs) * 1e6,
        "cpu_us": min(run.cpu / run.tasks for run in runs) * 1e6,
    }
    launched = [run.launched / run.tasks for run in runs if run.launched is not None]
    return out | ({"launch_us": min(launched) * 1e6} if launched else {})


def latency(session: Session, graph: Graph, budget: float) -> list[Measurement]:
    """Time of one task that depends on the one before: width 1, up to 10^4 steps."""
    chain = fitted(session, replace(graph, width=1, type="no_comm", shape=None), EMPTY, budget / 4, most=10_000)
    runs = [session.run([chain], EMPTY) for _ in range(3)]
    value = min(run.elapsed for run in runs) / chain.steps
    return [record(session, [chain], EMPTY, runs, measure="latency", latency_us=value * 1e6)]


def startup(session: Session, graph: Graph, budget: float) -> list[Measurement]:
    """Seconds that ``start`` took."""
    run = session.run([replace(graph, steps=1)], EMPTY)
    return [
        record(session, [replace(graph, steps=1)], EMPTY, [run], measure="startup", start_seconds=session.start_seconds)
    ]


def memory(session: Session, graph: Graph, budget: float) -> list[Measurement]:
    """Bytes per task in flight: slope of the peak resident memory of all processes over 10^4 .. 10^6 tasks."""
    largest = fitted(session, graph, EMPTY, budget / 4, most=1_000_000 // graph.width)
    sizes = sorted({max(20, largest.steps // d) for d in (8, 4, 2, 1)})
    points, runs = [], []
    for steps in sizes:
        candidate = replace(graph, steps=steps)
        session.run([replace(candidate, steps=20)], EMPTY)
        with peak_memory(session) as peak:
            runs.append(session.run([candidate], EMPTY))
        points.append((runs[-1].tasks, peak[0]))
    slope = float(np.polyfit([n for n, _ in points], [b for _, b in points], 1)[0]) if len(points) > 1 else 0.0
    return [
        record(session, [replace(graph, steps=sizes[-1])], EMPTY, runs[-1:], measure="memory", bytes_per_task=slope)
    ]


@contextmanager
def peak_memory(session: Session) -> Iterator[list[int]]:
    """A list whose first entry grows to the most memory (bytes, above the start) seen while inside."""
    processes = [psutil.Process(pid) for pid in session.system.processes() if psutil.pid_exists(pid)]
    before, peak, stop = _resident(processes), [0], threading.Event()

    def watch() -> None:
        while not stop.wait(0.005):
            peak[0] = max(peak[0], _resident(processes) - before)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        stop.set()
        watcher.join()
        peak[0] = max(peak[0], _resident(processes) - before)


def _resident(processes: Sequence[psutil.Process]) -> int:
    total = 0
    for process in processes:
        try:
            total += process.memory_info().rss
        except psutil.Error:
            continue
    return total


def history(session: Session, graph: Graph, budget: float) -> list[Measurement]:
    """Time of the last tenth of the tasks over the first tenth, by completion; needs a session with records."""
    graph = fitted(session, graph, EMPTY, budget / 3, most=session.ledger.capacity // graph.width)
    run = session.run([graph], EMPTY)
    ends = session.records()[:, 1]
    tenth = max(1, len(ends) // 10)
    ratio = float(ends[-1] - ends[-1 - tenth]) / max(1.0, float(ends[tenth] - ends[0]))
    return [record(session, [graph], EMPTY, [run], measure="history", last_over_first=ratio)]


def timeline(session: Session, graph: Graph, kernel: Kernel) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Rows (start, end, t, p, graph and thread) of one run; needs a session with records."""
    session.run([graph], kernel)
    return session.records()


def hiding(session: Session, graph: Graph, budget: float) -> list[Measurement]:
    """Efficiency of 100 us tasks as outputs grow, with 1 to 4 graphs that share the same total work."""
    kernel = Kernel("compute_bound", iterations_for(session, graph, TARGET_TASK))
    cases = [(replace(graph, output=output), count) for output in OUTPUTS for count in (1, 2, 4)]
    out = []
    for base, count in cases:
        steps = max(5, 100 // count)
        graphs = [replace(base, steps=steps, index=index) for index in range(count)]
        out.append(efficiency(session, graphs, kernel, measure="hiding", output=base.output, concurrent=count))
    return out


def imbalance(session: Session, graph: Graph, budget: float) -> list[Measurement]:
    """Efficiency of tasks of 100 us on average as they become unequal."""
    iterations = iterations_for(session, graph, TARGET_TASK)
    return [
        efficiency(
            session,
            [graph],
            Kernel("load_imbalance", iterations, imbalance=value),
            measure="imbalance",
            imbalance=value,
        )
        for value in IMBALANCES
    ]


def iterations_for(session: Session, graph: Graph, seconds: float) -> int:
    """Iterations of ``compute_bound`` that take about ``seconds`` of CPU time."""
    probe = measure_peak(graph, Kernel("compute_bound", 1000), 1, 0.01)
    return max(1, round(seconds / probe.cpu * 1000))


def efficiency(session: Session, graphs: Sequence[Graph], kernel: Kernel, **more: Any) -> Measurement:
    """Efficiency and granularity: medians of three slots, each between its own peaks."""
    slots = Slots(session, graphs, kernel)
    samples = [slots.sample(kernel.iterations) for _ in range(3)]
    runs = [Run(s.elapsed, s.cpu, None, s.tasks) for s in samples]
    return record(
        session, slots.graphs_of(samples[-1].steps), kernel, runs, peaks=tuple(s.peaks for s in samples),
        efficiency=statistics.median(s.efficiency() for s in samples),
        granularity=statistics.median(s.granularity() for s in samples),
        cpu_efficiency=statistics.median(s.efficiency("cpu") for s in samples), **more,
    )  # fmt: skip


#: Measures of one session by name: function and whether it needs records.
MEASURES: dict[str, tuple[Callable[[Session, Graph, float], list[Measurement]], bool]] = {
    "tasks": (tasks, False),
    "latency": (latency, False),
    "startup": (startup, False),
    "memory": (memory, False),
    "history": (history, True),
    "hiding": (hiding, False),
    "imbalance": (imbalance, False),
}
