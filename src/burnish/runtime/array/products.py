"""Inner products, matrix products and norms."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.runtime.array import _native
from burnish.runtime.array._native import ndarray
from burnish.runtime.array.creation import asarray, zeros
from burnish.runtime.array.reductions import Axis
from burnish.runtime.array.reductions import max as largest
from burnish.runtime.array.reductions import min as smallest
from burnish.runtime.array.reductions import sum as total
from burnish.runtime.array.shaping import ravel
from burnish.runtime.array.ufuncs import absolute, multiply, sqrt
from burnish.runtime.array.whole import batched_matmul


def matmul(a: Any, b: Any) -> ndarray:
    """Matrix product by NumPy's kernel, in blocks of 256 rows."""
    x, y = asarray(a), asarray(b)
    if x.ndim == 0 or y.ndim == 0:
        raise ValueError("matmul: operands need at least one axis each; use * for scalars")
    dtype = np.result_type(x.dtype, y.dtype)
    x, y = x.astype(dtype, copy=False), y.astype(dtype, copy=False)
    if x.ndim > 2 or y.ndim > 2:
        return batched_matmul(x, y)
    if x.shape[-1] == 0 and y.shape[0] == 0:
        return zeros(x.shape[:-1] + y.shape[1:], dtype)
    return _native.matmul(x, y)


def dot(a: Any, b: Any) -> ndarray:
    """Inner product of 1-D arrays, matrix product of 2-D ones, multiplication by scalars."""
    x, y = asarray(a), asarray(b)
    if x.ndim == 0 or y.ndim == 0:
        return multiply(x, y)
    if x.ndim > 2 or y.ndim > 2:
        raise NotImplementedError("bn.dot is available for up to two axes; use bn.matmul or bn.einsum")
    return matmul(x, y)


def vdot(a: Any, b: Any) -> ndarray:
    """Inner product of flattened real arrays."""
    x, y = ravel(a), ravel(b)
    if x.dtype.kind == "c":
        raise NotImplementedError("bn.vdot is available for real arrays only")
    return dot(x, y)


class linalg:
    """``bn.linalg``."""

    @staticmethod
    def norm(x: Any, ord: Any = None, axis: Axis = None, keepdims: bool = False) -> ndarray:
        """Euclidean (Frobenius) norm; for one axis or flattened 1-D arrays also ord 1, 2, inf, -inf and 0."""
        a = asarray(x)
        if a.dtype.kind in "biu":
            a = a.astype(np.float64)
        one_axis = isinstance(axis, int) or (axis is None and a.ndim == 1)
        if ord is None or (ord == 2 and one_axis) or (ord == "fro" and not one_axis):
            if a.dtype.kind == "c":
                a = absolute(a)
            return sqrt(total(a * a, axis, keepdims=keepdims))
        size = absolute(a)
        if one_axis and ord == 1:
            return total(size, axis, keepdims=keepdims)
        if one_axis and ord == np.inf:
            return largest(size, axis, keepdims)
        if one_axis and ord == -np.inf:
            return smallest(size, axis, keepdims)
        if one_axis and ord == 0:
            return total((a != 0).astype(a.dtype), axis, keepdims=keepdims)
        raise NotImplementedError(
            f"bn.linalg.norm with ord={ord!r} is not available; wrap it: @bn.opaque def f(x): return np.linalg.norm(x, {ord!r})"
        )
