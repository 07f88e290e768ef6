"""The task runtime of burnish: native or Python bodies, index or single launches, untraced, traced, or traced by hand."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from burnish import __version__
from burnish import runtime as rt
from burnish._native import runtime as _rt
from burnish._native import taskbench_body as _point
from burnish.runtime import Read, Write, each
from burnish.runtime.native_body import native_task
from burnish.runtime.signature import Parameter, TaskInfo
from burnish.taskbench.bodies import Body, make_body
from burnish.taskbench.errors import Unsupported
from burnish.taskbench.graph import Graph
from burnish.taskbench.kernel import Kernel
from burnish.taskbench.systems.base import Base, Outputs


@lru_cache(maxsize=1024)
def _native_point(address: int, inputs: int, ordered: bool) -> Any:
    regions = {"out": Write, **{f"in{i}": Read for i in range(inputs)}}
    body = _point.point if ordered else _point.point_any_order
    return native_task(body, {**regions, "t": int, "p": int, "inputs": int}, name="point", user=address)


@lru_cache(maxsize=1024)
def _python_point(body: Body, inputs: int, graph: Graph, ordered: bool) -> Any:
    orders = None if ordered or not inputs else _orders(graph)

    def point(out: Any, *rest: Any) -> None:
        t, p = rest[-3], rest[-2]
        body(t, p, out, rest[:-3] if orders is None else [rest[i] for i in orders[p]])

    write: Any = Write
    read: Any = Read
    regions = [Parameter("out", write), *(Parameter(f"in{i}", read) for i in range(inputs))]
    return _rt.make_task(TaskInfo("point", point, (*regions, Parameter("t"), Parameter("p"), Parameter("inputs"))))


def _orders(graph: Graph) -> list[list[int]]:
    """For every point, which of the shifted arguments are its inputs, in the graph's order."""
    by_shift = shifts(graph)
    assert by_shift is not None
    offsets, edge = by_shift
    width = graph.width
    orders = []
    for p in range(width):
        given = [(p + o) % width if edge == "wrap" else min(max(p + o, 0), width - 1) for o in offsets]
        orders.append([given.index(q) for q in graph.inputs(1, p)])
    return orders


