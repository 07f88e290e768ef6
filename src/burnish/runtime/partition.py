"""Partitions: maps from colors to subregions. Disjointness and completeness are computed, never trusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from burnish._native import ispace as _ispace
from burnish._native import runtime as _rt
from burnish.runtime.errors import PartitionError, ProjectionError, handles
from burnish.runtime.naming import name_of, origin_here, text_of
from burnish.runtime.region import Rect, Region


class Partition(_rt.PartitionBase):  # type: ignore[misc]
    """Subregions of one parent, one per color; ``p[c]``, ``p[each]``, ``p[each - 1]``, ``p[each.x, each.y + 1]``."""

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Partition:
        raise TypeError("make partitions with block, restrict, ghost, by_color, by_sets, image or preimage")

    @property
    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = _rt.partition_info(self)
        return info

    @property
    def colors(self) -> tuple[int, ...]:
        """Shape of the color space."""
        shape: tuple[int, ...] = self._info["shape"]
        return shape

    @property
    def parent(self) -> Region:
        parent: Region = self._info["parent"]
        return parent

    @property
    def disjoint(self) -> bool:
        """No two colors share a point."""
        return bool(self._info["disjoint"])

    @property
    def complete(self) -> bool:
        """The union of all subregions is the parent."""
        return bool(self._info["complete"])

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Points per color, int64 of the color space's shape."""
        info = self._info
        return np.array([s.volume for s in info["spaces"]], dtype=np.int64).reshape(info["shape"])

    @property
    def name(self) -> str:
        """The variable it was assigned to, else the expression that made it."""
        info = self._info
        return name_of(info["origin"]) or text_of(info["origin"].site) or f"partition{info['id']}"

    @property
    def color_range(self) -> str:
        """The colors as text: ``0..15``, or ``0..3, 0..4``."""
        return ", ".join(f"0..{n - 1}" for n in self.colors)

    def __iter__(self) -> Iterator[Region]:
        for color in np.ndindex(*self.colors):
            yield self[color if len(color) > 1 else color[0]]

    def __repr__(self) -> str:
        info = self._info
        kind = ("disjoint" if info["disjoint"] else "aliased") + (", complete" if info["complete"] else "")
        return f"<partition {self.name} of {info['parent'].name} into {info['shape']}, {kind}>"

    def _combine(self, other: Partition, operation: Any, symbol: str) -> Partition:
        a, b = self._info, other._info
        if a["parent"].root != b["parent"].root or a["shape"] != b["shape"]:
            raise PartitionError(
                f"{self.name} {symbol} {other.name} needs two partitions of one region with equal colors, "
                f"got {a['shape']} of '{a['parent'].root.name}' and {b['shape']} of '{b['parent'].root.name}'"
            )
        spaces = [operation(x, y) for x, y in zip(a["spaces"], b["spaces"], strict=True)]
        return _make(a["parent"].root, a["shape"], spaces)

    def __or__(self, other: Partition) -> Partition:
        return self._combine(other, _ispace.unite, "|")

    def __and__(self, other: Partition) -> Partition:
        return self._combine(other, _ispace.intersection, "&")

    def __sub__(self, other: Partition) -> Partition:
        return self._combine(other, _ispace.difference, "-")


def _shape(colors: int | Sequence[int]) -> list[int]:
    shape = [int(colors)] if isinstance(colors, (int, np.integer)) else [int(c) for c in colors]
    if not shape or any(c < 0 for c in shape):
        raise PartitionError(f"colors {colors!r} must be a count or a tuple of counts")
    return shape


def _add(parent: Region, shape: Sequence[int], built: tuple[list[Any], bool, bool]) -> Partition:
    spaces, disjoint, complete = built
    part: Partition = _rt.add_partition(parent, list(shape), spaces, disjoint, complete, origin_here())
    return part


def _make(parent: Region, shape: Sequence[int], spaces: list[Any]) -> Partition:
    return _add(parent, shape, _ispace.by_spaces(parent.ispace, spaces))


def _width(width: int | Sequence[int], dims: int) -> list[int]:
    widths = [int(width)] * dims if isinstance(width, (int, np.integer)) else [int(w) for w in width]
    if len(widths) != dims or any(w < 0 for w in widths):
        raise PartitionError(f"width {width!r} must be one count or one per dimension ({dims})")
    return widths


def block(r: Region, colors: int | Sequence[int]) -> Partition:
    """Equal blocks: color c of k over n points gets ``[c*n//k, (c+1)*n//k)`` in each dimension."""
    shape = _shape(colors)
    lo, _ = r.ispace.bounds
    if r.dense and len(shape) != len(lo):
        raise PartitionError(f"'{r.name}' has {len(lo)} dimensions, the colors {tuple(shape)} have {len(shape)}")
    return _add(r, shape, _ispace.block(r.ispace, shape))


