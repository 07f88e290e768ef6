"""Parameterized task graphs.

A graph has ``steps`` and ``width``; point ``(t, p)`` exists if ``offset(t) <= p < offset(t) + width(t)`` and depends on
points of step ``t - 1``. Patterns after Slaughter et al., "Task Bench: A Parameterized Benchmark for Evaluating Parallel
Runtime Performance" (SC 2020); ``stencil_2d``, ``stencil_3d``, ``sweep_2d``, ``vcycle`` and ``random_spread`` are ours.
"""

from __future__ import annotations

import difflib
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from typing import Any

from burnish.taskbench import _native
from burnish.taskbench.errors import GraphError

#: Every type and its line in ``burnish taskbench list``; the order is the native enumeration.
TYPES: dict[str, str] = {
    "trivial": "no dependences",
    "no_comm": "p",
    "stencil_1d": "p-1..p+1",
    "stencil_1d_periodic": "p-1..p+1, wrapped around",
    "dom": "p-1..p on a wavefront that grows and shrinks",
    "tree": "p div 2, doubling until width",
    "fft": "p - 2^d, p, p + 2^d with d cycling",
    "all_to_all": "every point",
    "nearest": "radix points around p",
    "spread": "radix points width/radix apart, moving with the period",
    "random_nearest": "each of the radix points around p with probability fraction",
    "random_spread": "each of the spread points with probability fraction",
    "stencil_2d": "5-point star on a grid",
    "stencil_3d": "7-point star on a grid",
    "sweep_2d": "diagonal waves over a grid, forward and backward",
    "vcycle": "multigrid: restriction, smoothing, prolongation",
}
PERIODIC = ("spread", "random_nearest", "random_spread")
_GRIDS = {"stencil_2d": 2, "stencil_3d": 3, "sweep_2d": 2}


@dataclass(frozen=True)
class Counts:
    """Totals of a graph; ``local`` and ``nonlocal_`` split the dependences where a number of nodes was given."""

    tasks: int
    dependencies: int
    local: int = 0
    nonlocal_: int = 0


@dataclass(frozen=True)
class Graph:
    """A task graph.

    ``output`` is the size in bytes of what a task produces (a multiple of 16), ``scratch`` the size in bytes of the
    memory that its kernel works on, ``shape`` the grid of the types that have one (default: the most square one, and
    ``width x width`` for ``sweep_2d``), ``index`` the number of the graph among those that run together.
    Raises :class:`GraphError` for parameters that make no sense together.
    """

    steps: int
    width: int
    type: str = "stencil_1d"
    radix: int = 3
    period: int = 3
    fraction: float = 0.25
    output: int = 16
    scratch: int = 0
    shape: tuple[int, ...] | None = None
    index: int = 0

    def __post_init__(self) -> None:
        _check(self)

    def __reduce__(self) -> tuple[Any, ...]:  # without the cached native object
        return Graph, astuple(self)

    @cached_property
    def native(self) -> Any:
        """The ``burnish._native.taskbench.Graph`` behind this one."""
        return _native.graph(
            self.steps, self.width, list(TYPES).index(self.type), self.index, self.radix, self.period,
            self.fraction, self.output, self.scratch, _grid(self),
        )  # fmt: skip

    def offset(self, t: int) -> int:
        """First point that exists at step ``t``."""
        return int(self.native.offset(t))

    def points(self, t: int) -> range:
        """Points that exist at step ``t``; empty outside of the graph."""
        first = self.offset(t)
        return range(first, first + int(self.native.width(t)))

    def width_at(self, t: int) -> int:
        """Number of points that exist at step ``t``."""
        return len(self.points(t))

    def dependencies(self, t: int, p: int) -> list[tuple[int, int]]:
        """Points of step ``t - 1`` that ``(t, p)`` depends on: inclusive intervals, ascending, disjoint."""
        return list(self.native.dependencies(t, p))

    def reverse_dependencies(self, t: int, p: int) -> list[tuple[int, int]]:
        """Points of step ``t + 1`` that depend on ``(t, p)``, as inclusive intervals."""
        return list(self.native.reverse_dependencies(t, p))

    def inputs(self, t: int, p: int) -> list[int]:
        """The dependences one by one, ascending: the order in which a task gets its inputs."""
        return [q for first, last in self.dependencies(t, p) for q in range(first, last + 1)]

    def counts(self, nodes: int = 0) -> Counts:
        """Numbers of tasks and dependences; with ``nodes``, point ``p`` lives on node ``p * nodes // width``."""
        return Counts(*self.native.count(nodes))

    def check(self) -> None:
        """Raise :class:`GraphError` unless dependences exist, are unique, and mirror the reverse dependences."""
        for t in range(self.steps):
            before, forward = self.points(t - 1), set()
            for p in self.points(t):
                inputs = self.inputs(t, p)
                if sorted(set(inputs)) != inputs or any(q not in before for q in inputs):
                    raise GraphError(f"dependences of (t={t}, p={p}) are {inputs}: not unique or not of step {t - 1}")
                forward |= {(q, p) for q in inputs}
            backward = {(q, p) for q in before for a, b in self.reverse_dependencies(t - 1, q) for p in range(a, b + 1)}
            if forward != backward:
                pair = min(forward ^ backward)
                raise GraphError(f"step {t}: dependence {pair} is not mirrored by the reverse dependences")

    def listing(self) -> str:
        """One line per point, ``t p: q q ...``, in order; what the published edge hashes are taken of."""
        return "".join(
            f"{t} {p}:" + "".join(f" {q}" for q in self.inputs(t, p)) + "\n"
            for t in range(self.steps)
            for p in self.points(t)
        )

    @property
    def label(self) -> str:
        """Type with the parameters that matter to it, as the command line takes them: ``spread:5:3``."""
        parts: list[Any] = [self.type]
        if self.type == "nearest" or self.type in PERIODIC:
            parts.append(self.radix)
        if self.type in PERIODIC:
            parts.append(self.period)
        if self.type.startswith("random"):
            parts.append(f"{self.fraction:g}")
        return ":".join(map(str, parts))


