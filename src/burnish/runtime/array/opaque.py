"""Functions of NumPy arrays as tasks over whole bn arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from burnish.runtime.array import _native
from burnish.runtime.array.creation import asarray, dtype_of, shape_of, wrap
from burnish.runtime.array.whole import launch, make_task

Function = Callable[..., Any]


@overload
def opaque(fn: Function) -> Function: ...
@overload
def opaque(
    *, like: int | None = None, shape: Any = None, dtype: npt.DTypeLike | None = None
) -> Callable[[Function], Function]: ...
def opaque(
    fn: Function | None = None, *, like: int | None = None, shape: Any = None, dtype: npt.DTypeLike | None = None
) -> Any:
    """Make a function of NumPy arrays usable on bn arrays.

    The function must not change its arguments. If the result's shape is known it runs as a task, without waiting:
    ``like=0`` (same shape and dtype as argument 0), or ``shape`` (a tuple, or a function of the arguments' shapes) and
    ``dtype`` (default: that of the first array). Otherwise the call waits for its arguments and runs at once.

    >>> import numpy as np, burnish.runtime.array as bn
    >>> @bn.opaque(like=0)
    ... def smooth(x):
    ...     return np.convolve(x, [0.25, 0.5, 0.25], "same")
    >>> float(smooth(bn.ones(5))[2])
    1.0
    """
    if fn is None:
        return functools.partial(opaque, like=like, shape=shape, dtype=dtype)
    function: Function = fn
    tasks: dict[tuple[int, ...], Any] = {}

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        places = tuple(i for i, x in enumerate(args) if _native.is_array(x))
        arrays = [args[i] for i in places]
        if not arrays:
            return function(*args, **kwargs)
        if like is None and shape is None:
            return _results(function(*[_host(x) for x in args], **{k: _host(v) for k, v in kwargs.items()}))
        if any(_native.is_array(v) for v in kwargs.values()):
            raise TypeError(f"opaque function {function.__name__}: pass arrays as positional arguments")
        if like is not None:
            out = _native.empty(args[like].shape, args[like].dtype)
        else:
            extents = shape(*[x.shape for x in arrays]) if callable(shape) else shape
            out = _native.empty(shape_of(extents), arrays[0].dtype if dtype is None else dtype_of(dtype))
        if places not in tasks:
            tasks[places] = make_task(function.__name__, _filled(function, places), len(places))
        others = tuple((i, x) for i, x in enumerate(args) if i not in places)
        return launch(tasks[places], out, arrays, (others, tuple(kwargs.items())))

    return call


def _filled(function: Function, places: tuple[int, ...]) -> Function:
    def compute(*given: Any) -> Any:
        *arrays, others, kwargs = given
        args: dict[int, Any] = dict(zip(places, arrays, strict=True)) | dict(others)
        return function(*[args[i] for i in range(len(args))], **dict(kwargs))

    return compute


def _host(x: Any) -> Any:
    return _native.to_numpy(x) if _native.is_array(x) else x


def _results(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(_results(y) for y in x)
    return wrap(x) if isinstance(x, (np.ndarray, np.generic)) else asarray(x) if isinstance(x, list) else x