def restrict(
    r: Region,
    colors: int | Sequence[int],
    transform: npt.ArrayLike,
    extent: Sequence[int],
    offset: int | Sequence[int] = 0,
) -> Partition:
    """Color c gets the rectangle at ``transform @ c + offset`` of size ``extent``, clipped to ``r``.

    ``transform`` has shape (dimensions of r, dimensions of the color space).
    """
    shape = _shape(colors)
    dims = len(r.ispace.bounds[0])
    matrix = np.asarray(transform, dtype=np.int64).reshape(dims, len(shape))
    extents = [int(e) for e in np.broadcast_to(np.asarray(extent, dtype=np.int64), (dims,))]
    offsets = [int(o) for o in np.broadcast_to(np.asarray(offset, dtype=np.int64), (dims,))]
    return _add(r, shape, _ispace.restrict(r.ispace, shape, matrix.ravel().tolist(), extents, offsets))


def ghost(p: Partition, width: int | Sequence[int], *, wrap: bool = False, include_self: bool = True) -> Partition:
    """Each rectangle of ``p`` grown by ``width`` points per side, clipped to (or wrapped around) the parent.

    ``include_self=False`` leaves out the piece itself.
    """
    info = p._info
    dims = len(info["parent"].ispace.bounds[0])
    return _add(
        info["parent"],
        info["shape"],
        _ispace.ghost(info["parent"].ispace, info["spaces"], _width(width, dims), wrap, include_self),
    )


def by_color(r: Region, colors: str | npt.ArrayLike, count: int | None = None) -> Partition:
    """The point with color c goes to subregion c; -1 goes nowhere. ``colors``: a field of ``r``, or one int per point.

    ``count`` is the number of colors (default: the largest color + 1); colors without points get empty subregions.
    """
    values = r.numpy(colors) if isinstance(colors, str) else np.asarray(colors)
    flat = np.ascontiguousarray(values, dtype=np.int64).ravel()
    if flat.size != r.volume:
        raise PartitionError(f"by_color: {flat.size} colors for the {r.volume} points of '{r.name}'")
    largest = int(flat.max()) if flat.size else -1
    n = largest + 1 if count is None else count
    for at in np.flatnonzero((flat < -1) | (flat >= n))[:1]:
        raise PartitionError(
            f"by_color: color {flat[at]} of point {at} is outside 0..{n - 1}; -1 means 'in no subregion'"
        )
    return _add(r, [n], _ispace.by_color(r.ispace, flat, n))


def by_sets(r: Region, sets: Sequence[npt.ArrayLike | Rect]) -> Partition:
    """Explicit subregions: row-major positions (any order) or rectangles of ``r``'s root, one entry per color."""
    root_hi = list(_rt.root_info(r)["shape"])
    root_lo = [0] * len(root_hi)
    spaces = []
    for color, points in enumerate(sets):
        if isinstance(points, Rect):
            space = _ispace.rect(root_lo, root_hi, list(points.lo), list(points.hi))
        else:
            space = _ispace.points(root_lo, root_hi, np.ascontiguousarray(points, dtype=np.int64).ravel())
        if not _ispace.covers(r.ispace, space):
            raise PartitionError(f"by_sets: set {color} has points outside '{r.name}'")
        spaces.append(space)
    return _make(r, [len(spaces)], spaces)


def _pointers(source: Region, pointer: str | npt.ArrayLike) -> tuple[npt.NDArray[np.int64], str]:
    if isinstance(pointer, str):
        values, label = source.root.numpy(pointer), f"{source.root.name}.{pointer}"
    else:
        values, label = np.asarray(pointer), "pointer"
    return np.ascontiguousarray(values, dtype=np.int64).ravel(), label


def _follow(
    builder: Any, spaces: list[Any], pointers: npt.NDArray[np.int64], over: Any, label: str, target: Region
) -> Any:
    size = int(np.prod(_rt.root_info(target)["shape"]))
    bad = np.flatnonzero((pointers < -1) | (pointers >= size))
    if bad.size:
        at = int(bad[0])
        raise PartitionError(f"{label}[{at}] = {pointers[at]} is outside '{target.root.name}' ({size} points)")
    return builder(spaces, pointers, over)


def image(p: Partition, pointer: str | npt.ArrayLike, target: Region) -> Partition:
    """Color c gets ``{ pointer[i] : i in p[c] }``, a subset of ``target`` (usually aliased). -1 points nowhere.

    ``pointer``: an integer field of p's region, or one target position per point of p's root.
    """
    info = p._info
    pointers, label = _pointers(info["parent"], pointer)
    return _add(target, info["shape"], _follow(_ispace.image, info["spaces"], pointers, target.ispace, label, target))


def preimage(p: Partition, pointer: str | npt.ArrayLike, source: Region) -> Partition:
    """Color c gets ``{ i in source : pointer[i] in p[c] }``; ``pointer`` is a field of ``source`` or an array."""
    info = p._info
    pointers, label = _pointers(source, pointer)
    return _add(
        source, info["shape"], _follow(_ispace.preimage, info["spaces"], pointers, source.ispace, label, info["parent"])
    )


@handles("color")
def _color(part: Partition, key: Any) -> ProjectionError:
    return ProjectionError(f"{part.name}[{key!r}]: colors of this partition are {part.color_range}")