def _most_square(width: int, sides: int) -> tuple[int, ...]:
    if sides == 1:
        return (width,)
    best = max(side for side in range(1, round(width ** (1 / sides)) + 1) if width % side == 0)
    return (best, *_most_square(width // best, sides - 1))


def _grid(graph: Graph) -> tuple[int, int, int]:
    sides = _GRIDS.get(graph.type, 0)
    if graph.type == "sweep_2d":
        shape = graph.shape or (graph.width, graph.width)
    else:
        shape = graph.shape or (_most_square(graph.width, sides) if sides else ())
    padded = (1,) * (3 - sides) + tuple(shape) if graph.type != "sweep_2d" else (*shape, 1)
    a, b, c = padded if sides else (1, 1, 1)
    return a, b, c


def _check(graph: Graph) -> None:
    if graph.type not in TYPES:
        near = difflib.get_close_matches(graph.type, TYPES, n=1, cutoff=0.0)
        raise GraphError(f"unknown type '{graph.type}'", hint=f"did you mean '{near[0]}'?")
    for name, least in (("steps", 1), ("width", 1), ("radix", 0), ("scratch", 0), ("index", 0)):
        if getattr(graph, name) < least:
            raise GraphError(f"{name} must be at least {least}, got {getattr(graph, name)}")
    if graph.output < 16 or graph.output % 16:
        raise GraphError(f"output must be a multiple of 16 and at least 16 bytes, got {graph.output}")
    if graph.type in PERIODIC:
        _check_periodic(graph)
    if graph.type in _GRIDS:
        _check_shape(graph, _GRIDS[graph.type])
    elif graph.shape is not None:
        raise GraphError(f"{graph.type} has no shape; only {', '.join(_GRIDS)} have")


def _check_periodic(graph: Graph) -> None:
    if graph.period < 1:
        raise GraphError(f"{graph.type} needs a period of at least 1, got {graph.period}")
    if not 0 <= graph.fraction <= 1:
        raise GraphError(f"fraction must be in [0, 1], got {graph.fraction:g}")
    if graph.type == "random_nearest" or graph.radix == 0:
        return
    if graph.radix > graph.width:
        raise GraphError(f"{graph.type} with radix {graph.radix} needs width >= {graph.radix}, got {graph.width}")
    most = -(-graph.width // graph.radix)
    if graph.period > most:
        raise GraphError(f"period {graph.period} exceeds ceil(width/radix) = {most}")


def _check_shape(graph: Graph, sides: int) -> None:
    if graph.shape is None:
        return
    text = "x".join(map(str, graph.shape))
    if len(graph.shape) != sides or min(graph.shape) < 1:
        raise GraphError(f"{graph.type} needs a shape of {sides} positive sides, got {text}")
    product = 1
    for side in graph.shape:
        product *= side
    if graph.type == "sweep_2d":
        if min(graph.shape) != graph.width:
            raise GraphError(
                f"sweep_2d over {text} needs width = its shorter side {min(graph.shape)}, got {graph.width}"
            )
    elif product != graph.width:
        raise GraphError(f"shape {text} has {product} points, width is {graph.width}")


def parse_shape(text: str) -> tuple[int, ...] | None:
    """``4x8`` as (4, 8); None for the empty text."""
    if not text:
        return None
    try:
        return tuple(int(side) for side in text.split("x"))
    except ValueError:
        raise GraphError(f"'{text}' is not a shape", hint="write 4x8 or 4x8x2") from None


def parse_type(text: str, graph: Graph, shape: tuple[int, ...] | None = None) -> Graph:
    """``graph`` with the type and parameters of ``text``: ``type[:radix[:period[:fraction]]]``.

    >>> parse_type("nearest:5", Graph(steps=10, width=8)).label
    'nearest:5'
    """
    name, *numbers = text.strip().split(":")
    if len(numbers) > 3:
        raise GraphError(f"'{text}' has too many parts", hint="write type[:radix[:period[:fraction]]]")
    try:
        changes: dict[str, Any] = {
            key: float(value) if key == "fraction" else int(value)
            for key, value in zip(("radix", "period", "fraction"), numbers, strict=False)
        }
    except ValueError:
        raise GraphError(f"'{text}' is not a type", hint="write type[:radix[:period[:fraction]]]") from None
    if name in ("spread", "random_spread") and numbers and "period" not in changes:
        changes["period"] = max(1, min(graph.period, -(-graph.width // max(1, changes["radix"]))))
    return replace(graph, type=name, shape=shape, **changes)


def graph_from_text(values: dict[str, str], index: int = 0) -> Graph:
    """A graph from options as text; what is not given has the command line's defaults."""
    convert: dict[str, Any] = {"type": str, "fraction": float, "shape": parse_shape}
    fields: dict[str, Any] = {"steps": 4, "width": 4, "type": "trivial", "index": index}
    for name, text in values.items():
        try:
            fields[name] = convert.get(name, int)(text)
        except ValueError:
            raise GraphError(f"--{name} {text} is not a number") from None
    shape, type_ = fields.pop("shape", None), fields.pop("type")
    return parse_type(type_, Graph(type="trivial", **fields), shape)
