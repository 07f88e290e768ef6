"""Who may add the next task record of a channel: leases and fencing over a lineage log, and the checker of such a log.

A *channel* is a sequence of tasks ``(stage, channel, 0), (stage, channel, 1), ...`` of a job. One worker at a time holds
its lease, numbered by an *epoch*. A record is accepted only from the holder, under the current epoch, and as the next one
of the channel; so a worker that was given up and comes back cannot add anything. The log is the truth: a ledger that is
opened on a log of an earlier run knows everything again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgpack

from burnish.runtime.lineage.errors import LineageCorruptError, LineageError
from burnish.runtime.lineage.log import Entry, LineageLog
from burnish.runtime.lineage.records import Kind, User

JOB_BYTES = 16
_TASK, _LEASE, _FENCE = 0, 1, 2


class FencedError(LineageError):
    """The worker no longer holds the channel; it must drop it."""


class Channel(NamedTuple):
    job: bytes
    stage: int
    channel: int


class TaskName(NamedTuple):
    stage: int
    channel: int
    seq: int


class Span(NamedTuple):
    """Outputs ``start .. stop - 1`` of a producer channel."""

    stage: int
    channel: int
    start: int
    stop: int


class Out(NamedTuple):
    """What a task produced on one outgoing edge; ``digest`` 0: not computed."""

    edge: int
    rows: int
    bytes: int
    digest: int = 0


@dataclass(frozen=True)
class TaskRecord:
    """What one task consumed and produced, enough to run it again. ``attempt`` is the epoch under which it ran,
    ``params`` whatever else it needs, ``final`` marks the last task of its channel."""

    job: bytes
    task: TaskName
    attempt: int
    worker: str
    inputs: tuple[Span, ...] = ()
    params: bytes = b""
    outputs: tuple[Out, ...] = ()
    final: bool = False

    @property
    def channel(self) -> Channel:
        return Channel(self.job, self.task.stage, self.task.channel)


@dataclass(frozen=True)
class Lease:
    """``worker`` holds the channel under ``epoch`` from here on."""

    channel: Channel
    epoch: int
    worker: str


@dataclass(frozen=True)
class Fence:
    """``worker`` holds nothing from here on."""

    worker: str


def to_user(item: TaskRecord | Lease | Fence) -> User:
    """The USER record of the log that holds ``item``."""
    if isinstance(item, TaskRecord):
        body = (_TASK, item.job, item.attempt, item.worker, item.inputs, item.params, item.outputs, item.final)
        return User(*item.task, msgpack.packb(body))
    if isinstance(item, Lease):
        job, stage, channel = item.channel
        return User(stage, channel, 0, msgpack.packb((_LEASE, job, item.epoch, item.worker)))
    return User(0, 0, 0, msgpack.packb((_FENCE, item.worker)))


def from_user(user: User) -> TaskRecord | Lease | Fence:
    """The reverse of :func:`to_user`."""
    try:
        tag, *body = msgpack.unpackb(user.payload, use_list=False)
        if tag == _TASK:
            return _task_record(user, *body)
        if tag == _LEASE:
            job, epoch, worker = body
            return Lease(Channel(job, user.stage, user.channel), epoch, worker)
        if tag == _FENCE:
            return Fence(*body)
    except (TypeError, ValueError) as error:
        raise LineageCorruptError(f"a USER record of the lineage log is no task, lease or fence: {error}") from error
    raise LineageCorruptError(f"a USER record of the lineage log has the unknown tag {tag}")


def _task_record(
    user: User, job: bytes, attempt: int, worker: str, inputs: Any, params: bytes, outputs: Any, final: bool
) -> TaskRecord:
    name = TaskName(user.stage, user.channel, user.sequence)
    spans, outs = tuple(Span(*span) for span in inputs), tuple(Out(*out) for out in outputs)
    return TaskRecord(job, name, attempt, worker, spans, params, outs, final)


@dataclass
class _State:
    epoch: int = 0
    worker: str | None = None
    next_seq: int = 0
    final: bool = False


class _Book:
    """State of all channels, and the rules by which an item may follow what came before."""

    def __init__(self) -> None:
        self.channels: dict[Channel, _State] = {}

    def problem(self, item: TaskRecord | Lease | Fence) -> str | None:
        if isinstance(item, Fence):
            return None
        state = self.channels.get(item.channel, _State())
        if isinstance(item, Lease):
            return None if item.epoch == state.epoch + 1 else f"epoch {item.epoch} does not follow {state.epoch}"
        if state.worker is None or (state.worker, state.epoch) != (item.worker, item.attempt):
            holder = f"worker {state.worker!r}" if state.worker is not None else "nobody"
            return f"worker {item.worker!r}, epoch {item.attempt} does not hold it; {holder}, epoch {state.epoch} does"
        if state.final:
            return f"task {item.task.seq} comes after the final one"
        if item.task.seq != state.next_seq:
            return f"task {item.task.seq} is not the next one, {state.next_seq}"
        return None

    def enter(self, item: TaskRecord | Lease | Fence) -> None:
        if isinstance(item, Fence):
            for state in self.channels.values():
                if state.worker == item.worker:
                    state.worker = None
            return
        state = self.channels.setdefault(item.channel, _State())
        if isinstance(item, Lease):
            state.epoch, state.worker = item.epoch, item.worker
        else:
            state.next_seq, state.final = item.task.seq + 1, item.final


class Ledger:
    """Leases and task records of a log. Thread-safe; checking and appending is one atomic step."""

    def __init__(self, log: LineageLog) -> None:
        self.log = log
        self._book = _Book()
        self._lock = threading.Lock()
        for item in _items(log.read()):
            self._book.enter(item[1])

    def lease(self, channel: Channel, worker: str) -> int:
        """Give the channel to ``worker`` under a new epoch, which is returned."""
        with self._lock:
            epoch = self._book.channels.get(channel, _State()).epoch + 1
            self._append(Lease(channel, epoch, worker))
            return epoch

    def fence(self, worker: str) -> None:
        """Take all channels from ``worker``."""
        with self._lock:
            self._append(Fence(worker))

    def commit(self, records: Iterable[TaskRecord]) -> list[int]:
        """Add task records in order and return their lsns once they are durable.

        Raises :class:`FencedError` at the first record that is not from the holder of its channel, or not the next one
        of it; those before it are added.
        """
        lsns = []
        try:
            for record in records:
                with self._lock:
                    if problem := self._book.problem(record):
                        stage, channel, seq = record.task
                        raise FencedError(f"channel {stage}.{channel}: record {seq} is refused: {problem}")
                    lsns.append(self._append(record))
        finally:
            if lsns:
                self.log.flush(lsns[-1])
        return lsns

    def _append(self, item: TaskRecord | Lease | Fence) -> int:
        lsn = self.log.append(Kind.USER, to_user(item))
        self._book.enter(item)
        return lsn

    def holder(self, channel: Channel) -> tuple[str | None, int]:
        """Worker that holds the channel (None: nobody) and the current epoch (0: never leased)."""
        state = self._book.channels.get(channel, _State())
        return state.worker, state.epoch

    def committed(self, channel: Channel) -> int:
        """Number of tasks of the channel that have a record: 0 .. committed - 1."""
        return self._book.channels.get(channel, _State()).next_seq

    def scan(self, channel: Channel, start: int = 0) -> Iterator[TaskRecord]:
        """The channel's records from task ``start`` on: the tape of a restart."""
        for _, item in _items(self.log.read()):
            if isinstance(item, TaskRecord) and item.channel == channel and item.task.seq >= start:
                yield item


