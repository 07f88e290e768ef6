"""Regions: index spaces with fields. A root region owns memory; subregions name some of its points."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from burnish._native import ispace as _ispace
from burnish._native import runtime as _rt
from burnish.runtime import races
from burnish.runtime.errors import HostAccessError, RuntimeProblem, handles
from burnish.runtime.lineage import journal
from burnish.runtime.memory import make_room_for_region
from burnish.runtime.naming import name_of, origin_here

if TYPE_CHECKING:
    from burnish.runtime.partition import Partition

MAX_FIELDS = 64
READ, WRITE, READ_WRITE, REDUCE = 1, 2, 3, 4  # as in native/runtime/record.hpp


@dataclass(frozen=True)
class Rect:
    """A rectangle of points: ``lo[d] <= x < hi[d]`` in each of 1 to 4 dimensions."""

    lo: tuple[int, ...]
    hi: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.lo) != len(self.hi) or not 1 <= len(self.lo) <= 4:
            raise RuntimeProblem(f"Rect({self.lo}, {self.hi}): lo and hi need the same 1 to 4 coordinates")

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(max(0, h - l) for l, h in zip(self.lo, self.hi, strict=True))


@dataclass(frozen=True)
class IndexSpace:
    """The points of a region: all of ``shape``, or some of its row-major positions (``points``, int64)."""

    shape: tuple[int, ...]
    points: npt.NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Field:
    """A named column: scalar ``dtype`` and the inner shape that every point holds."""

    name: str
    dtype: np.dtype[Any]
    inner: tuple[int, ...] = ()


def fields_of(dtype: npt.DTypeLike | Mapping[str, Any] | None, fields: Mapping[str, Any] | None) -> tuple[Field, ...]:
    """Normalize ``dtype``/``fields`` to a tuple of fields; one unnamed dtype becomes field ``value``."""
    if isinstance(dtype, Mapping):
        if fields is not None:
            raise RuntimeProblem("give the fields once: region(n, {...}) or region(n, fields={...})")
        dtype, fields = None, dtype
    if fields is None:
        given = np.dtype("f8" if dtype is None else dtype)
        if given.names:
            fields = {name: given.fields[name][0] for name in given.names}  # type: ignore[index]
        else:
            fields = {"value": given}
    elif dtype is not None:
        raise RuntimeProblem("give either dtype or fields, not both")
    made = []
    for name, spec in fields.items():
        field_dtype = np.dtype(spec)
        inner = tuple(int(n) for n in field_dtype.shape)
        scalar = field_dtype.base
        if scalar.hasobject or scalar.names:
            raise RuntimeProblem(
                f"field '{name}' has dtype {scalar}; regions hold plain numbers (split records into fields)"
            )
        made.append(Field(str(name), scalar.newbyteorder("="), inner))
    if not 1 <= len(made) <= MAX_FIELDS:
        raise RuntimeProblem(f"a region has 1 to {MAX_FIELDS} fields, got {len(made)}; use several regions")
    return tuple(made)


class Region(_rt.RegionBase):  # type: ignore[misc]
    """A set of points with fields; made by :func:`region`, :func:`attach`, indexing or a partition."""

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Region:
        raise TypeError("make regions with burnish.runtime.region(...) or attach(...)")

    @property
    def root(self) -> Region:
        """The region that owns the memory."""
        root: Region = _rt.root_region(self)
        return root

    @property
    def parent(self) -> Region | None:
        """The region this one was cut from; None for a root."""
        _, _, partition, _, is_root = _rt.node_info(self)
        if is_root:
            return None
        return partition.parent if partition is not None else self.root

    @property
    def partition(self) -> Partition | None:
        """The partition this subregion belongs to, if any."""
        part: Partition | None = _rt.node_info(self)[2]
        return part

    @property
    def ispace(self) -> Any:
        """Its points (native index space: ``volume``, ``dense``, ``bounds``, ``intervals()``)."""
        return _rt.node_info(self)[1]

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(Field(*spec) for spec in _rt.root_info(self)["fields"])

    @property
    def name(self) -> str:
        """Given name, or the variable it was assigned to."""
        info = _rt.root_info(self)
        root_name = name_of(info["origin"]) or f"region{info['id']}"
        _, space, partition, color, is_root = _rt.node_info(self)
        if is_root:
            return root_name
        if partition is None:
            lo, hi = space.bounds
            return f"{root_name}[{', '.join(f'{l}:{h}' for l, h in zip(lo, hi, strict=True))}]"
        text = ", ".join(str(int(c)) for c in np.unravel_index(color, partition.colors))
        return f"{partition.name}[{text}]"

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the bounding rectangle."""
        lo, hi = self.ispace.bounds
        return tuple(max(0, h - l) for l, h in zip(lo, hi, strict=True))

    @property
    def volume(self) -> int:
        return int(self.ispace.volume)

    @property
    def dense(self) -> bool:
        return bool(self.ispace.dense)

    def __repr__(self) -> str:
        kind = "" if self.dense else ", sparse"
        return f"<region {self.name}, {self.volume} points{kind}, fields {', '.join(f.name for f in self.fields)}>"

    def __getitem__(self, key: Any) -> Region:
        """A rectangular subregion: ``u[10:20]``, ``u[1:-1, 2:]`` (steps of 1) or ``u[Rect(lo, hi)]``."""
        lo, hi = self.ispace.bounds
        if isinstance(key, Rect):
            sub: Region = _rt.subregion(self, list(key.lo), list(key.hi))
            return sub
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) > len(lo):
            raise RuntimeProblem(f"'{self.name}' has {len(lo)} dimensions, got {len(keys)} indices")
        new_lo, new_hi = list(lo), list(hi)
        for d, k in enumerate(keys):
            extent = hi[d] - lo[d]
            if isinstance(k, slice):
                start, stop, step = k.indices(extent)
                if step != 1:
                    raise RuntimeProblem(f"'{self.name}': subregions by slice have step 1, got {step}; use by_sets")
                new_lo[d], new_hi[d] = lo[d] + start, lo[d] + max(start, stop)
            else:
                index = int(k) + (extent if int(k) < 0 else 0)
                if not 0 <= index < extent:
                    raise RuntimeProblem(f"'{self.name}': index {int(k)} is outside 0..{extent - 1}")
                new_lo[d], new_hi[d] = lo[d] + index, lo[d] + index + 1
        sub = _rt.subregion(self, new_lo, new_hi)
        return sub

    def _field(self, field: str | None) -> Field:
        fields = self.fields
        if field is None:
            if len(fields) > 1:
                raise RuntimeProblem(f"'{self.name}' has fields {', '.join(f.name for f in fields)}: say which one")
            return fields[0]
        for f in fields:
            if f.name == field:
                return f
        raise RuntimeProblem(f"'{self.name}' has no field '{field}'; it has {', '.join(f.name for f in fields)}")

    @contextmanager
    def host(self, mode: Literal["r", "w", "rw"] = "r", field: str | None = None) -> Iterator[npt.NDArray[Any]]:
        """The data as an array for the main program; waits for the tasks that use it.

        A dense region gives a view of its shape (plus the field's inner shape), a sparse one its values packed in
        ascending order (written back at the end under ``w``/``rw``). Raises the first task error.
        """
        if mode not in ("r", "w", "rw"):
            raise RuntimeProblem(f"host mode '{mode}' is none of 'r', 'w', 'rw'")
        chosen = self._field(field)
        log = journal.current()
        if log is not None and log.replaying:
            with journal.recalled(
                mode, chosen.dtype, self.shape + chosen.inner if self.dense else (self.volume, *chosen.inner), log
            ) as past:
                yield past
            return
        with self._host(mode, chosen) as array:
            if log is not None and mode != "w":
                log.seen(np.array(array))
            yield array

    @contextmanager
    def _host(self, mode: str, chosen: Field) -> Iterator[npt.NDArray[Any]]:
        races.before_access(self)
        access = _rt.open_host(self, {"r": READ, "w": READ_WRITE, "rw": READ_WRITE}[mode], chosen.name)
        try:
            if self.dense:
                yield _rt.view(self, chosen.name, mode != "r")
            else:
                values = _rt.packed(self, chosen.name)
                yield values
                if mode != "r":
                    _rt.unpack(self, chosen.name, values)
        finally:
            _rt.close_host(access)
            if mode != "r":
                races.after_access(self)

    def numpy(self, field: str | None = None) -> npt.NDArray[Any]:
        """A copy of one field's values; waits for the tasks that write it, raises the first task error."""
        with self.host("r", field) as array:
            return np.array(array)

    def numpy_unseen(self, field: str) -> npt.NDArray[Any]:
        """A copy of a field that the journal does not count as read by the program."""
        with self._host("r", self._field(field)) as array:
            return np.array(array)

    def restore(self, field: str, values: npt.NDArray[Any]) -> None:
        """Overwrite a field with flat ``values``, not counted by the journal."""
        with self._host("w", self._field(field)) as array:
            array[...] = values.reshape(array.shape)

    def fill(self, value: npt.ArrayLike, field: str | None = None) -> None:
        """Set all points to ``value`` (a scalar or one point's inner array); a launch like any other."""
        from burnish.runtime.filling import fill_field  # tasks are made of regions

        chosen = [self._field(field)] if field is not None or len(self.fields) == 1 else list(self.fields)
        for f in chosen:
            fill_field(self, f, value)

    def detach(self) -> npt.NDArray[Any]:
        """End :func:`attach`: waits, and gives the array back writeable; the region cannot be used any more."""
        info = _rt.root_info(self)
        if not info["attached"]:
            raise RuntimeProblem(f"'{self.name}' was not attached")
        races.before_access(self)
        access = _rt.open_host(self.root, READ_WRITE, None)
        _rt.close_host(access)
        _rt.give_up(self)
        races.forget(self)
        array: npt.NDArray[Any] = info["owner"]
        array.flags.writeable = True
        return array


