"""Elementwise functions: NumPy's own loops, launched as tasks."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.runtime.array import _native
from burnish.runtime.array._native import ndarray
from burnish.runtime.array.creation import asarray
from burnish.runtime.array.missing import missing

NAMES = (
    "add", "subtract", "multiply", "divide", "true_divide", "floor_divide", "remainder", "mod", "fmod", "power",
    "negative", "positive", "absolute", "fabs", "sign", "rint", "floor", "ceil", "trunc", "square", "sqrt", "cbrt",
    "reciprocal", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos",
    "arctan", "arctan2", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "hypot", "minimum", "maximum",
    "fmin", "fmax", "less", "less_equal", "equal", "not_equal", "greater", "greater_equal", "logical_and",
    "logical_or", "logical_xor", "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift",
    "right_shift", "isnan", "isinf", "isfinite", "signbit", "copysign", "conjugate", "heaviside", "deg2rad", "rad2deg",
)  # fmt: skip

__all__ = [*NAMES, "abs", "clip", "conj", "copyto", "where"]  # noqa: PLE0604

for _name in NAMES:
    _ufunc = getattr(np, _name)
    globals()[_name] = _native.make_ufunc(_ufunc.__name__, _ufunc, _ufunc.nin)
_native.make_ufunc("matmul", np.matmul, 2)  # its loop serves bn.matmul
_clip = _native.make_ufunc("clip", np._core.umath.clip, 3)  # type: ignore[attr-defined]

add: Any
multiply: Any
absolute: Any
sqrt: Any
minimum, maximum = globals()["minimum"], globals()["maximum"]
abs = globals()["absolute"]
conj = globals()["conjugate"]


def clip(a: Any, a_min: Any = None, a_max: Any = None, out: ndarray | None = None) -> ndarray:
    """Elements limited to [a_min, a_max]; None leaves that side open."""
    a = asarray(a)
    if a_min is None and a_max is None:
        return a.copy()
    if a_min is None:
        return minimum(a, a_max, out=out)
    if a_max is None:
        return maximum(a, a_min, out=out)
    return _clip(a, a_min, a_max, out=out)


def where(condition: Any, x: Any = None, y: Any = None) -> ndarray:
    """``x`` where ``condition`` holds, else ``y``; all three broadcast."""
    if x is None or y is None:
        raise missing("where(condition)", "np.where(x)")
    parts: list[Any] = [p if isinstance(p, (bool, int, float, complex)) else asarray(p) for p in (condition, x, y)]
    weak = [p if not _native.is_array(p) else p.dtype for p in parts[1:]]
    dtype = (
        np.result_type(*weak) if any(_native.is_array(p) for p in parts[1:]) else np.result_type(*map(np.asarray, weak))
    )
    shape = np.broadcast_shapes(*(getattr(p, "shape", ()) for p in parts))
    out = _native.empty(shape, dtype)
    mask = asarray(parts[0]) if not _native.is_array(parts[0]) else parts[0]
    _native.select("where", [mask, *parts[1:]], out)
    return out if shape else _native.set_scalar(out)


def copyto(dst: ndarray, src: Any, where: Any = None) -> None:
    """``dst[...] = src``, only where the mask ``where`` holds if it is given."""
    if where is None:
        _native.assign(dst, src)
    else:
        _native.select("masked_copy", [asarray(where), src], dst)
