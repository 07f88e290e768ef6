"""The lineage log in a Ray actor on the driver's node, which keeps it on that node's disk.

The actor is the one place that uses Ray's own retries: it may be restarted at any time and finds its state in its
directory, and writing a group of records twice has the effect of writing it once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from burnish.core.errors import require
from burnish.runtime.lineage import native
from burnish.runtime.lineage.errors import LineageCorruptError
from burnish.runtime.lineage.log import LineageLog
from burnish.runtime.lineage.stores import DirectoryStore, Segment, Tail


class _Keeper:
    """What runs inside the actor."""

    def __init__(self, path: str, durability: Literal["host", "process"]) -> None:
        self._store = DirectoryStore(path, durability=durability)
        self._log = LineageLog(self._store)
        self._torn = self._log.torn_bytes

    def tail(self) -> Tail:
        return Tail(self._log.native.next_lsn, self._torn)

    def write(self, first_lsn: int, frames: bytes) -> None:
        for record in native.scan(frames, first_lsn).records:
            if record.lsn < self._log.native.next_lsn:
                continue  # this group came before, and the answer got lost
            if record.lsn > self._log.native.next_lsn:
                raise LineageCorruptError(
                    f"lineage log in the actor ends at record {self._log.native.next_lsn - 1}, got {record.lsn}"
                )
            self._log.native.append(record.kind, record.flags, record.payload)
        self._log.flush()

    def first_lsn(self) -> int:
        return self._store.first_lsn()

    def segment_after(self, lsn: int, from_lsn: int) -> Segment | None:
        """The first segment that starts after ``lsn`` and matters for reading from ``from_lsn``."""
        return next((s for s in self._store.segments(from_lsn) if s.first_lsn > lsn), None)

    def drop_before(self, lsn: int) -> None:
        self._store.drop_before(lsn)

    def put_blob(self, data: bytes) -> bytes:
        return self._store.put_blob(data)

    def get_blob(self, key: bytes) -> bytes:
        return self._store.get_blob(key)

    def pid(self) -> int:
        return os.getpid()


class RayActorStore:
    """A store for :class:`LineageLog` that other nodes reach by the actor's ``name``.

    ``path``: directory on the disk of this node; a log that is there already is continued. The actor ends with the
    program that made it, the directory stays. Needs a running Ray (``ray.init``).
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        name: str = "burnish-lineage",
        durability: Literal["host", "process"] = "host",
    ) -> None:
        self._ray = require("ray", needed_by="burnish.runtime.lineage.ray_store", extra="ray")
        here = self._ray.get_runtime_context().get_node_id()
        strategies = require("ray.util.scheduling_strategies", needed_by="burnish.runtime.lineage", extra="ray")
        self._actor = (
            self._ray.remote(_Keeper)
            .options(
                name=name,
                get_if_exists=True,
                num_cpus=0,
                max_restarts=-1,
                max_task_retries=-1,
                scheduling_strategy=strategies.NodeAffinitySchedulingStrategy(here, soft=False),
            )
            .remote(str(Path(path).absolute()), durability)
        )

    def _call(self, method: str, *args: Any) -> Any:
        return self._ray.get(getattr(self._actor, method).remote(*args))

    def open(self) -> Tail:
        tail: Tail = self._call("tail")
        return tail

    def writer(self, tail: Tail) -> native.GroupCommit:
        return native.commit_to_callable(self._write, tail.next_lsn)

    def _write(self, first_lsn: int, frames: bytes) -> None:
        self._call("write", first_lsn, frames)

    def close(self) -> None:
        pass

    def first_lsn(self) -> int:
        return int(self._call("first_lsn"))

    def segments(self, from_lsn: int) -> Iterator[Segment]:
        lsn = 0
        while (segment := self._call("segment_after", lsn, from_lsn)) is not None:
            yield segment
            lsn = segment.first_lsn

    def drop_before(self, lsn: int) -> None:
        self._call("drop_before", lsn)

    def put_blob(self, data: bytes) -> bytes:
        return bytes(self._call("put_blob", data))

    def get_blob(self, key: bytes) -> bytes:
        return bytes(self._call("get_blob", key))
