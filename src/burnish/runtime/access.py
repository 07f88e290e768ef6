"""What bodies use besides plain arrays: sparse fields, objects with one array per field, gather and scatter."""

from __future__ import annotations

import functools
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from burnish._native import runtime as _rt
from burnish.runtime.errors import OutOfRegionError, PrivilegeError, RuntimeProblem
from burnish.runtime.locate import out_of_region


class Constant(np.ndarray[Any, Any]):
    """Read-only data shared by all tasks; made by :func:`constant`."""


def constant(array: npt.ArrayLike) -> Constant:
    """A read-only copy of ``array`` that task bodies may capture or receive at any size."""
    frozen = np.array(array).view(Constant)
    frozen.flags.writeable = False
    return frozen


class SparseField(np.ndarray[Any, Any]):
    """One field of a sparse subregion: its values packed in ascending order, shape (n, ...inner), as an array.

    ``index``: the row-major positions of the points in the root, int64 of shape (n,). Under write privileges the values
    are written back after the task. Results of arithmetic are plain arrays; slices have no index.
    """

    index: npt.NDArray[np.int64] | None = None

    def __new__(cls, index: npt.NDArray[np.int64], values: npt.NDArray[Any]) -> SparseField:
        made = values.view(cls)
        made.index = index
        return made

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else array

    @property
    def values(self) -> npt.NDArray[Any]:
        """The same memory as a plain array."""
        return self.view(np.ndarray)

    def local(self, ids: npt.ArrayLike) -> npt.NDArray[np.intp]:
        """Positions among the packed values of the given root positions; raises OutOfRegionError if one is absent."""
        _, index = _placed(self)
        wanted = np.asarray(ids)
        where = np.searchsorted(index, wanted)
        inside = where < index.size
        inside[inside] = index[where[inside]] == wanted[inside]
        if not inside.all():
            raise out_of_region(int(wanted[~inside].flat[0]), [self])
        return where


@functools.cache
def _fields_class(names: tuple[str, ...]) -> type:
    def guard(self: Any, name: str, value: Any) -> None:
        # `w.x += y` stores the same array back after adding in place; anything else would be lost.
        if getattr(self, name, None) is not value:
            raise PrivilegeError(f"assigning to .{name} changes no data; write .{name}[:] = ...")

    return type(
        "Fields", (), {"__slots__": names, "__setattr__": guard, "__doc__": "One array per field of an argument."}
    )


def fields_view(names: list[str], values: list[Any]) -> Any:
    """An object with the given attributes, which can be changed in place but not rebound."""
    cls = _fields_class(tuple(names))
    made: Any = object.__new__(cls)
    for name, value in zip(names, values, strict=True):
        object.__setattr__(made, name, value)
    return made


_places: dict[int, tuple[weakref.ref[Any], int]] = {}  # worker processes: first position of arrays they received


def placed(array: npt.NDArray[Any], lo: int) -> npt.NDArray[Any]:
    """Remember where an argument of the running task starts in its root; called in worker processes."""
    if len(_places) > 256:
        for key in [k for k, (ref, _) in _places.items() if ref() is None]:
            del _places[key]
    _places[id(array)] = (weakref.ref(array), lo)
    return array


def _placed(field: Any) -> tuple[npt.NDArray[Any], Any]:
    """Values of a field argument and how root positions map to them (index array, or first position of a block)."""
    if isinstance(field, SparseField) and field.index is not None:
        return field.values, field.index
    reference, start = _places.get(id(field), (None, 0))
    if reference is not None and reference() is field:
        return np.asarray(field), start
    lo: tuple[int, ...] | None = _rt.placement(field)
    if lo is None:
        raise RuntimeProblem("gather and scatter take the arrays that the task received, not copies or slices of them")
    if len(lo) != 1:
        raise RuntimeProblem("gather and scatter take fields of one-dimensional regions")
    return field, int(lo[0])


def _local(
    ids: npt.NDArray[Any], values: npt.NDArray[Any], where: Any
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    if isinstance(where, int):
        local = ids - where
        return local, (local >= 0) & (local < len(values))
    if len(where) == 0:
        return np.zeros(ids.shape, np.intp), np.zeros(ids.shape, np.bool_)
    local = np.minimum(np.searchsorted(where, ids), len(where) - 1)
    return local, where[local] == ids


def _missing(ids: npt.NDArray[Any], found: npt.NDArray[np.bool_], fields: tuple[Any, ...]) -> OutOfRegionError:
    return out_of_region(int(ids[~found].flat[0]), fields)


def gather(ids: npt.NDArray[Any], *fields: Any) -> npt.NDArray[Any]:
    """Values at root positions ``ids`` (any shape), each taken from the first of ``fields`` that contains it.

    ``fields``: arrays or sparse fields of one-dimensional regions, as the body received them. The result has the shape
    of ``ids`` followed by the field's inner shape. Raises OutOfRegionError for a position that none of them has.
    """
    if not fields:
        raise RuntimeProblem("gather needs at least one field to take values from")
    ids = np.asarray(ids)
    result: npt.NDArray[Any] | None = None
    found = np.zeros(ids.shape, np.bool_)
    for field in fields:
        values, where = _placed(field)
        local, inside = _local(ids, values, where)
        if result is None:
            result = np.empty(ids.shape + values.shape[1:], values.dtype)
        take = inside & ~found
        result[take] = values[local[take]]
        found |= inside
    if not found.all():
        raise _missing(ids, found, fields)
    assert result is not None
    return result


def scatter(ids: npt.NDArray[Any], values: npt.ArrayLike, *fields: Any) -> None:
    """Store ``values`` at root positions ``ids``, each into the first of ``fields`` that contains it."""
    _spread(ids, values, fields, add=False)


def scatter_add(ids: npt.NDArray[Any], values: npt.ArrayLike, *fields: Any) -> None:
    """Add ``values`` at root positions ``ids`` (repeated ids add up, in order), into the first field that contains each."""
    _spread(ids, values, fields, add=True)


def _spread(ids: npt.NDArray[Any], values: npt.ArrayLike, fields: tuple[Any, ...], add: bool) -> None:
    ids = np.asarray(ids)
    found = np.zeros(ids.shape, np.bool_)
    spread = np.broadcast_to(np.asarray(values), ids.shape + np.asarray(values).shape[ids.ndim :])
    for field in fields:
        target, where = _placed(field)
        local, inside = _local(ids, target, where)
        take = inside & ~found
        if add:
            np.add.at(target, local[take], spread[take])
        else:
            target[local[take]] = spread[take]
        found |= inside
    if not found.all():
        raise _missing(ids, found, fields)
