"""Resuming a killed program: its launches and what it saw of their results, in program order, with checkpoints.

The main program is deterministic given what it read from the runtime. So the journal holds, as numbered events, every
region made, every launch (its token) and every value that the program read (futures, host accesses). On resume the
program runs again from its start; up to the last complete checkpoint its launches are compared with the journal and
skipped, and what it reads comes from the journal. At the checkpoint the regions get their contents back, and from there
on everything runs. A launch that is not the recorded one raises :class:`LineageMismatchError`.
"""

from __future__ import annotations

import hashlib
import pickle
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from burnish._native import runtime as _rt
from burnish.core.io import write_atomic
from burnish.runtime.lineage.errors import LineageError, LineageMissingError
from burnish.runtime.lineage.log import LineageLog
from burnish.runtime.lineage.records import Checkpoint, Kind, Launch, Program, RegionRecord, TaskDef, User
from burnish.runtime.lineage.slice import checkpoint_period
from burnish.runtime.lineage.stores import DirectoryStore

_SEEN, _WHOLE = 0, 1  # stages of USER records: a value that was read; a checkpoint that is complete
_FIRST_PERIOD = 2.0  # seconds before the first checkpoint, whose cost is not known yet


class LineageMismatchError(LineageError):
    """The resumed program does something else than the recorded one."""


@dataclass(frozen=True)
class _Past:
    """What an earlier run recorded, up to its last complete checkpoint."""

    events: list[Any] = field(default_factory=list)
    checkpoint: Path | None = None


