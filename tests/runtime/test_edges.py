"""Edges found by the analysis against a brute-force oracle that follows every field of every point.

With one worker and no blocking call nothing runs before the program ends, so that all edges are there to see. Compared
is what they mean: which launches (points of launches) each must wait for, directly or through others.
"""

from __future__ import annotations

import graphlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from burnish import runtime as rt
from burnish._native import runtime as _rt

from .program_bodies import OPERATORS
from .program_runner import Runner, Setting
from .random_programs import (
    DropRoot,
    Fill,
    FoldFutures,
    Geometry,
    Launch,
    MakePartition,
    MakeRoot,
    Program,
    RegionRef,
    generate,
    shrunk,
)

Task = tuple[int, int]  # step of the program, number of the point


@dataclass
class Cell:
    """What happened last to one field of one point. Users are numbers of tasks, or of folds."""

    writer: int | None = None
    readers: tuple[int, ...] = ()
    op: str | None = None
    reducers: tuple[int, ...] = ()

    def state(self) -> tuple[Any, ...]:
        return self.writer, self.readers, self.reducers


@dataclass
class EdgeOracle:
    """Ancestors of every task by the rules of the analysis, applied to each point and field on its own."""

    geometry: Geometry = field(default_factory=Geometry)
    cells: dict[tuple[int, str, int], Cell] = field(default_factory=dict)
    tasks: list[Task] = field(default_factory=list)
    ancestors: list[int] = field(default_factory=list)  # bit sets, of tasks and folds
    is_fold: list[bool] = field(default_factory=list)
    of_future: dict[tuple[int, Any], int] = field(default_factory=dict)

    def run(self, program: Program) -> dict[Task, set[Task]]:
        for number, step in enumerate(program):
            if isinstance(step, MakeRoot):
                self.geometry.make_root(step)
            elif isinstance(step, DropRoot):
                self.geometry.drop_root(step.root)
            elif isinstance(step, MakePartition):
                self.geometry.make_partition(step)
            elif isinstance(step, Launch):
                self.launch(number, step)
            elif isinstance(step, Fill):
                self.task(number, 0, [(step.region, "w", (step.field,))], ())
            elif isinstance(step, FoldFutures):
                producers = [node for (launch, _), node in self.of_future.items() if launch == step.launch]
                self.of_future[step.name, None] = self.task(number, 0, [], producers)
        names = {n: t for n, t in enumerate(self.tasks)}
        users = [n for n, fold in enumerate(self.is_fold) if not fold]
        return {names[n]: {names[m] for m in users if self.ancestors[n] >> m & 1} for n in users}

    def launch(self, number: int, launch: Launch) -> None:
        points, refused = self.geometry.point_tasks(launch)
        if refused:
            return
        futures = [s for s in (*launch.scalars, launch.when) if isinstance(s, tuple)]
        producers = [self.of_future[f[1], f[2]] for f in futures]
        for k, (color, regions) in enumerate(points or ()):
            uses = []
            for region, spec in zip(regions, launch.task.params, strict=True):
                layout = self.geometry.fields[self.geometry.root_of(region)]
                for u in spec:
                    kind = "rw" if u.kind == "w" and launch.when else u.kind  # it may keep the old data
                    uses.append((region, kind, u.fields or layout))
            self.of_future[launch.name, None if color < 0 else color] = self.task(number, k, uses, producers)

    def node(self, task: Task, fold: bool) -> int:
        self.tasks.append(task)
        self.ancestors.append(0)
        self.is_fold.append(fold)
        return len(self.tasks) - 1

    def edge(self, before: int, after: int) -> None:
        if before != after:
            self.ancestors[after] |= self.ancestors[before] | 1 << before

    def task(self, number: int, point: int, uses: list[tuple[RegionRef, str, tuple[str, ...]]], producers: Any) -> int:
        me = self.node((number, point), fold=False)
        for producer in producers:
            self.edge(producer, me)
        for region, kind, fields in uses:
            folds: dict[Any, int] = {}  # cells in the same state share one
            root = self.geometry.root_of(region)
            for name in fields:
                for at in self.geometry.points(region).ids.tolist():
                    self.use(me, kind, self.cells.setdefault((root, name, at), Cell()), folds)
        return me

    def use(self, me: int, kind: str, cell: Cell, folds: dict[Any, int]) -> None:
        reduces = kind in OPERATORS
        if cell.op and kind == "w":
            cell.op, cell.reducers = None, ()  # never seen by anyone
        if cell.op and not (reduces and kind == cell.op):
            self.close(cell, folds)
        if reduces:
            cell.op, cell.reducers = kind, (*cell.reducers, me)
            return
        if cell.writer is not None:
            self.edge(cell.writer, me)
        if kind == "r":
            cell.readers = (*cell.readers, me)
            return
        for reader in cell.readers:
            self.edge(reader, me)
        cell.writer, cell.readers = me, ()

    def close(self, cell: Cell, folds: dict[Any, int]) -> None:
        state = cell.state()
        if state not in folds:
            folds[state] = self.node((-1, len(self.tasks)), fold=True)
            writer = () if cell.writer is None else (cell.writer,)
            for before in (*writer, *cell.readers, *cell.reducers):
                self.edge(before, folds[state])
        cell.writer, cell.readers, cell.op, cell.reducers = folds[state], (), None, ()


