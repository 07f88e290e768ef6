"""Errors of the runtime: what is wrong, where, and what to do. Raised from native code through :func:`raise_error`."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import CodeType
from typing import Any

from burnish.core.errors import BurnishError


class RuntimeProblem(BurnishError):
    """Base of the runtime's errors."""


class TaskSignatureError(RuntimeProblem):
    """A launch does not fit the task's declared parameters."""


class PrivilegeError(RuntimeProblem):
    """A body wrote what it declared Read."""


class OutOfRegionError(RuntimeProblem):
    """A body named a point outside its subregion."""


class UninitializedError(RuntimeProblem):
    """A body read a Write argument before writing it (check mode)."""


class InterferenceError(RuntimeProblem):
    """Two points of an index launch use the same data and one writes."""


class AliasError(RuntimeProblem):
    """Two arguments of one launch overlap and one writes."""


class RaceError(RuntimeProblem):
    """Attached or captured data changed outside the runtime (check mode)."""


class CaptureError(RuntimeProblem):
    """A body uses data that the runtime cannot see."""


class ProjectionError(RuntimeProblem):
    """A projected color is outside its partition's color space."""


class PartitionError(RuntimeProblem):
    """A partition's description does not fit its region."""


class ContextThreadError(RuntimeProblem):
    """A launch from a thread other than the context's."""


class TraceError(RuntimeProblem):
    """A manual trace is used wrongly."""


class TraceMismatchError(TraceError):
    """The launches inside a manual trace are not the recorded ones."""


class HostAccessError(RuntimeProblem):
    """Data are being written by the main program."""


def short_path(path: str) -> str:
    """``path`` relative to the working directory where it lies inside, else as it is."""
    relative = os.path.relpath(path) if os.path.isabs(path) else path
    return path if relative.startswith("..") else relative


def where(code: CodeType, line: int | None = None) -> str:
    """``file:line`` of a function."""
    return f"{short_path(code.co_filename)}:{code.co_firstlineno if line is None else line}"


def line_of(code: CodeType, lasti: int) -> int:
    """Source line of a bytecode offset."""
    for start, end, line in code.co_lines():
        if start <= lasti < end and line is not None:
            return line
    return code.co_firstlineno


_handlers: dict[str, Callable[..., RuntimeProblem]] = {}


def handles(kind: str) -> Callable[[Callable[..., RuntimeProblem]], Callable[..., RuntimeProblem]]:
    """Register the function that words native errors of ``kind``."""

    def register(fn: Callable[..., RuntimeProblem]) -> Callable[..., RuntimeProblem]:
        _handlers[kind] = fn
        return fn

    return register


def raise_error(kind: str, payload: tuple[Any, ...]) -> None:
    """Called by native code; always raises."""
    raise _handlers[kind](*payload)
