"""Reductions by a tree that depends on the shape only: the same bits for every number of workers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from burnish.runtime.array import _native
from burnish.runtime.array._native import ndarray
from burnish.runtime.array.creation import asarray, dtype_of, full
from burnish.runtime.array.shaping import axis_index, reshape, transpose

Axis = int | Sequence[int] | None


def _reduce(name: str, a: Any, axis: Axis, dtype: np.dtype[Any], keepdims: bool, identity: Any) -> ndarray:
    axes = (
        range(a.ndim)
        if axis is None
        else sorted({axis_index(d, a.ndim) for d in ([axis] if isinstance(axis, int) else axis)})
    )
    shape = a.shape
    kept = [n for d, n in enumerate(shape) if d not in axes]
    if math.prod(a.shape[d] for d in axes) == 0:
        if identity is None:
            raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
        out = full(kept, identity, dtype)
    else:
        first, last = (axes[0], axes[-1] + 1) if axes else (0, 0)
        if last - first != len(axes):  # other axes lie between: reduced axes go first, in their order
            a = transpose(a, [*axes, *(d for d in range(a.ndim) if d not in axes)])
            first, last = 0, len(axes)
        out = _native.reduce_axes(name, a, first, last, dtype)
    if keepdims:
        return reshape(out, [1 if d in axes else n for d, n in enumerate(shape)])
    return out if kept else _native.set_scalar(out)


def _sum_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.kind == "b" or (dtype.kind == "i" and dtype.itemsize < 8):
        return np.dtype(np.int64)
    return np.dtype(np.uint64) if dtype.kind == "u" and dtype.itemsize < 8 else dtype


def sum(a: Any, axis: Axis = None, dtype: npt.DTypeLike | None = None, keepdims: bool = False) -> ndarray:
    """Sum; small integers and booleans are summed as 64-bit integers."""
    a = asarray(a)
    return _reduce("add", a, axis, _sum_type(a.dtype) if dtype is None else dtype_of(dtype), keepdims, 0)


def prod(a: Any, axis: Axis = None, dtype: npt.DTypeLike | None = None, keepdims: bool = False) -> ndarray:
    """Product; small integers and booleans are multiplied as 64-bit integers."""
    a = asarray(a)
    return _reduce("multiply", a, axis, _sum_type(a.dtype) if dtype is None else dtype_of(dtype), keepdims, 1)


def min(a: Any, axis: Axis = None, keepdims: bool = False) -> ndarray:
    """Smallest element; NaN if there is one."""
    a = asarray(a)
    return _reduce("minimum", a, axis, a.dtype, keepdims, None)


def max(a: Any, axis: Axis = None, keepdims: bool = False) -> ndarray:
    """Largest element; NaN if there is one."""
    a = asarray(a)
    return _reduce("maximum", a, axis, a.dtype, keepdims, None)


def any(a: Any, axis: Axis = None, keepdims: bool = False) -> ndarray:
    """Whether some element is not zero."""
    return _reduce("logical_or", asarray(a), axis, np.dtype(bool), keepdims, False)


def all(a: Any, axis: Axis = None, keepdims: bool = False) -> ndarray:
    """Whether no element is zero."""
    return _reduce("logical_and", asarray(a), axis, np.dtype(bool), keepdims, True)


def mean(a: Any, axis: Axis = None, keepdims: bool = False) -> ndarray:
    """Arithmetic mean, in float64 for integers and booleans."""
    a = asarray(a)
    dtype = np.dtype(np.float64) if a.dtype.kind in "biu" else a.dtype
    total = _reduce("add", a, axis, dtype, keepdims, 0)
    count = a.size // (total.size or 1) if total.size else 0
    return total / (total.dtype.type(count) if total.dtype.kind == "f" else count)