def region(
    shape: int | Sequence[int] | IndexSpace,
    dtype: npt.DTypeLike | Mapping[str, Any] | None = None,
    *,
    fields: Mapping[str, Any] | None = None,
    name: str | None = None,
    fill: npt.ArrayLike | None = None,
) -> Region:
    """A new root region of ``shape`` (1 to 4 dimensions) with one unnamed field of ``dtype`` or several ``fields``.

    ``dtype`` may be a mapping of field names to dtypes, a structured dtype, or a dtype (field ``value``, default f8);
    subarray dtypes such as ``("f8", 10)`` give every point an inner shape. Contents are zero unless ``fill`` is given.
    """
    whole = shape if isinstance(shape, IndexSpace) else None
    given = whole.shape if whole is not None else shape
    extents = [int(given)] if isinstance(given, (int, np.integer)) else [int(n) for n in given]  # type: ignore[union-attr]
    if not 1 <= len(extents) <= 4:
        raise RuntimeProblem(f"a region has 1 to 4 dimensions, got {len(extents)}")
    if any(n < 0 for n in extents):
        raise RuntimeProblem(f"region shape {tuple(extents)} has a negative extent")
    made = fields_of(dtype, fields)
    space = None
    if whole is not None and whole.points is not None:
        space = _ispace.points([0] * len(extents), extents, np.ascontiguousarray(whole.points, dtype=np.int64))
    origin = origin_here(name)
    points = math.prod(extents)
    make_room_for_region(origin, sum(points * math.prod(f.inner) * f.dtype.itemsize for f in made))
    result: Region = _rt.make_region(extents, space, [(f.name, f.dtype, list(f.inner)) for f in made], None, origin)
    log = journal.current()
    if log is not None:
        log.region(result)
    if fill is not None:
        result.fill(fill)
    return result


