"""Operations that NumPy does on whole arrays in one call: sorting, searching, gathering, einsum.

The task's body is NumPy's own function on the operands; its result is stored in a fresh array.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from burnish._native import runtime as _rt
from burnish.runtime.array import _native
from burnish.runtime.array._native import ndarray
from burnish.runtime.array.creation import asarray, dtype_of
from burnish.runtime.array.shaping import axis_index, ravel
from burnish.runtime.privilege import Privilege, Requirement
from burnish.runtime.region import READ, READ_WRITE, WRITE
from burnish.runtime.signature import Parameter, TaskInfo

Compute = Callable[..., Any]


@dataclass(frozen=True)
class Spec:
    """What one launch computes: logical shapes (result first) and options of the function."""

    shapes: tuple[tuple[int, ...], ...]
    options: tuple[Any, ...] = ()


def packed(a: ndarray) -> ndarray:
    """``a``, or a copy that has its root to itself."""
    return a if _native.is_whole(a) else _native.copy_of(a, a.dtype)


def make_task(name: str, compute: Compute, inputs: int, privilege: int = WRITE) -> Any:
    """A task ``out = compute(*inputs, *options)``; with READ_WRITE ``compute`` gets ``out`` first and changes it."""

    def body(out: Any, *rest: Any) -> None:
        *arrays, spec = rest
        shaped = [x.reshape(shape) for x, shape in zip(arrays, spec.shapes[1:], strict=True)]
        target = out.reshape(spec.shapes[0])
        if privilege == READ_WRITE:
            compute(target, *shaped, *spec.options)
        else:
            target[...] = compute(*shaped, *spec.options)

    names = [f"x{i}" for i in range(inputs)]
    body.__name__ = body.__qualname__ = name
    body.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in ("out", *names, "spec")]
    )
    params = [_parameter("out", privilege), *(_parameter(n, READ) for n in names), Parameter("spec")]
    return _rt.make_task(TaskInfo(name, body, tuple(params)))


def _parameter(name: str, privilege: int) -> Parameter:
    return Parameter(name, Privilege((Requirement(privilege),)))


@functools.cache
def _task(name: str, compute: Compute, inputs: int, privilege: int = WRITE) -> Any:
    return make_task(name, compute, inputs, privilege)


def launch(task: Any, out: ndarray, inputs: Sequence[ndarray], options: tuple[Any, ...] = ()) -> ndarray:
    """Launch a task made by :func:`make_task`; ``out`` is packed."""
    arrays = [packed(x) for x in inputs]
    spec = Spec((out.shape, *[x.shape for x in arrays]), options)
    if out.size:
        task(_native.region_of(out), *[_native.region_of(x) for x in arrays], spec)
    return out


def _compute(
    name: str, function: Compute, inputs: Sequence[ndarray], shape: Sequence[int], dtype: npt.DTypeLike, *options: Any
) -> ndarray:
    out = _native.empty(tuple(shape), dtype_of(dtype))
    launch(_task(f"bn.{name}", function, len(inputs)), out, inputs, options)
    return out if shape else _native.set_scalar(out)


def _along(a: Any, axis: int | None) -> tuple[ndarray, int]:
    a = asarray(a)
    return (ravel(a), 0) if axis is None else (a, axis_index(axis, a.ndim))


def _argmin(x: npt.NDArray[Any], axis: int) -> Any:
    return np.argmin(x, axis)


def _argmax(x: npt.NDArray[Any], axis: int) -> Any:
    return np.argmax(x, axis)


def _sort(x: npt.NDArray[Any], axis: int) -> Any:
    return np.sort(x, axis)


def _argsort(x: npt.NDArray[Any], axis: int) -> Any:
    return np.argsort(x, axis, kind="stable")


def _cumsum(x: npt.NDArray[Any], axis: int, dtype: Any) -> Any:
    return np.cumsum(x, axis, dtype)


def _take(x: npt.NDArray[Any], indices: npt.NDArray[Any], axis: int, mode: Any) -> Any:
    return np.take(x, indices, axis, mode=mode)


def _put(x: npt.NDArray[Any], indices: npt.NDArray[Any], values: npt.NDArray[Any], mode: Any) -> None:
    np.put(x, indices, values, mode)


def _einsum(x: npt.NDArray[Any], y: npt.NDArray[Any], subscripts: str) -> Any:
    return np.einsum(subscripts, x, y)


def _matmul(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> Any:
    return np.matmul(x, y)


def _place(x: npt.NDArray[Any], mask: npt.NDArray[Any], values: npt.NDArray[Any]) -> None:
    x[mask] = values


def argmin(a: Any, axis: int | None = None) -> ndarray:
    """Index of the first smallest element (in C order for ``axis=None``)."""
    a, d = _along(a, axis)
    return _compute("argmin", _argmin, [a], a.shape[:d] + a.shape[d + 1 :], np.int64, d)


def argmax(a: Any, axis: int | None = None) -> ndarray:
    """Index of the first largest element (in C order for ``axis=None``)."""
    a, d = _along(a, axis)
    return _compute("argmax", _argmax, [a], a.shape[:d] + a.shape[d + 1 :], np.int64, d)


def sort(a: Any, axis: int | None = -1) -> ndarray:
    """A sorted copy."""
    a, d = _along(a, axis)
    return _compute("sort", _sort, [a], a.shape, a.dtype, d)


def argsort(a: Any, axis: int | None = -1) -> ndarray:
    """Indices that sort; equal elements keep their order."""
    a, d = _along(a, axis)
    return _compute("argsort", _argsort, [a], a.shape, np.int64, d)


def cumsum(a: Any, axis: int | None = None, dtype: npt.DTypeLike | None = None) -> ndarray:
    """Running sums."""
    a, d = _along(a, axis)
    made = np.cumsum(np.empty(0, a.dtype)).dtype if dtype is None else dtype_of(dtype)
    return _compute("cumsum", _cumsum, [a], a.shape, made, d, made)


def take(a: Any, indices: Any, axis: int | None = None, mode: str = "raise") -> ndarray:
    """Elements (rows along ``axis``) by index. With mode 'raise' a bad index fails the task: its error comes at the next wait."""
    a, d = _along(a, axis)
    where = asarray(indices)
    shape = a.shape[:d] + where.shape + a.shape[d + 1 :]
    return _compute("take", _take, [a, where], shape, a.dtype, d, mode)


def put(a: ndarray, indices: Any, values: Any, mode: str = "raise") -> None:
    """``a.flat[indices] = values`` in place (values repeat as needed)."""
    where = asarray(indices)
    change(a, _put, "put", [where, asarray(values).astype(a.dtype)], mode)


def change(a: ndarray, function: Compute, name: str, inputs: Sequence[ndarray], *options: Any) -> None:
    """Run an in-place function on ``a``; a view goes through a copy."""
    target = a if _native.is_whole(a) else _native.copy_of(a, a.dtype)
    launch(_task(f"bn.{name}", function, len(inputs), READ_WRITE), target, inputs, options)
    if target is not a:
        _native.assign(a, target)


def place(a: ndarray, mask: ndarray, values: ndarray) -> None:
    """``a[mask] = values`` with one value per true element of the mask."""
    change(a, _place, "place", [mask, values])


def einsum(subscripts: str, a: Any, b: Any) -> ndarray:
    """``numpy.einsum`` of two operands."""
    x, y = asarray(a), asarray(b)
    probe = np.einsum(subscripts, _stand_in(x), _stand_in(y))
    return _compute("einsum", _einsum, [x, y], probe.shape, probe.dtype, subscripts)


def _stand_in(a: ndarray) -> npt.NDArray[Any]:
    """An array of the same shape and dtype without memory behind it; einsum over it only tells the result's shape."""
    return np.lib.stride_tricks.as_strided(np.zeros(1, a.dtype), a.shape, [0] * a.ndim)


def batched_matmul(a: ndarray, b: ndarray) -> ndarray:
    """``a @ b`` with leading axes that broadcast."""
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if b.ndim > 1:
        shape += (a.shape[-2],) * (a.ndim > 1) + (b.shape[-1],)
    elif a.ndim > 1:
        shape += (a.shape[-2],)
    return _compute("matmul", _matmul, [a, b], shape, np.result_type(a.dtype, b.dtype))
