"""Measured slots: what the machine can do, what the system does, what the machine can do."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from burnish.taskbench import _native
from burnish.taskbench.bodies import make_body
from burnish.taskbench.errors import GraphError
from burnish.taskbench.estimate import Sample
from burnish.taskbench.graph import Graph
from burnish.taskbench.kernel import Kernel
from burnish.taskbench.session import Run, Session

SHORTEST_RUN = 0.05  # seconds
LEAST_STEPS = 20
MOST_STEPS = LEAST_STEPS << 12
PEAK_SECONDS = (0.01, 0.1)
STEADY = 0.10  # relative difference of two neighbouring peaks above which a slot is repeated
TRIES = 3


@dataclass(frozen=True)
class Peak:
    """``rate`` in work per second of all cores, ``cpu`` in CPU seconds per kernel."""

    rate: float
    cpu: float


def measure_peak(graph: Graph, kernel: Kernel, cores: int, seconds: float) -> Peak:
    """The kernel alone on ``cores`` plain native threads.

    A body in another language than C++ is run by one thread and counted ``cores`` times, since Python threads would
    not run it in parallel.
    """
    if kernel.impl == "native" and kernel.name != "gpu_compute":
        runs, cpu, iterations = _native.peak(graph.native, kernel.native, cores, seconds)
        return Peak(runs * kernel.work(graph, iterations), cpu)
    body = make_body(graph, replace(kernel, ledger=None))
    count, start, cpu_start = 0, time.perf_counter(), time.thread_time()
    while time.perf_counter() - start < seconds or count == 0:
        body.run(count, 0)  # type: ignore[attr-defined]
        count += 1
    elapsed, used = time.perf_counter() - start, time.thread_time() - cpu_start
    return Peak(cores * count / elapsed * kernel.work(graph, kernel.iterations), used / count)


class Slots:
    """Takes samples of a session on some graphs; the number of steps follows from how long a run takes.

    ``repeated`` counts the slots that were measured again because their peaks differed.
    Raises :class:`GraphError` for a kernel without work.
    """

    def __init__(self, session: Session, graphs: Sequence[Graph], kernel: Kernel) -> None:
        if kernel.name == "empty":
            raise GraphError("efficiency needs a kernel that works", hint="use --kernel compute_bound")
        for graph in graphs:
            kernel.check(graph)
        self.session, self.graphs, self.kernel = session, tuple(graphs), kernel
        self.repeated = 0
        self._steps: dict[int, int] = {}  # by iteration count
        self._warm = False

    def sample(self, iterations: int) -> Sample:
        """Peak, run, peak; again (at most thrice) if the peaks differ by more than 10 %; the steadiest of them."""
        kernel = replace(self.kernel, iterations=iterations)
        if not self._warm:
            self._run(replace(kernel, iterations=1), LEAST_STEPS)
            self._warm = True
        best: Sample | None = None
        for attempt in range(TRIES):
            self.repeated += attempt > 0
            taken = self._slot(kernel)
            if best is None or taken.unsteady < best.unsteady:
                best = taken
            if best.unsteady <= STEADY:
                break
        assert best is not None
        return best

    def graphs_of(self, steps: int) -> tuple[Graph, ...]:
        """The graphs with at least ``steps`` steps."""
        return tuple(replace(graph, steps=max(steps, graph.steps)) for graph in self.graphs)

    def _run(self, kernel: Kernel, steps: int) -> Run:
        return self.session.run(self.graphs_of(steps), kernel)

    def _slot(self, kernel: Kernel) -> Sample:
        steps = self._steps.get(kernel.iterations, self._guess(kernel.iterations))
        while True:
            before = self._peak(kernel, 0.0)
            run = self._run(kernel, steps)
            if run.elapsed >= SHORTEST_RUN or steps >= MOST_STEPS:
                break
            factor = 2 ** math.ceil(math.log2(max(2.0, 1.2 * SHORTEST_RUN / run.elapsed)))
            steps = min(MOST_STEPS, steps * factor)
        self._steps[kernel.iterations] = steps
        after = self._peak(kernel, run.elapsed)
        work = sum(kernel.total_work(graph) for graph in self.graphs_of(steps))
        return Sample(
            kernel.iterations, steps, run.tasks, self.session.workers, run.elapsed, run.cpu, work,
            (before.rate, after.rate), (before.cpu + after.cpu) / 2,
        )  # fmt: skip

    def _guess(self, iterations: int) -> int:
        """Steps of the nearest iteration count that was measured: fewer iterations need at least as many."""
        larger = [n for n in self._steps if n >= iterations]
        return self._steps[min(larger)] if larger else LEAST_STEPS

    def _peak(self, kernel: Kernel, run_seconds: float) -> Peak:
        shortest, longest = PEAK_SECONDS
        return measure_peak(self.graphs[0], kernel, self.session.workers, min(longest, max(shortest, run_seconds / 5)))