def attach(array: npt.NDArray[Any], *, name: str | None = None) -> Region:
    """A region over ``array``'s own memory (C-contiguous, 1 to 4 dimensions), without a copy.

    The array is read-only outside ``host()`` until :meth:`Region.detach`.
    """
    if not isinstance(array, np.ndarray) or not array.flags.c_contiguous or not 1 <= array.ndim <= 4:
        raise RuntimeProblem("attach needs a C-contiguous array of 1 to 4 dimensions; use np.ascontiguousarray first")
    if not array.flags.writeable:
        raise RuntimeProblem("attach needs a writeable array (is it attached already?)")
    (field,) = fields_of(array.dtype, None)
    result: Region = _rt.make_region(list(array.shape), None, [(field.name, field.dtype, [])], array, origin_here(name))
    array.flags.writeable = False
    races.after_access(result)
    return result


@handles("host_open")
def _host_open(region: Region, written: bool) -> HostAccessError:
    info = _rt.root_info(region)
    if info["attached"] and info["owner"].flags.writeable:
        return HostAccessError(f"'{region.name}' was detached from its array; attach the array again")
    return HostAccessError(
        f"'{region.name}' is being {'written' if written else 'read'} by the main program; "
        f"{'use it' if written else 'change it'} after the host() block has ended"
    )


def elements(shape: Sequence[int]) -> int:
    """Number of points of a shape."""
    return math.prod(shape)
