"""Typed access to the native half of the array front end (``burnish._native.array``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from burnish._native import array as _array

ndarray: TypeAlias = Any  # burnish.runtime.array.ndarray: a C type
Array = _array.ndarray

make_ufunc: Callable[[str, Any, int], Any] = _array.make_ufunc
register_front_end: Callable[[dict[str, Any]], None] = _array.register_front_end
pool_counters: Callable[[], dict[str, int]] = _array.pool_counters
empty_pool: Callable[[], None] = _array.empty_pool


def is_array(x: object) -> bool:
    return type(x) is Array


def empty(shape: Sequence[int], dtype: np.dtype[Any]) -> ndarray:
    """A fresh array with undefined contents."""
    return _array.empty(shape, dtype.num)


def from_numpy(x: npt.NDArray[Any], scalar: bool = False) -> ndarray:
    """A fresh array with the contents of a C-contiguous NumPy array."""
    return _array.from_numpy(x, scalar)


def to_numpy(a: ndarray) -> npt.NDArray[Any]:
    """A copy of the contents; waits for them."""
    result: npt.NDArray[Any] = _array.to_numpy(a)
    return result


def view(a: ndarray, shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> ndarray:
    """Other shape and byte strides over the same root; ``offset`` bytes from the first element of ``a``."""
    return _array.view(a, shape, strides, offset)


def copy_of(a: ndarray, dtype: np.dtype[Any]) -> ndarray:
    """A packed copy, converted."""
    return _array.copy_of(a, dtype.num)


def assign(to: ndarray, value: Any) -> None:
    """``to[...] = value``."""
    _array.assign(to, value)


def select(name: str, inputs: Sequence[Any], out: ndarray) -> None:
    """Our own loops: ``where`` (mask, yes, no) and ``masked_copy`` (mask, value)."""
    _array.select(name, inputs, out)


def reduce_axes(name: str, a: ndarray, first: int, last: int, dtype: np.dtype[Any]) -> ndarray:
    """Reduce axes [first, last) with the ufunc ``name`` computing in ``dtype``."""
    return _array.reduce_axes(name, a, first, last, dtype.num)


def matmul(a: ndarray, b: ndarray) -> ndarray:
    """Product of two 1-D or 2-D arrays of one dtype."""
    return _array.matmul(a, b)


def roll(a: ndarray, shifts: Sequence[int]) -> ndarray:
    """A copy moved by one shift for each of 1 to 4 axes, cyclically."""
    return _array.roll(a, shifts)


def random_array(key: tuple[int, int], call: int, kind: int, low: int, extent: int, n: int) -> ndarray:
    """n random numbers; kind 0 uniform, 1 normal, 2 integers low..low+extent."""
    return _array.random_array(key, call, kind, low, extent, n)


def region_of(a: ndarray) -> Any:
    """The region behind an array that names all of its root in C order."""
    return _array.region_of(a)


def is_whole(a: ndarray) -> bool:
    return bool(_array.is_whole(a))


def is_scalar(a: ndarray) -> bool:
    return bool(_array.is_scalar(a))


def set_scalar(a: ndarray) -> ndarray:
    """Mark a 0-d result as immutable, as NumPy's scalars are."""
    _array.set_scalar(a)
    return a