def found_ancestors(program: Program, trace: bool) -> dict[Task, set[Task]]:
    """What the runtime's edges say."""
    Setting(workers=1, window=1 << 30, reduce_limit=1 << 60, record_edges=True, trace=trace).start()
    try:
        runner = Runner()
        ranges = []
        for number, step in enumerate(program):
            before = _rt.last_seq()
            runner.step(step)
            ranges.append((number, before + 1, _rt.last_seq() + 1))
        assert _rt.counters()["completed"] == 0, "something ran before the end of the program"
        folds = set(_rt.fold_log())
        edges = _rt.edge_log()
    finally:
        rt.stop()
    names: dict[int, Task] = {}
    for number, first, end in ranges:
        for point, seq in enumerate(s for s in range(first, end) if s not in folds):
            names[seq] = (number, point)
    before_of: dict[int, set[int]] = {}
    for a, b in edges:
        before_of.setdefault(b, set()).add(a)
    ancestors: dict[int, set[int]] = {}
    for seq in graphlib.TopologicalSorter(before_of).static_order():
        ancestors[seq] = set(before_of.get(seq, ())).union(*(ancestors[p] for p in before_of.get(seq, ())))
    return {name: {names[a] for a in ancestors.get(seq, ()) if a in names} for seq, name in names.items()}


def lines(found: dict[Task, set[Task]], expected: dict[Task, set[Task]], exact: bool) -> Iterator[str]:
    if found.keys() != expected.keys():
        yield f"tasks {sorted(found)} != {sorted(expected)}"
    for task in sorted(found.keys() & expected.keys()):
        if missing := expected[task] - found[task]:
            yield f"task {task} does not wait for {sorted(missing)}"
        if exact and (false := found[task] - expected[task]):
            yield f"task {task} waits for {sorted(false)} without need"


def difference(program: Program, trace: bool = False) -> list[str]:
    return list(lines(found_ancestors(program, trace), EdgeOracle().run(program), exact=not trace))


def check(seed: int, trace: bool = False) -> None:
    program = generate(seed, blocking=False, max_launches=24, loops=trace)
    if difference(program, trace):
        small = shrunk(program, lambda p: bool(difference(p, trace)))
        pytest.fail("\n".join([f"seed {seed}", *map(str, small), *difference(small, trace)]), pytrace=False)


@pytest.mark.parametrize("chunk", range(8))
def test_edges_are_exact(chunk: int) -> None:
    """No edge is missing, none is false."""
    for seed in range(chunk * 50, (chunk + 1) * 50):
        check(seed)


@pytest.mark.parametrize("chunk", range(4))
def test_replayed_edges_are_complete(chunk: int) -> None:
    """Templates miss no edge. (Reductions left open before a trace are folded even if the trace overwrites them.)"""
    for seed in range(chunk * 50, (chunk + 1) * 50):
        check(seed, trace=True)


@pytest.mark.nightly
@pytest.mark.parametrize("chunk", range(20))
def test_edges_of_many_programs(chunk: int) -> None:
    for seed in range(10_000 + chunk * 1000, 10_000 + (chunk + 1) * 1000):
        check(seed, trace=seed % 4 == 0)
