"""Python bodies in worker processes: what the native side asks of Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from burnish._native import runtime as _rt
from burnish.runtime.access import Constant, SparseField, fields_view, placed
from burnish.runtime.executors import message, native
from burnish.runtime.executors.errors import WorkerLostError, WorkerStartError
from burnish.runtime.executors.pool import Pool
from burnish.runtime.region import Region
from burnish.runtime.signature import TaskInfo

_STARTS = 10  # attempts to get a replacement up


def _struct(names: tuple[str, ...], *values: Any) -> Any:
    return fields_view(list(names), list(values))


def _color(*coordinates: int) -> tuple[int, ...]:
    return coordinates


class Processes:
    """The worker processes of one context, one per worker thread; the launching thread has one as well."""

    def __init__(self, workers: int, arena: native.Arena, *, retry: bool) -> None:
        self.pool = Pool(workers, arena=arena)
        self.pickle: Callable[[Any], bytes] = message.pack
        self.rebuild = message.rebuild_error
        self._constants: dict[int, tuple[Any, native.ObjectRef]] = {}
        self.sparse = self._publish_function(SparseField)
        self.placed = self._publish_function(placed)
        self.color = self._publish_function(_color)
        _rt.use_processes(self, native.decoder(arena), list(self.pool), retry)

    def _publish_function(self, function: Callable[..., Any], name: str = "") -> native.ObjectRef:
        return self.pool.publish(message.pack_function(function, name))

    def publish_task(self, info: TaskInfo) -> native.ObjectRef:
        """The body of a task; TaskTransferError names what it closes over if it cannot be sent."""
        assert info.fn is not None
        return self._publish_function(info.fn, info.name)

    def fields(self, names: list[str]) -> native.ObjectRef:
        """What makes the object with one attribute per field."""
        return self._publish_function(partial(_struct, tuple(names)))

    def is_constant(self, value: Any) -> bool:
        return isinstance(value, Constant)

    def publish(self, value: Constant) -> native.ObjectRef:
        """A constant, sent once."""
        if id(value) not in self._constants:
            self._constants[id(value)] = (value, self.pool.publish(message.pack(value)))
        return self._constants[id(value)][1]

    def replace(self, index: int) -> int:
        """Start another process in place of a dead one; returns its pidfd."""
        for _ in range(_STARTS - 1):
            try:
                return self.pool.replace(index).pidfd
            except WorkerStartError:  # killed again while it was coming up, perhaps
                continue
        return self.pool.replace(index).pidfd

    def lost(self, index: int, task: str, color: Any, regions: list[Region]) -> WorkerLostError:
        """The error of a task whose worker died."""
        at = "" if color is None else f", color {color}"
        what = (
            f"; {'regions' if len(regions) > 1 else 'region'} {', '.join(r.name for r in regions)} lost"
            if regions
            else ""
        )
        return WorkerLostError(
            f"{self.pool[index].epitaph()} died in task '{task}'{at}{what}. Run with recovery=\"retry\""
        )

    def stop(self) -> None:
        self.pool.stop()
