"""Futures: single-assignment results of launches."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from burnish._native import runtime as _rt
from burnish.runtime.errors import RuntimeProblem
from burnish.runtime.lineage import journal
from burnish.runtime.signature import internal_task

_BUILTIN: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "*": lambda a, b: a * b,
    "min": lambda a, b: np.minimum(a, b) if isinstance(a, np.ndarray) else min(a, b),
    "max": lambda a, b: np.maximum(a, b) if isinstance(a, np.ndarray) else max(a, b),
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
}


class Future(_rt.FutureBase):  # type: ignore[misc]
    """The value a launched task will return. May be passed to other launches, which then wait for it."""

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Future:
        raise TypeError("futures are returned by launches")

    def get(self, timeout: float | None = None) -> Any:
        """Wait and return the value; runs ready tasks meanwhile.

        Raises the producer's error, or the first task error in program order; TimeoutError after ``timeout`` seconds.
        """
        log = journal.current()
        if log is not None and log.replaying:
            return log.recall()
        value = _rt.future_get(self, timeout)
        if log is not None:
            log.seen(value)
        return value

    def done(self) -> bool:
        """Whether the value (or error) is there; does not wait."""
        return bool(_rt.future_done(self))

    def map(self, fn: Callable[[Any], Any]) -> Future:
        """A future of ``fn(value)``."""
        made: Future = _apply_task()(_Call(fn), self)
        return made

    def __repr__(self) -> str:
        return f"<Future {'done' if self.done() else 'pending'}>"


class FutureMap(_rt.FutureMapBase):  # type: ignore[misc]
    """Futures of an index launch by color; None where ``edge='skip'`` left a color out."""

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> FutureMap:
        raise TypeError("future maps are returned by index launches")

    def __getitem__(self, color: int) -> Future:
        future: Future = self._at(color)
        return future

    def __iter__(self) -> Iterator[Future]:
        return (self[i] for i in range(len(self)))

    def get(self) -> list[Any]:
        """All values, in row-major color order."""
        return [f.get() for f in self if f is not None]

    def reduce(self, op: str | Callable[[Any, Any], Any], ordered: bool = True) -> Future:
        """A future of all values combined by ``op`` (``"+"``, ``"*"``, ``"min"``, ``"max"``, ``"&"``, ``"|"`` or a function).

        Combined left to right in row-major color order, so the result does not depend on the schedule
        (``ordered=False`` permits another order; it is combined in the same one).
        """
        combine = _BUILTIN.get(op) if isinstance(op, str) else op
        if combine is None:
            raise RuntimeProblem(f"reduce({op!r}): operators are {', '.join(_BUILTIN)}, or a function of two values")
        futures = [f for f in self if f is not None]
        if not futures:
            raise RuntimeProblem("reduce of an empty future map has no value")
        made: Future = _fold_task(len(futures))(_Call(combine), *futures)
        return made


@dataclass(frozen=True)
class _Call:
    """A function on its way to a task, passed as it is."""

    fn: Callable[..., Any]


@functools.cache
def _apply_task() -> Any:
    return internal_task(lambda call, value: call.fn(value), "map", ("call", "value"))


@functools.cache
def _fold_task(n: int) -> Any:
    """A task of a function and n values that combines them left to right."""

    def fold(call: _Call, *values: Any) -> Any:
        return functools.reduce(call.fn, values)

    return internal_task(fold, "reduce", ("call", *(f"v{i}" for i in range(n))))
