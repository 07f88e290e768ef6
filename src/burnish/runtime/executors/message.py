"""Python objects on their way between processes: values, functions, exceptions."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from types import CodeType
from typing import Any

import cloudpickle
import numpy as np

from burnish.runtime.executors.errors import RemoteTaskError, RemoteTraceback, TaskTransferError
from burnish.runtime.executors.native import ErrorParts

_PROTOCOL = 5
_PLAIN = frozenset({int, float, complex, bool, str, bytes, type(None)})


def pack(value: Any) -> bytes:
    """Pickle a value; by C code alone where classes and functions cannot occur inside, else by cloudpickle."""
    kind = type(value)
    if kind in _PLAIN or isinstance(value, np.generic) or (kind is np.ndarray and not value.dtype.hasobject):
        return pickle.dumps(value, _PROTOCOL)
    try:
        data: bytes = cloudpickle.dumps(value, _PROTOCOL)
    except Exception as error:
        raise TaskTransferError(
            f"a value of type {kind.__name__} cannot be sent to another process: {error}"
        ) from error
    return data


def pack_function(function: Callable[..., Any], name: str) -> bytes:
    """Pickle a function by value if it is of the main program, else by its name in its module.

    Raises :class:`TaskTransferError` naming what it closes over.
    """
    try:
        data: bytes = cloudpickle.dumps(_Sent(function), _PROTOCOL)
    except Exception as error:
        culprit = _unpicklable(function)
        why = f"it closes over <{type(culprit).__name__}>" if culprit is not None else str(error)
        raise TaskTransferError(f"task '{name}' cannot be sent: {why}") from error
    return data


class _Sent:
    """A function on its way: cloudpickle forgets the file of a function that it sends by value, tracebacks need it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Callable[..., Any], str]]:
        code = getattr(self.function, "__code__", None)
        return _received, (self.function, code.co_filename if code is not None else "")


def _received(function: Callable[..., Any], file: str) -> Callable[..., Any]:
    code = getattr(function, "__code__", None)
    if file and code is not None and code.co_filename == "<dynamic-code>":
        function.__code__ = _in_file(code, file)
    return function


def _in_file(code: CodeType, file: str) -> CodeType:
    inner = tuple(_in_file(c, file) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.replace(co_filename=file, co_consts=inner)


def _unpicklable(function: Callable[..., Any]) -> object | None:
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    scope = function.__globals__
    for value in cells + [scope[name] for name in code.co_names if name in scope]:
        try:
            cloudpickle.dumps(value, _PROTOCOL)
        except Exception:
            return value  # type: ignore[no-any-return]
    return None


def describe_error(error: BaseException) -> ErrorParts:
    """What travels back of an exception; the pickled form is left out if it cannot be rebuilt."""
    text = "".join(traceback.format_exception(error))
    try:
        message = str(error)
    except Exception:
        message = "(its message cannot be shown)"
    try:
        data: bytes = cloudpickle.dumps(error, _PROTOCOL)
        pickle.loads(data)
    except Exception:  # some exceptions do not pickle, others pickle but do not unpickle
        return None, type(error).__qualname__, message, text
    return data, type(error).__qualname__, message, text


def rebuild_error(parts: ErrorParts) -> BaseException:
    """The exception of a worker, with the traceback there as its cause."""
    data, kind, message, text = parts
    error: BaseException | None = None
    if data is not None:
        try:
            error = pickle.loads(data)
        except Exception:
            error = None
    if not isinstance(error, BaseException):
        error = RemoteTaskError(f"{kind}: {message}")
    error.__cause__ = RemoteTraceback(text)
    return error
