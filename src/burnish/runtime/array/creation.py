"""Making arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from burnish.runtime.array import _native
from burnish.runtime.array._native import ndarray

SUPPORTED = frozenset(np.dtype(c).num for c in "?bBhHiIlLfdFD")


def dtype_of(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """A supported dtype (booleans, integers, float32/64, complex64/128) in native byte order."""
    given = np.dtype(dtype)
    if given.num == np.dtype("longlong").num:
        given = np.dtype(np.int64)
    elif given.num == np.dtype("ulonglong").num:
        given = np.dtype(np.uint64)
    if given.num not in SUPPORTED:
        raise NotImplementedError(
            f"bn arrays of dtype {given} are not available; use booleans, integers, float32, float64, complex64 or complex128"
        )
    return given.newbyteorder("=")


def shape_of(shape: int | Sequence[int]) -> tuple[int, ...]:
    if hasattr(shape, "__index__"):
        return (int(shape),)
    return tuple(int(n) for n in shape)


def wrap(x: Any) -> ndarray:
    """What NumPy made of some data, as an array; NumPy scalars stay scalars."""
    made = np.asarray(x)
    return _native.from_numpy(
        np.ascontiguousarray(made, dtype=dtype_of(made.dtype)).reshape(made.shape), isinstance(x, np.generic)
    )


def array(x: Any, dtype: npt.DTypeLike | None = None, copy: bool = True) -> ndarray:
    """An array with the contents of ``x`` (a bn array, a NumPy array, nested sequences or a number)."""
    if _native.is_array(x):
        if not copy and (dtype is None or x.dtype == np.dtype(dtype)):
            return x
        return _native.copy_of(x, x.dtype if dtype is None else dtype_of(dtype))
    return _native.from_numpy(_host(x, dtype))


def _host(x: Any, dtype: npt.DTypeLike | None) -> npt.NDArray[Any]:
    if isinstance(x, (list, tuple)):
        x = _nested(x)
    made = np.asarray(x, dtype=None if dtype is None else dtype_of(dtype))
    return np.ascontiguousarray(made, dtype=dtype_of(made.dtype)).reshape(made.shape)


def _nested(x: Any) -> Any:
    if _native.is_array(x):
        return _native.to_numpy(x)
    return [_nested(item) for item in x] if isinstance(x, (list, tuple)) else x


def asarray(x: Any, dtype: npt.DTypeLike | None = None) -> ndarray:
    """``x`` itself if it is a bn array (of that dtype), else a new array."""
    return array(x, dtype, copy=False)


def empty(shape: int | Sequence[int], dtype: npt.DTypeLike = float) -> ndarray:
    """A new array whose contents are undefined."""
    return _native.empty(shape_of(shape), dtype_of(dtype))


def full(shape: int | Sequence[int], fill_value: Any, dtype: npt.DTypeLike | None = None) -> ndarray:
    """A new array filled with ``fill_value`` (a number, or an array that broadcasts to ``shape``)."""
    if dtype is None:
        dtype = fill_value.dtype if hasattr(fill_value, "dtype") else np.asarray(fill_value).dtype
    made = empty(shape, dtype)
    _native.assign(made, fill_value)
    return made


def zeros(shape: int | Sequence[int], dtype: npt.DTypeLike = float) -> ndarray:
    """A new array of zeros."""
    return full(shape, 0, dtype)


def ones(shape: int | Sequence[int], dtype: npt.DTypeLike = float) -> ndarray:
    """A new array of ones."""
    return full(shape, 1, dtype)


def empty_like(a: Any, dtype: npt.DTypeLike | None = None) -> ndarray:
    """A new array with the shape and dtype of ``a``; contents undefined."""
    return _native.empty(a.shape, a.dtype if dtype is None else dtype_of(dtype))


def full_like(a: Any, fill_value: Any, dtype: npt.DTypeLike | None = None) -> ndarray:
    """A new array with the shape and dtype of ``a``, filled."""
    made = empty_like(a, dtype)
    _native.assign(made, fill_value)
    return made


def zeros_like(a: Any, dtype: npt.DTypeLike | None = None) -> ndarray:
    """Zeros with the shape and dtype of ``a``."""
    return full_like(a, 0, dtype)


def ones_like(a: Any, dtype: npt.DTypeLike | None = None) -> ndarray:
    """Ones with the shape and dtype of ``a``."""
    return full_like(a, 1, dtype)


def eye(n: int, m: int | None = None, k: int = 0, dtype: npt.DTypeLike = float) -> ndarray:
    """Ones on the k-th diagonal."""
    return wrap(np.eye(n, m, k, dtype=dtype_of(dtype)))


def identity(n: int, dtype: npt.DTypeLike = float) -> ndarray:
    """The n x n identity matrix."""
    return eye(n, dtype=dtype)


def arange(*args: Any, dtype: npt.DTypeLike | None = None) -> ndarray:
    """``numpy.arange``."""
    return wrap(np.arange(*args, dtype=dtype))


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: npt.DTypeLike | None = None
) -> ndarray:
    """``numpy.linspace`` between two numbers."""
    return wrap(np.linspace(start, stop, num, endpoint=endpoint, dtype=dtype))
