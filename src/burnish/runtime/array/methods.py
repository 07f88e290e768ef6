"""Methods of bn.ndarray, and what indexing with arrays, printing and conversion do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from burnish.runtime.array import _native, products, reductions, shaping, ufuncs, whole
from burnish.runtime.array._native import ndarray
from burnish.runtime.array.creation import asarray, wrap
from burnish.runtime.array.missing import missing, missing_method


def _reshape(a: ndarray, *shape: Any, order: str = "C") -> ndarray:
    """``bn.reshape``; the extents may be given one by one."""
    return shaping.reshape(a, shape[0] if len(shape) == 1 else shape, order)


def _transpose(a: ndarray, *axes: Any) -> ndarray:
    """``bn.transpose``; the axes may be given one by one."""
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
        return shaping.transpose(a, axes[0])
    return shaping.transpose(a, axes or None)


def _fill(a: ndarray, value: Any) -> None:
    """Set all elements."""
    _native.assign(a, value)


def _tolist(a: ndarray) -> Any:
    """Nested lists of Python numbers; waits."""
    return _native.to_numpy(a).tolist()


def _sort_in_place(a: ndarray, axis: int = -1) -> None:
    """Sort in place."""
    _native.assign(a, whole.sort(a, axis))


def _array(a: ndarray, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
    if copy is False:
        raise ValueError("a bn array is always copied when it becomes a NumPy array")
    made = _native.to_numpy(a)
    return made if dtype is None else made.astype(dtype, copy=False)


def _copy(a: ndarray, memo: Any = None) -> ndarray:
    """A packed copy."""
    return shaping.copy(a)


def _flatten(a: ndarray) -> ndarray:
    """A packed one-dimensional copy."""
    return shaping.ravel(shaping.copy(a))


METHODS: dict[str, Callable[..., Any]] = {
    "reshape": _reshape, "transpose": _transpose, "fill": _fill, "tolist": _tolist, "sort": _sort_in_place,
    "ravel": shaping.ravel, "flatten": _flatten, "squeeze": shaping.squeeze, "swapaxes": shaping.swapaxes,
    "copy": _copy, "astype": shaping.astype, "clip": ufuncs.clip, "conj": ufuncs.conj, "conjugate": ufuncs.conj,
    "sum": reductions.sum, "prod": reductions.prod, "min": reductions.min, "max": reductions.max, "any": reductions.any,
    "all": reductions.all, "mean": reductions.mean, "argmin": whole.argmin, "argmax": whole.argmax,
    "argsort": whole.argsort, "cumsum": whole.cumsum, "take": whole.take, "put": whole.put, "dot": products.dot,
    "__array__": _array, "__copy__": _copy, "__deepcopy__": _copy,
}  # fmt: skip


def _mask_of(a: ndarray, key: Any) -> ndarray | None:
    """The mask if ``key`` is one over the leading axes of ``a``, broadcastable against it."""
    mask = key if _native.is_array(key) else np.asarray(key) if isinstance(key, (np.ndarray, list, bool)) else None
    if mask is None or mask.dtype != np.bool_:
        return None
    if tuple(mask.shape) != a.shape[: mask.ndim]:
        raise IndexError(f"boolean index of shape {tuple(mask.shape)} does not match an array of shape {a.shape}")
    made = asarray(mask)
    return shaping.reshape(made, made.shape + (1,) * (a.ndim - made.ndim))


def _get_special(a: ndarray, key: Any) -> ndarray:
    if _mask_of(a, key) is not None:
        raise missing("ndarray.__getitem__ with a mask", "x[m]")
    index = key if _native.is_array(key) else np.asarray(key) if isinstance(key, (np.ndarray, list)) else None
    if index is None or index.dtype.kind not in "iu":
        raise missing("ndarray.__getitem__ with several index arrays", "x[i, j]")
    if isinstance(index, np.ndarray) and index.size and (index.min() < -a.shape[0] or index.max() >= a.shape[0]):
        raise IndexError(f"index out of bounds for axis 0 with size {a.shape[0]}")
    return whole.take(a, index, 0)


def _set_special(a: ndarray, key: Any, value: Any) -> None:
    mask = _mask_of(a, key)
    if mask is None:
        raise missing("ndarray.__setitem__ with index arrays", "x.put(...)")
    given: Any = value if isinstance(value, (bool, int, float, complex, np.generic)) else asarray(value)
    if not _native.is_array(given) or given.ndim == 0:
        _native.select("masked_copy", [mask, given], a)
    else:
        whole.place(a, asarray(key), given)


def _show(a: ndarray, as_repr: int) -> str:
    values = _native.to_numpy(a)
    if _native.is_scalar(a):
        return repr(values[()]) if as_repr else str(values[()])
    return repr(values) if as_repr else str(values)


def install() -> None:
    """Give the C type its methods, and the C code the functions it calls."""
    cls = _native.Array
    for name, method in METHODS.items():
        setattr(cls, name, method)
    cls.__array_ufunc__ = None  # NumPy's operators leave the operation to ours
    for name in dir(np.ndarray):
        if not name.startswith("_") and not hasattr(cls, name) and callable(getattr(np.ndarray, name)):
            setattr(cls, name, missing_method(name))
    _native.register_front_end(
        {
            "from_numpy": wrap,
            "set_special": _set_special,
            "get_special": _get_special,
            "matmul": products.matmul,
            "show": _show,
        }
    )
