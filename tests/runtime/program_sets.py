"""Sets of points and partitions for the test oracle: plain Python integers as bit sets, nothing from burnish.

Every builder restates the definition of its burnish counterpart, point by point.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Points:
    """Some points of a grid of ``shape``: bit ``l`` of ``bits`` stands for row-major position ``l``."""

    shape: tuple[int, ...]
    bits: int

    @staticmethod
    def everything(shape: tuple[int, ...]) -> Points:
        return Points(shape, (1 << math.prod(shape)) - 1)

    @staticmethod
    def of(shape: tuple[int, ...], ids: Sequence[int]) -> Points:
        bits = 0
        for i in ids:
            bits |= 1 << int(i)
        return Points(shape, bits)

    @staticmethod
    def rect(shape: tuple[int, ...], lo: Sequence[int], hi: Sequence[int]) -> Points:
        """The rectangle ``lo <= x < hi``, clipped to the grid."""
        ranges = [range(max(0, l), min(n, h)) for n, l, h in zip(shape, lo, hi, strict=True)]
        return Points.of(shape, [position(shape, x) for x in itertools.product(*ranges)])

    @property
    def volume(self) -> int:
        return self.bits.bit_count()

    @cached_property
    def ids(self) -> Ids:
        """Row-major positions, ascending."""
        raw = np.frombuffer(self.bits.to_bytes(math.prod(self.shape) // 8 + 1, "little"), np.uint8)
        return np.flatnonzero(np.unpackbits(raw, bitorder="little"))

    @cached_property
    def coordinates(self) -> list[tuple[int, ...]]:
        return (
            list(zip(*(c.tolist() for c in np.unravel_index(self.ids, self.shape)), strict=True)) if self.bits else []
        )

    @cached_property
    def bounds(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Bounding box; of the empty set, an empty one at the origin."""
        if not self.bits:
            return (0,) * len(self.shape), (0,) * len(self.shape)
        columns = list(zip(*self.coordinates, strict=True))
        return tuple(min(c) for c in columns), tuple(max(c) + 1 for c in columns)

    @cached_property
    def dense(self) -> bool:
        lo, hi = self.bounds
        return math.prod(h - l for l, h in zip(lo, hi, strict=True)) == self.volume

    def __or__(self, other: Points) -> Points:
        return Points(self.shape, self.bits | other.bits)

    def __and__(self, other: Points) -> Points:
        return Points(self.shape, self.bits & other.bits)

    def __sub__(self, other: Points) -> Points:
        return Points(self.shape, self.bits & ~other.bits)


def position(shape: Sequence[int], x: Sequence[int]) -> int:
    linear = 0
    for n, c in zip(shape, x, strict=True):
        linear = linear * n + c
    return linear


def colors_of(shape: Sequence[int]) -> list[tuple[int, ...]]:
    """All colors in row-major order."""
    return list(itertools.product(*map(range, shape)))


@dataclass(frozen=True)
class Pieces:
    """A partition: color space and one set per color, row-major."""

    colors: tuple[int, ...]
    sets: tuple[Points, ...]

    @cached_property
    def disjoint(self) -> bool:
        return sum(s.volume for s in self.sets) == self.union.bit_count()

    @cached_property
    def union(self) -> int:
        bits = 0
        for s in self.sets:
            bits |= s.bits
        return bits


def block(parent: Points, colors: tuple[int, ...]) -> Pieces:
    sets = []
    for color in colors_of(colors):
        if parent.dense:
            lo, hi = list(parent.bounds[0]), list(parent.bounds[1])
            for d, (c, k) in enumerate(zip(color, colors, strict=True)):
                n = parent.bounds[1][d] - parent.bounds[0][d]
                lo[d], hi[d] = parent.bounds[0][d] + c * n // k, parent.bounds[0][d] + (c + 1) * n // k
            sets.append(Points.rect(parent.shape, lo, hi))
        else:
            n = parent.volume
            sets.append(
                Points.of(parent.shape, parent.ids[color[0] * n // colors[0] : (color[0] + 1) * n // colors[0]])
            )
    return Pieces(colors, tuple(sets))


def restrict(
    parent: Points,
    colors: tuple[int, ...],
    transform: Sequence[Sequence[int]],
    extent: Sequence[int],
    offset: Sequence[int],
) -> Pieces:
    sets = []
    for color in colors_of(colors):
        lo = [o + sum(t * c for t, c in zip(row, color, strict=True)) for o, row in zip(offset, transform, strict=True)]
        sets.append(Points.rect(parent.shape, lo, [l + e for l, e in zip(lo, extent, strict=True)]) & parent)
    return Pieces(colors, tuple(sets))


def ghost(parent: Points, pieces: Pieces, width: Sequence[int], wrap: bool, include_self: bool) -> Pieces:
    lo, hi = parent.bounds
    sets = []
    for piece in pieces.sets:
        near = set()
        for x in piece.coordinates:
            axes = []
            for c, w, l, h in zip(x, width, lo, hi, strict=True):
                around = range(c - w, c + w + 1)
                axes.append([l + (a - l) % (h - l) for a in around] if wrap else [a for a in around if l <= a < h])
            near.update(itertools.product(*axes))
        around = Points.of(parent.shape, [position(parent.shape, x) for x in near]) & parent
        sets.append(around if include_self else around - piece)
    return Pieces(pieces.colors, tuple(sets))


def by_color(parent: Points, colors: Sequence[int]) -> Pieces:
    count = max(colors, default=-1) + 1
    ids = parent.ids.tolist()
    sets = [Points.of(parent.shape, [i for i, c in zip(ids, colors, strict=True) if c == k]) for k in range(count)]
    return Pieces((count,), tuple(sets))


def image(pieces: Pieces, pointer: Sequence[int], target: Points) -> Pieces:
    reached = [Points.of(target.shape, [pointer[i] for i in s.ids.tolist() if pointer[i] >= 0]) for s in pieces.sets]
    return Pieces(pieces.colors, tuple(s & target for s in reached))


def preimage(pieces: Pieces, pointer: Sequence[int], source: Points) -> Pieces:
    ids = source.ids.tolist()
    sets = [
        Points.of(source.shape, [i for i in ids if pointer[i] >= 0 and s.bits >> pointer[i] & 1]) for s in pieces.sets
    ]
    return Pieces(pieces.colors, tuple(sets))


def combine(a: Pieces, b: Pieces, symbol: str) -> Pieces:
    operation = {"|": Points.__or__, "&": Points.__and__, "-": Points.__sub__}[symbol]
    return Pieces(a.colors, tuple(operation(x, y) for x, y in zip(a.sets, b.sets, strict=True)))
