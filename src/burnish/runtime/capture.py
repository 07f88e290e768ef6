"""Data that a task body reaches without receiving it: arrays and regions in closures and globals."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import numpy as np

from burnish.runtime.access import Constant
from burnish.runtime.errors import CaptureError
from burnish.runtime.region import Region
from burnish.runtime.signature import codes_of


def captured(fn: FunctionType) -> Iterator[tuple[str, str, Any]]:
    """(kind, name, value) of what ``fn`` and the functions of its module that it calls take from outside.

    ``kind`` is ``"variable"`` for closures and ``"global"`` for globals.
    """
    pending, seen = [fn], {fn}
    while pending:
        current = pending.pop()
        for kind, name, value in (*_closure(current), *_globals(current)):
            yield kind, name, value
            if isinstance(value, FunctionType) and value.__globals__ is fn.__globals__ and value not in seen:
                seen.add(value)
                pending.append(value)


def _closure(fn: FunctionType) -> Iterator[tuple[str, str, Any]]:
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        try:
            yield "variable", name, cell.cell_contents
        except ValueError:  # not bound yet
            continue


def _globals(fn: FunctionType) -> Iterator[tuple[str, str, Any]]:
    names = {
        i.argval
        for code in codes_of(fn.__code__)
        for i in dis.get_instructions(code)
        if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }
    yield from (("global", name, fn.__globals__[name]) for name in sorted(names) if name in fn.__globals__)


def _refuse(fn: FunctionType, kind: str, name: str, value: Any) -> None:
    if isinstance(value, Region):
        what, remedy = "Region", "pass it as an argument"
    elif isinstance(value, np.ndarray) and value.flags.writeable and not isinstance(value, Constant):
        size = f"{value.nbytes / 1e6:.0f} MB" if value.nbytes >= 1e6 else f"{value.nbytes} bytes"
        what, remedy = f"ndarray, {size}", f"pass it as an argument or wrap it with rt.constant({name})"
    else:
        return
    raise CaptureError(f"task '{fn.__name__}' uses {kind} '{name}' ({what}), which the runtime cannot see; {remedy}")


def check_closure(fn: FunctionType) -> None:
    """Raise CaptureError if ``fn`` closes over a mutable array or a region (when the task is declared)."""
    for kind, name, value in _closure(fn):
        _refuse(fn, kind, name, value)


def check_captured(fn: FunctionType) -> None:
    """Raise CaptureError if ``fn`` reaches a mutable array or a region (at the first launch, when globals are there)."""
    for kind, name, value in captured(fn):
        _refuse(fn, kind, name, value)