def _items(entries: Iterable[Entry]) -> Iterator[tuple[int, TaskRecord | Lease | Fence]]:
    for entry in entries:
        if isinstance(entry.record, User):
            yield entry.lsn, from_user(entry.record)


def check_ledger(entries: Iterable[Entry]) -> dict[str, int]:
    """Replay a log by the rules: holder and epoch right, sequences dense, nothing after a final task, and every input
    committed earlier in the log and consumed contiguously. Returns counts; raises :class:`LineageCorruptError` with the
    lsn and the reason at the first record that breaks a rule."""
    book = _Book()
    consumed: dict[tuple[Channel, Channel], int] = {}
    counts = {"tasks": 0, "leases": 0, "fences": 0, "channels": 0}
    names = {TaskRecord: "tasks", Lease: "leases", Fence: "fences"}
    for lsn, item in _items(entries):
        problem = book.problem(item)
        if problem is None and isinstance(item, TaskRecord):
            problem = _input_problem(book, consumed, item)
        if problem is not None:
            raise LineageCorruptError(f"lineage record {lsn} breaks the rules: {problem}")
        book.enter(item)
        counts[names[type(item)]] += 1
    counts["channels"] = len(book.channels)
    return counts


def _input_problem(book: _Book, consumed: dict[tuple[Channel, Channel], int], record: TaskRecord) -> str | None:
    for span in record.inputs:
        producer = Channel(record.job, span.stage, span.channel)
        expected = consumed.get((record.channel, producer), 0)
        text = f"input {span.start}..{span.stop - 1} of channel {span.stage}.{span.channel}"
        if span.start != expected or span.stop <= span.start:
            return f"{text} does not continue at {expected}"
        if span.stop > book.channels.get(producer, _State()).next_seq:
            return f"{text} was not committed yet"
        consumed[record.channel, producer] = span.stop
    return None
