"""The true oracle of a random program: plain arrays, one launch after another, reductions folded in launch order.

Knows nothing of burnish: no analysis, no regions. Also says which data are poisoned by planned failures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .program_bodies import DTYPES, OPERATORS, apply, values
from .program_sets import Points
from .random_programs import (
    DropRoot,
    Fence,
    Fill,
    FoldFutures,
    Geometry,
    Get,
    Host,
    Launch,
    MakePartition,
    MakeRoot,
    Mark,
    Program,
    RegionRef,
)

Array = npt.NDArray[Any]
FOLDS = {"+": lambda a, b: a + b, "*": lambda a, b: a * b, "min": min, "max": max}


@dataclass(frozen=True)
class Cause:
    """A planned failure: its place in program order and what its exception says."""

    order: int
    message: str


@dataclass
class Outcome:
    """What a run of a program showed: errors of refused launches, data seen on the way, and what is there at the end."""

    refused: dict[int, str] = field(default_factory=dict)  # launch -> error name(s)
    seen: list[Any] = field(default_factory=list)
    futures: dict[tuple[int, Any], Any] = field(default_factory=dict)
    contents: dict[tuple[int, str], Array] = field(default_factory=dict)
    first_failure: str | None = None


def field_array(shape: tuple[int, ...], name: str) -> Array:
    dtype, inner = DTYPES[name]
    return np.zeros((math.prod(shape), *inner), dtype)


def changed(a: Array, mode: str, seed: int) -> Array:
    """What a host access writes: everything, or every third point."""
    new = values(seed, a)
    if mode == "rw":
        keep = np.arange(len(a)) % 3 != 0
        new[keep] = a[keep]
    return new


class Interpreter:
    """Runs a program on plain arrays."""

    def __init__(self) -> None:
        self.geometry = Geometry()
        self.data: dict[tuple[int, str], Array] = {}
        self.poison: dict[tuple[int, str], npt.NDArray[np.int64]] = {}  # by point: order of the cause, or NONE
        self.causes: list[Cause] = []
        self.futures: dict[int, dict[Any, Any]] = {}
        self.outcome = Outcome()
        self.order = 0

    def run(self, program: Program) -> Outcome:
        for step in program:
            self.step(step)
        out = self.outcome
        out.contents = {key: a for key, a in self.data.items() if key[0] in self.geometry.roots}
        out.futures = {(n, c): v for n, made in self.futures.items() for c, v in made.items()}
        out.first_failure = min(self.causes, key=lambda c: c.order).message if self.causes else None
        return out

    def step(self, step: Any) -> None:
        if isinstance(step, MakeRoot):
            self.geometry.make_root(step)
            for name in step.fields:
                self.data[step.name, name] = field_array(step.shape, name)
                self.poison[step.name, name] = np.full(math.prod(step.shape), NONE)
        elif isinstance(step, DropRoot):
            self.geometry.drop_root(step.root)
        elif isinstance(step, MakePartition):
            self.geometry.make_partition(step)
        elif isinstance(step, Launch):
            self.launch(step)
        elif isinstance(step, FoldFutures):
            self.fold(step)
        elif isinstance(step, Fill):
            key, points = self.place(step.region, step.field)
            self.data[key][points.ids] = step.value
            self.poison[key][points.ids] = NONE
        elif isinstance(step, Host):
            key, points = self.place(step.region, step.field)
            before = self.data[key][points.ids]
            if step.mode != "w":
                self.outcome.seen.append(before)
            if step.mode != "r":
                self.data[key][points.ids] = changed(before, step.mode, step.seed)
        elif isinstance(step, Get):
            self.outcome.seen.append(self.value(step.future))
        else:
            assert isinstance(step, (Fence, Mark))

    def place(self, region: RegionRef, name: str) -> tuple[tuple[int, str], Points]:
        return (self.geometry.root_of(region), name), self.geometry.points(region)

    def value(self, scalar: Any) -> Any:
        return self.futures[scalar[1]][scalar[2]] if isinstance(scalar, tuple) else scalar

    def launch(self, launch: Launch) -> None:
        points, refused = self.geometry.point_tasks(launch)
        if refused:
            self.outcome.refused[launch.name] = refused
            return
        assert points is not None
        made = self.futures.setdefault(launch.name, {}) if launch.task.returns else None
        for color, regions in points:
            result = self.point(launch, color, regions)
            if made is not None:
                made[None if color < 0 else color] = result
        if not points and made is not None and launch.domain is None:
            del self.futures[launch.name]

    def point(self, launch: Launch, color: int, regions: list[RegionRef]) -> Any:
        self.order += 1
        order = self.order
        task = launch.task
        scalars = [self.value(s) for s in launch.scalars]
        predicate = self.value(launch.when) if launch.when else True
        slots = []  # (kind, key, ids, array)
        for region, uses in zip(regions, task.params, strict=True):
            root, points = self.geometry.root_of(region), self.geometry.points(region)
            for use in uses:
                for name in use.fields or self.geometry.fields[root]:
                    slots.append((use.kind, (root, name), points.ids))
        cause = self.cause(scalars, [predicate], slots, launch.when is not None)
        if cause is None and not isinstance(predicate, Cause) and not predicate:
            return None
        result: Any = None
        if cause is None:
            arrays = [(kind, self.argument(kind, key, ids)) for kind, key, ids in slots]
            result = apply(task, arrays, scalars, color)
            if launch.fails >> max(color, 0) & 1:
                cause = Cause(order, f"{task.name} {color}")
                self.causes.append(cause)
        if cause is not None:
            self.spread(cause, slots)
            return cause
        for (kind, key, ids), (_, a) in zip(slots, arrays, strict=True):
            if kind in OPERATORS:
                self.data[key][ids] = OPERATORS[kind][0](self.data[key][ids], a)
            elif kind != "r":
                self.data[key][ids] = a
                self.poison[key][ids] = NONE
        return result

    def argument(self, kind: str, key: tuple[int, str], ids: npt.NDArray[np.intp]) -> Array:
        current = self.data[key][ids]
        if kind in OPERATORS:
            current[...] = OPERATORS[kind][1](current.dtype)
        return current

    # failures
    def cause(self, scalars: list[Any], predicate: list[Any], slots: list[Any], predicated: bool) -> Cause | None:
        """The first of the failures that this point depends on."""
        orders = [v.order for v in (*scalars, *predicate) if isinstance(v, Cause)]
        for kind, key, ids in slots:
            # under a predicate, a Write keeps the old data if the body does not run: it depends on them
            if (kind in ("r", "rw") or (kind == "w" and predicated)) and len(ids):
                orders.append(int(self.poison[key][ids].min()))
        first = min(orders, default=NONE)
        return None if first == NONE else next(c for c in self.causes if c.order == first)

    def spread(self, cause: Cause, slots: list[Any]) -> None:
        for kind, key, ids in slots:
            if kind in ("w", "rw"):
                self.poison[key][ids] = cause.order
            elif kind != "r":
                self.poison[key][ids] = np.minimum(self.poison[key][ids], cause.order)

    def fold(self, step: FoldFutures) -> None:
        self.order += 1
        operands = [v for _, v in sorted(self.futures[step.launch].items())]
        failed = [v for v in operands if isinstance(v, Cause)]
        if failed:
            self.futures[step.name] = {None: min(failed, key=lambda c: c.order)}
            return
        total = operands[0]
        for v in operands[1:]:
            total = FOLDS[step.op](total, v)
        self.futures[step.name] = {None: total}


NONE = np.iinfo(np.int64).max


def interpret(program: Program) -> tuple[Outcome, Interpreter]:
    made = Interpreter()
    return made.run(program), made
