"""Other shapes of the same elements: views where strides allow, copies otherwise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from burnish.runtime.array import _native
from burnish.runtime.array._native import ndarray
from burnish.runtime.array.creation import asarray, dtype_of, empty


def axis_index(axis: int, ndim: int) -> int:
    """``axis`` counted from 0; raises numpy.exceptions.AxisError."""
    index = int(axis)
    if not -ndim <= index < ndim:
        raise np.exceptions.AxisError(index, ndim)
    return index % ndim if ndim else 0


def transpose(a: Any, axes: Sequence[int] | None = None) -> ndarray:
    """View with permuted axes (reversed by default)."""
    a = asarray(a)
    order = tuple(reversed(range(a.ndim))) if axes is None else tuple(axis_index(d, a.ndim) for d in axes)
    if sorted(order) != list(range(a.ndim)):
        raise ValueError("axes don't match array")
    return _native.view(a, [a.shape[d] for d in order], [a.strides[d] for d in order])


def swapaxes(a: Any, axis1: int, axis2: int) -> ndarray:
    """View with two axes exchanged."""
    order = list(range(a.ndim))
    i, j = axis_index(axis1, a.ndim), axis_index(axis2, a.ndim)
    order[i], order[j] = order[j], order[i]
    return transpose(a, order)


def _strides_for(shape: Sequence[int], old_shape: Sequence[int], old_strides: Sequence[int]) -> list[int] | None:
    """Strides that walk the elements of a strided array in C order with another shape; None if there are none."""
    old = [(n, s) for n, s in zip(old_shape, old_strides, strict=True) if n != 1]
    strides: list[int] = []
    i = 0
    j = 0
    new = list(shape)
    while i < len(old) and j < len(new):
        np_, op = new[j], old[i][0]
        nj, oi = j + 1, i + 1
        while np_ != op:
            if np_ < op:
                np_ *= new[nj]
                nj += 1
            else:
                op *= old[oi][0]
                oi += 1
        for k in range(i, oi - 1):
            if old[k][1] != old[k + 1][0] * old[k + 1][1]:
                return None
        run = [old[oi - 1][1]]
        for k in range(nj - 1, j, -1):
            run.append(run[-1] * new[k])
        strides += reversed(run)
        i, j = oi, nj
    last = strides[-1] if strides else 0
    return strides + [last] * (len(new) - len(strides))


def reshape(a: Any, shape: int | Sequence[int], order: str = "C") -> ndarray:
    """The elements in C order with another shape; a view where possible, as in NumPy. One extent may be -1."""
    a = asarray(a)
    if order != "C":
        raise NotImplementedError("bn.reshape is available with order='C' only")
    wanted = [int(shape)] if hasattr(shape, "__index__") else [int(n) for n in shape]
    if wanted.count(-1) == 1:
        known = math.prod(n for n in wanted if n != -1)
        if known and a.size % known == 0:
            wanted[wanted.index(-1)] = a.size // known
    if math.prod(wanted) != a.size or any(n < 0 for n in wanted):
        raise ValueError(f"cannot reshape array of size {a.size} into shape {tuple(wanted)}")
    strides = [a.dtype.itemsize] * len(wanted) if a.size == 0 else _strides_for(wanted, a.shape, a.strides)
    if strides is None:
        a = _native.copy_of(a, a.dtype)
        strides = _strides_for(wanted, a.shape, a.strides)
    assert strides is not None
    return _native.view(a, wanted, strides)


def ravel(a: Any) -> ndarray:
    """The elements in C order along one axis; a view where possible."""
    return reshape(a, (-1,) if asarray(a).size else (0,))


def squeeze(a: Any, axis: int | None = None) -> ndarray:
    """View without axes of length 1 (or without one of them)."""
    a = asarray(a)
    if axis is not None and a.shape[axis_index(axis, a.ndim)] != 1:
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    drop = range(a.ndim) if axis is None else (axis_index(axis, a.ndim),)
    keep = [d for d in range(a.ndim) if d not in drop or a.shape[d] != 1]
    return _native.view(a, [a.shape[d] for d in keep], [a.strides[d] for d in keep])


def expand_dims(a: Any, axis: int) -> ndarray:
    """View with a new axis of length 1."""
    a = asarray(a)
    at = axis_index(axis, a.ndim + 1)
    key: list[Any] = [slice(None)] * a.ndim
    key.insert(at, None)
    return a[tuple(key)]


def broadcast_to(a: Any, shape: int | Sequence[int]) -> ndarray:
    """A read-only use of ``a`` with repeated axes (stride 0)."""
    a = asarray(a)
    wanted = np.broadcast_shapes((int(shape),) if hasattr(shape, "__index__") else tuple(shape), ())
    if np.broadcast_shapes(a.shape, wanted) != wanted:
        raise ValueError(f"cannot broadcast {a.shape} to {wanted}")
    lead = len(wanted) - a.ndim
    strides = [0] * lead + [s if a.shape[d] == wanted[lead + d] else 0 for d, s in enumerate(a.strides)]
    return _native.view(a, wanted, strides)


def copy(a: Any) -> ndarray:
    """A packed copy."""
    a = asarray(a)
    return _native.copy_of(a, a.dtype)


def astype(a: Any, dtype: npt.DTypeLike, copy: bool = True) -> ndarray:
    """A copy with another dtype."""
    a = asarray(a)
    wanted = dtype_of(dtype)
    return a if not copy and wanted == a.dtype else _native.copy_of(a, wanted)


def roll(a: Any, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> ndarray:
    """Elements moved along an axis (or several), those that leave at one end coming in at the other."""
    a = asarray(a)
    if type(shift) is int and type(axis) is int and 0 < a.ndim <= 4:
        shifts = [0] * a.ndim
        shifts[axis_index(axis, a.ndim)] = shift
        return _native.roll(a, shifts)
    if axis is None:
        flat = ravel(a)
        return reshape(roll(flat, sum(shift) if isinstance(shift, Sequence) else shift, 0), a.shape)
    axes = [axis] if isinstance(axis, int) else list(axis)
    by = [shift] * len(axes) if isinstance(shift, int) else list(shift)
    if len(by) == 1:
        by = by * len(axes)
    if len(axes) == 1:
        axes = axes * len(by)
    total = [0] * a.ndim
    for s, d in zip(by, axes, strict=True):
        total[axis_index(d, a.ndim)] += int(s)
    if not 1 <= a.ndim <= 4:
        raise NotImplementedError("bn.roll is available for 1 to 4 axes")
    return _native.roll(a, [s % n if n else 0 for s, n in zip(total, a.shape, strict=True)])


def concatenate(arrays: Sequence[Any], axis: int | None = 0) -> ndarray:
    """Arrays one after the other along an axis; dtypes are promoted."""
    parts = [asarray(x) for x in arrays]
    if not parts:
        raise ValueError("need at least one array to concatenate")
    if axis is None:
        parts, axis = [ravel(x) for x in parts], 0
    first = parts[0]
    if first.ndim == 0:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    d = axis_index(axis, first.ndim)
    for x in parts:
        if x.ndim != first.ndim or x.shape[:d] + x.shape[d + 1 :] != first.shape[:d] + first.shape[d + 1 :]:
            raise ValueError("all the input array dimensions except for the concatenation axis must match exactly")
    shape = list(first.shape)
    shape[d] = sum(x.shape[d] for x in parts)
    out = empty(shape, np.result_type(*[x.dtype for x in parts]))
    at = 0
    for x in parts:
        out[(slice(None),) * d + (slice(at, at + x.shape[d]),)] = x
        at += x.shape[d]
    return out


def stack(arrays: Sequence[Any], axis: int = 0) -> ndarray:
    """Arrays of one shape along a new axis."""
    parts = [asarray(x) for x in arrays]
    if not parts:
        raise ValueError("need at least one array to stack")
    if any(x.shape != parts[0].shape for x in parts):
        raise ValueError("all input arrays must have the same shape")
    return concatenate([expand_dims(x, axis) for x in parts], axis_index(axis, parts[0].ndim + 1))


def vstack(arrays: Sequence[Any]) -> ndarray:
    """Arrays below each other."""
    parts = [asarray(x) for x in arrays]
    return concatenate([x if x.ndim > 1 else reshape(x, (1, -1)) for x in parts], 0)


def hstack(arrays: Sequence[Any]) -> ndarray:
    """Arrays beside each other."""
    parts = [asarray(x) for x in arrays]
    parts = [x if x.ndim else reshape(x, (1,)) for x in parts]
    return concatenate(parts, 0 if parts[0].ndim == 1 else 1)
