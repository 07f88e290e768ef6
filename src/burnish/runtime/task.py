"""Tasks: functions that declare what they read, write or reduce."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, Literal, overload

from burnish._native import runtime as _rt
from burnish.runtime.capture import check_captured, check_closure
from burnish.runtime.context import current_settings
from burnish.runtime.errors import TaskSignatureError
from burnish.runtime.mapper import priority_of
from burnish.runtime.numba_body import scalar_types
from burnish.runtime.signature import TaskInfo, annotations_of, code_hash, parameters_of

Task = _rt.Task


@overload
def task(fn: Callable[..., Any], /) -> Any: ...
@overload
def task(
    *,
    name: str | None = None,
    kernel: Literal["python", "numba", "native"] = "python",
    deterministic: bool = True,
    priority: int = 0,
    idempotent: bool = False,
    inner: bool = False,
) -> Callable[[Callable[..., Any]], Any]: ...
def task(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    kernel: Literal["python", "numba", "native"] = "python",
    deterministic: bool = True,
    priority: int = 0,
    idempotent: bool = False,
    inner: bool = False,
) -> Any:
    """Turn a function into a task; parameters annotated with a privilege receive regions.

    The body gets, for one field of a dense subregion, a NumPy view (not writeable under ``Read``); for several fields,
    an object with one attribute per field; for a sparse subregion, a :class:`SparseField`. Other parameters are passed
    by value. A call is a launch; it returns a :class:`Future` if the function is annotated to return something.

    kernel: ``"numba"`` compiles the body with Numba (no GIL). deterministic: the same inputs give the same outputs.
    priority: above 0, ready tasks run before others. idempotent: running it twice does no harm (no undo copy).
    inner: the body launches tasks itself; it runs at its place on the launching thread.

    Raises TaskSignatureError for a function that cannot be a task, CaptureError if it closes over a mutable array or
    a region.
    """
    if fn is None:
        return lambda f: _made(f, name, kernel, deterministic, priority, idempotent, inner)
    return _made(fn, name, kernel, deterministic, priority, idempotent, inner)


def _made(
    fn: Callable[..., Any],
    name: str | None,
    kernel: str,
    deterministic: bool,
    priority: int,
    idempotent: bool,
    inner: bool,
) -> Any:
    if not isinstance(fn, FunctionType):
        raise TaskSignatureError(f"@task needs a Python function, got {type(fn).__name__}")
    if kernel not in ("python", "numba"):
        raise TaskSignatureError(
            f"task '{fn.__name__}': kernel is 'python' or 'numba', got '{kernel}' (native bodies: native_task)"
        )
    check_closure(fn)
    parameters = parameters_of(fn)
    if kernel == "numba" and inner:
        raise TaskSignatureError(
            f"task '{fn.__name__}': an inner task launches tasks, which Numba cannot; use kernel='python'"
        )
    info = TaskInfo(
        name or fn.__name__,
        fn,
        parameters,
        returns=annotations_of(fn).get("return") not in (None, type(None)),
        kernel=kernel,
        priority=priority,
        deterministic=deterministic,
        idempotent=idempotent,
        inner=inner,
        code_hash=code_hash(fn),
        native_body=scalar_types(fn, parameters) if kernel == "numba" else None,
    )
    made = _rt.make_task(info)
    made.__doc__, made.__name__, made.__module__, made.__wrapped__ = fn.__doc__, fn.__name__, fn.__module__, fn
    return made


def first_launch(info: TaskInfo) -> int:
    """Called at a task's first launch in a context: checks what the body captures; returns the priority."""
    if isinstance(info.fn, FunctionType):
        check_captured(info.fn)
    return priority_of(current_settings().mapper, info)