class Journal:
    """The journal of one context in ``directory``.

    ``resume``: go on from what is there; otherwise the directory must be empty. ``mtbf``: mean seconds between failures
    (Young's formula turns it and the measured cost into the checkpoint period). ``period`` overrides it.
    """

    def __init__(
        self, directory: Path, *, resume: bool = False, mtbf: float = 3600.0, period: float | None = None
    ) -> None:
        known = directory.is_dir() and any(directory.glob("*.log"))
        if resume and not known:
            raise LineageMissingError(f"{directory} holds no journal to resume")
        if known and not resume:
            raise LineageError(f"{directory} holds the journal of an earlier run; resume it, or name another directory")
        self.directory, self._mtbf, self._period = directory, mtbf, period
        self._log = LineageLog(DirectoryStore(directory, durability="process"))
        past = self._read_past() if resume else _Past()
        self._past, self._checkpoint = past.events, past.checkpoint
        self._at = 0  # events so far
        self._names: dict[int, str] = {}
        self._tasks: dict[int, int] = {}
        self._regions: list[int] = []  # root ids in order of creation
        self._futures: dict[int, Any] = {}  # by the event of their launch, while the program may still use them
        self._saved_futures: dict[int, Any] = {}
        self._last = time.monotonic()
        self._cost: float | None = None
        self.skipped = 0
        if not resume:
            self._log.append(Kind.PROGRAM, Program(tuple(sys.argv), b"", platform.python_version(), {}, time.time()))

    @property
    def replaying(self) -> bool:
        """Whether events still come from the earlier run."""
        return self._at < len(self._past)

    # ---- the past ----
    def _read_past(self) -> _Past:
        events: list[Any] = []
        tasks: dict[int, str] = {}
        cut, checkpoint = 0, None
        for entry in self._log.read():
            record = entry.record
            if isinstance(record, TaskDef):
                tasks[record.task] = record.name
            elif isinstance(record, RegionRecord):
                events.append(("region", record.name, tuple(record.fields)))
            elif isinstance(record, Launch):
                events.append(("launch", tasks.get(record.task, "?"), record.scalars[0], record.domain))
            elif isinstance(record, User) and record.stage == _SEEN:
                events.append(("seen", record.payload))
            elif isinstance(record, User) and record.stage == _WHOLE:
                cut = record.sequence
                checkpoint = self.directory / f"checkpoint-{cut}"
                del events[cut:]  # of an earlier resumed run that went on from here
        return _Past(events[:cut], checkpoint)

    def _expect(self, kind: str, found: str) -> tuple[Any, ...]:
        event: tuple[Any, ...] = self._past[self._at]
        if event[0] != kind:
            raise LineageMismatchError(f"event {self._at}: the recorded run had {_told(event)}, this one {found}")
        return event

    def _advance(self) -> None:
        self._at += 1
        if self._at == len(self._past):
            self._restore()

    # ---- events, in program order ----
    def region(self, region: Any) -> None:
        """A region was made."""
        info = _rt.root_info(region)
        fields = tuple((name, f"{dtype.str}{inner}") for name, dtype, inner in info["fields"])
        self._regions.append(info["id"])
        self._names[info["id"]] = f"region {len(self._regions)}"
        shape = tuple(int(n) for n in info["shape"])
        if self.replaying:
            event = self._expect("region", f"a new region of shape {shape}")
            if tuple(map(tuple, event[2])) != (*fields, ("", str(shape))):
                raise LineageMismatchError(
                    f"event {self._at}: region {len(self._regions)} has another shape or other fields"
                )
            self._advance()
            return
        index = len(self._regions)
        record = RegionRecord(index, f"region {index}", index, None, (0,), (*fields, ("", str(shape))))
        self._log.append(Kind.REGION, record)
        self._at += 1

    def launch(self, info: Any, token: int, points: int) -> bool:
        """A launch is about to be issued; True if it is to be skipped."""
        if self.replaying:
            event = self._expect("launch", f"a launch of {info.name}")
            if event[1] != info.name or event[2] != str(token) or tuple(event[3]) != (points,):
                raise LineageMismatchError(
                    f"event {self._at}: the recorded run launched {event[1]} here, this one launches {info.name}"
                    f"{' with other arguments or another body' if event[1] == info.name else ''}"
                )
            self.skipped += 1
            self._at += 1
            return True
        if id(info) not in self._tasks:
            self._tasks[id(info)] = len(self._tasks) + 1
            source = info.code_hash.to_bytes(8, "little")
            self._log.append(
                Kind.TASKDEF,
                TaskDef(self._tasks[id(info)], info.name, source, _blob(self._log, info), info.deterministic),
            )
        self._log.append(Kind.LAUNCH, Launch(self._tasks[id(info)], (points,), (), (str(token),)))
        self._at += 1
        return False

    def launched(self, future: Any) -> None:
        """The launch was issued or skipped; ``future`` is what it returned (a Future, a FutureMap or None)."""
        event = self._at - 1
        if future is not None:
            self._futures[event] = future
            if event in self._saved_futures:
                _set_values(future, self._saved_futures[event])
        if self._past and self._at == len(self._past) and self._checkpoint is not None:
            self._restore()
        elif not self.replaying:
            self._maybe_checkpoint()

    def seen(self, value: Any) -> None:
        """The program read ``value`` from the runtime."""
        self._log.append(Kind.USER, User(_SEEN, 0, self._at, pickle.dumps(value, 5)))
        self._at += 1

    def recall(self) -> Any:
        """What the recorded run read at this point."""
        event = self._expect("seen", "a read of a result")
        value = pickle.loads(event[1])
        self._advance()
        return value

    # ---- checkpoints ----
    def _due(self) -> float:
        if self._period is not None:
            return self._period
        return _FIRST_PERIOD if self._cost is None else max(0.5, checkpoint_period(self._cost, self._mtbf))

    def _maybe_checkpoint(self) -> None:
        if time.monotonic() - self._last >= self._due():
            self.checkpoint()

    def checkpoint(self) -> None:
        """Wait for all launches, write all regions and the futures that the program still holds."""
        start = time.monotonic()
        _rt.wait_all()
        folder = self.directory / f"checkpoint-{self._at}"
        for index, root in enumerate(self._regions):
            region = _rt.live_region(root)
            if region is not None:
                self._save(folder, index, region)
        self._futures = {e: f for e, f in self._futures.items() if sys.getrefcount(f) > 3}
        values = {e: _values(f) for e, f in self._futures.items()}
        write_atomic(folder / "futures", pickle.dumps(values, 5))
        lsn = self._log.append(Kind.USER, User(_WHOLE, 0, self._at, b""))
        self._log.flush(lsn)
        for old in self.directory.glob("checkpoint-*"):
            if old != folder:
                for file in old.iterdir():
                    file.unlink()
                old.rmdir()
        self._last = time.monotonic()
        self._cost = self._last - start

    def _save(self, folder: Path, index: int, region: Any) -> None:
        for number, f in enumerate(region.fields):
            data = region.numpy_unseen(f.name)
            raw = data.tobytes()
            name = f"{index}-{number}"
            write_atomic(folder / name, raw)
            digest = hashlib.sha256(raw).digest()
            self._log.append(
                Kind.CHECKPOINT, Checkpoint(index, number, (), (self._at, 0), f"{folder.name}/{name}", digest)
            )

    def _restore(self) -> None:
        """The last skipped event is over: regions get the contents of the checkpoint."""
        assert self._checkpoint is not None
        digests = {e.record.file: e.record.sha256 for e in self._log.read() if isinstance(e.record, Checkpoint)}
        for index, root in enumerate(self._regions):
            region = _rt.live_region(root)
            if region is None:
                continue
            for number, f in enumerate(region.fields):
                path = self._checkpoint / f"{index}-{number}"
                if not path.exists():
                    continue
                raw = path.read_bytes()
                if hashlib.sha256(raw).digest() != digests.get(f"{self._checkpoint.name}/{path.name}"):
                    raise LineageMissingError(f"{path} is damaged: it is not what the journal recorded")
                region.restore(f.name, np.frombuffer(raw, f.dtype))
        values = pickle.loads((self._checkpoint / "futures").read_bytes())
        for event, future in self._futures.items():
            if event in values:
                _set_values(future, values[event])
        self._checkpoint = None
        self._last = time.monotonic()

    def close(self) -> None:
        self._log.close()


def _told(event: tuple[Any, ...]) -> str:
    kind = event[0]
    return {"region": "a new region", "seen": "a read of a result"}.get(kind) or f"a launch of {event[1]}"


def _blob(log: LineageLog, info: Any) -> Any:
    from burnish.runtime.executors.message import pack_function
    from burnish.runtime.lineage.records import BlobRef

    return BlobRef(log.put_blob(pack_function(info.fn, info.name) if info.fn is not None else b""))


def _values(future: Any) -> list[Any]:
    handles = list(future) if hasattr(future, "__len__") else [future]
    return [None if f is None else _rt.future_get(f, None) for f in handles]


def _set_values(future: Any, values: list[Any]) -> None:
    handles = list(future) if hasattr(future, "__len__") else [future]
    for handle, value in zip(handles, values, strict=True):
        if handle is not None:
            _rt.future_set(handle, value)


_current: Journal | None = None


def current() -> Journal | None:
    """The journal of the running context, if it keeps one."""
    return _current


def set_current(journal: Journal | None) -> None:
    """Used by the context."""
    global _current
    _current = journal
    _rt.set_journal(journal)


@contextmanager
def recalled(mode: str, dtype: np.dtype[Any], shape: tuple[int, ...], journal: Journal) -> Iterator[npt.NDArray[Any]]:
    """Host access while launches are skipped: what the recorded run read, or scratch space for what it wrote."""
    if mode == "w":
        yield np.zeros(shape, dtype)
    else:
        yield journal.recall()