def shifts(graph: Graph) -> tuple[range, str] | None:
    """Offsets of the dependences and what happens at the ends, where one index launch can express a step."""
    kinds = {
        "trivial": (range(0), "clip"),
        "no_comm": (range(1), "clip"),
        "stencil_1d": (range(-1, 2), "clip"),
        "stencil_1d_periodic": (range(-1, 2), "wrap"),
        "nearest": (range(-(graph.radix // 2), (graph.radix - 1) // 2 + 1), "clip"),
    }
    return kinds.get(graph.type)


@dataclass(eq=False)
class Board:
    """A graph's two rows of output buffers, one subregion per point: even and odd steps."""

    graph: Graph

    def __post_init__(self) -> None:
        size = self.graph.width * self.graph.output
        self.regions = [rt.region(size, "u1", name=f"row{i}") for i in range(2)]
        self.rows = [rt.block(r, self.graph.width) for r in self.regions]

    @cached_property
    def steps(self) -> list[list[tuple[int, list[int]]]]:
        """Points of every step with their inputs."""
        g = self.graph
        every = [range(g.offset(t), g.offset(t) + g.width_at(t)) for t in range(g.steps)]
        return [[(p, g.inputs(t, p) if t else []) for p in points] for t, points in enumerate(every)]

    def outputs(self) -> list[Any]:
        values = self.regions[(self.graph.steps - 1) % 2].numpy().reshape(self.graph.width, self.graph.output)
        return [values[p] for p, _ in self.steps[-1]]


class Burnish(Base):
    """Native bodies on threads, index launches where the pattern allows, traced automatically."""

    name = "burnish"
    trace: bool = True
    manual = False
    index = True
    native = True
    executor = "threads"

    def start(self, workers: int) -> None:
        self.workers = workers
        rt.start(workers=workers, executor=self.executor, trace=self.trace)  # type: ignore[arg-type]
        self._boards: dict[Graph, Board] = {}

    def stop(self) -> None:
        self._boards.clear()
        rt.stop()

    def version(self) -> str:
        return __version__

    def _tasks(self, graph: Graph, kernel: Kernel) -> Callable[[int, bool], Any]:
        body: Any = make_body(graph, kernel)
        if not self.native:
            return lambda inputs, ordered: _python_point(body, inputs, graph, ordered)
        if kernel.impl != "native" or kernel.name == "gpu_compute":
            raise Unsupported(
                f"{self.name} runs native bodies here, not {kernel.name} in {kernel.impl}; use burnish_python"
            )
        return lambda inputs, ordered: _native_point(body.address, inputs, ordered)

    def _launches(self, board: Board, task: Callable[[int, bool], Any]) -> list[Callable[[int], None]]:
        """What launches a step, for every step; steps that differ in nothing but their number share one."""
        graph = board.graph
        by_shift = shifts(graph) if self.index else None
        if by_shift is None:
            return [self._singly(board, task, t) for t in range(graph.steps)]
        first = self._by_index(board, task, 0, range(0), "clip")
        even, odd = (self._by_index(board, task, t, *by_shift) for t in (0, 1))
        return [first, *(odd if t % 2 else even for t in range(1, graph.steps))]

    def _by_index(
        self, board: Board, task: Callable[[int, bool], Any], parity: int, offsets: range, edge: str
    ) -> Callable[[int], None]:
        new, old, n, width = board.rows[parity], board.rows[1 - parity], len(offsets), board.graph.width
        launch, regions = task(n, False).map, [new[each], *[old[each + o] for o in offsets]]
        return lambda t: launch(width, *regions, t, each, n, edge=edge)

    def _singly(self, board: Board, task: Callable[[int, bool], Any], t: int) -> Callable[[int], None]:
        new, old = board.rows[t % 2], board.rows[(t + 1) % 2]
        calls = []
        for p, inputs in board.steps[t]:
            if len(inputs) > _point.most_inputs:
                raise Unsupported(f"{self.name}: a task of {board.graph.type} has {len(inputs)} inputs")
            calls.append((task(len(inputs), True), (new[p], *[old[q] for q in inputs], t, p, len(inputs))))

        def launch(_: int) -> None:
            for call, arguments in calls:
                call(*arguments)

        return launch

    def run(self, graphs: Sequence[Graph], kernel: Kernel) -> Outputs:
        boards = [self._boards.setdefault(g, Board(g)) for g in graphs]
        launches = [self._launches(b, self._tasks(b.graph, kernel)) for b in boards]
        steps = max(g.steps for g in graphs)
        begin = time.perf_counter()
        t = 0
        while t < steps:
            span = 2 if self.manual and 0 < t < steps - 1 else 1  # a trace has an even and an odd step
            with self._bracket(graphs) if span == 2 else nullcontext():
                for u in range(t, t + span):
                    for launch in launches:
                        if u < len(launch):
                            launch[u](u)
            t += span
        launched = time.perf_counter() - begin
        rt.fence()
        return Outputs(tuple(board.outputs() for board in boards), launched)

    def _bracket(self, graphs: Sequence[Graph]) -> AbstractContextManager[None]:
        return rt.trace(f"step of {[hash(g) for g in graphs]}", on_mismatch="analyze")


class BurnishUntraced(Burnish):
    """Without tracing."""

    name = "burnish_untraced"
    trace = False


class BurnishManual(BurnishUntraced):
    """Traced by hand, two steps per trace."""

    name = "burnish_manual"
    manual = True


class BurnishSingle(Burnish):
    """One launch per task, traced automatically."""

    name = "burnish_single"
    index = False


class BurnishSingleUntraced(BurnishSingle):
    """One launch per task, untraced."""

    name = "burnish_single_untraced"
    trace = False


class BurnishPython(Burnish):
    """Python bodies on threads."""

    name = "burnish_python"
    native = False


class BurnishSerial(BurnishUntraced):
    """In sequence, on the launching thread."""

    name = "burnish_serial"
    executor = "serial"


class BurnishProcesses(BurnishPython):
    """Python bodies in worker processes."""

    name = "burnish_processes"
    executor = "processes"
