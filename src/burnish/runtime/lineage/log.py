"""The lineage log: append, flush, read, truncate.

Group commit: ``append`` frames the record into a buffer and returns at once. A group is made durable as soon as somebody
waits for it in ``flush``. Without anybody waiting, the append that finds 64 KiB buffered or the first record 2 ms old hands
the group to the system (it then survives the death of the process), and a native thread makes durable what is left over
every 50 ms while there is something. Waking a thread every 2 ms would cost more than the records do, and nobody waits for
it: whoever makes results visible outside the failure domain that computed them calls ``flush(lsn)`` first.
"""

from __future__ import annotations

import atexit
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace

from burnish.runtime.lineage import native, records
from burnish.runtime.lineage.errors import LineageCorruptError, LineageError, LineageMissingError, LineageWriteError
from burnish.runtime.lineage.records import BlobRef, Kind, Launch, Pickled, Record, Replay, Scalar, Template, Truncate
from burnish.runtime.lineage.stores import Store, damaged

INLINE_SCALAR_BYTES = 128
"""Larger scalars go to the blob store."""
INLINE_PAYLOAD_BYTES = 1000
"""Larger payloads go to the blob store as a whole, so a launch takes at most 1 KiB of log."""


@dataclass(frozen=True)
class Entry:
    """A record with its number in the log."""

    lsn: int
    record: Record

    @property
    def kind(self) -> Kind:
        return self.record.KIND


class LineageLog:
    """The log in ``store``, opened for appending; goes on after the last whole record of an earlier run.

    ``torn_bytes`` says how much of an unfinished last record was dropped on opening. Raises
    :class:`LineageCorruptError` if the log is damaged elsewhere, :class:`LineageWriteError` if it cannot be opened.
    Appending is thread-safe. ``native`` is the writer for C++ callers.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        tail = store.open()
        self.torn_bytes = tail.torn_bytes
        self.native = store.writer(tail)
        atexit.register(self.close)
        self._closed = False

    def append(self, kind: Kind, payload: Record | bytes) -> int:
        """Add a record (or its encoded payload) and return its lsn; it is durable after ``flush(lsn)``."""
        data = payload if isinstance(payload, bytes) else records.encode(self._shrink(payload))
        flags = 0
        if len(data) > INLINE_PAYLOAD_BYTES and kind is not Kind.USER:
            data, flags = self.put_blob(data), native.FLAG_IN_BLOB
        try:
            return self.native.append(kind, flags, data)
        except RuntimeError as error:
            raise LineageWriteError(str(error)) from None

    def flush(self, upto: int | None = None) -> None:
        """Return when the records up to ``upto`` (default: all so far) are durable."""
        try:
            self.native.flush(upto or 0)
        except RuntimeError as error:
            raise LineageWriteError(str(error)) from None

    def read(self, from_lsn: int | None = None) -> Iterator[Entry]:
        """All records from ``from_lsn`` (default: the first that is kept), this log's own included."""
        if not self._closed:
            self.flush()
        return read_log(self.store, from_lsn)

    def truncate(self, lsn: int) -> None:
        """Forget all records before ``lsn``; their space is freed in whole segments."""
        if not self.store.first_lsn() <= lsn <= self.native.next_lsn:
            raise LineageMissingError(f"cannot truncate to record {lsn}: the log has {self._range()}")
        self.flush(self.append(Kind.TRUNCATE, Truncate(lsn)))
        self.store.drop_before(lsn)

    def _range(self) -> str:
        return f"{self.store.first_lsn()}..{self.native.next_lsn - 1}"

    def put_blob(self, data: bytes) -> bytes:
        """Keep ``data`` under its hash, durably; returns the 16-byte key."""
        return self.store.put_blob(data)

    def get_blob(self, key: bytes) -> bytes:
        """What :meth:`put_blob` kept; raises :class:`LineageMissingError` or :class:`LineageCorruptError`."""
        return self.store.get_blob(key)

    def _shrink(self, record: Record) -> Record:
        if isinstance(record, Launch | Replay):
            small = tuple(self._shrink_scalar(s) for s in record.scalars)
            return record if small == record.scalars else replace(record, scalars=small)
        if isinstance(record, Template) and isinstance(record.tokens, bytes) and len(record.tokens) > 512:
            return replace(record, tokens=BlobRef(self.put_blob(record.tokens)))
        return record

    def _shrink_scalar(self, value: Scalar) -> Scalar:
        if isinstance(value, str | Pickled):
            data = records.pack_scalars((value,))
            if len(data) > INLINE_SCALAR_BYTES:
                return BlobRef(self.put_blob(data))
        return value

    @property
    def durable(self) -> int:
        """The lsn up to which everything is durable."""
        return self.native.durable

    def close(self) -> None:
        """Write what is left and let go of the store. Idempotent; raises :class:`LineageWriteError`."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        try:
            self.native.close()
        except RuntimeError as error:
            raise LineageWriteError(str(error)) from None
        finally:
            self.store.close()

    def __enter__(self) -> LineageLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_log(store: Store, from_lsn: int | None = None) -> Iterator[Entry]:
    """Records of a log, also of one that another process is writing or that was cut off by a crash.

    An unfinished last record ends the log. Raises :class:`LineageCorruptError` with file, byte and lsn for any other
    damage, :class:`LineageMissingError` if records from ``from_lsn`` on have been truncated away.
    """
    first = store.first_lsn()
    start = first if from_lsn is None else from_lsn
    if start < first:
        raise LineageMissingError(f"record {start} has been truncated away; the log starts at {first}")
    expected: int | None = None
    for segment in store.segments(start):
        if expected is not None and segment.first_lsn != expected:
            raise LineageCorruptError(
                f"lineage log: records {expected}..{segment.first_lsn - 1} are missing before {segment.name}"
            )
        if expected is None and segment.first_lsn > start:
            raise LineageCorruptError(
                f"lineage log: records {start}..{segment.first_lsn - 1} are missing before {segment.name}"
            )
        scan = native.scan(segment.data, segment.first_lsn, start)
        for raw in scan.records:
            yield Entry(raw.lsn, _decode(store, segment.name, raw))
        if scan.end == "damaged" or (scan.end == "torn" and not segment.last):
            raise damaged(segment.name, segment.first_lsn, scan)
        expected = scan.records[-1].lsn + 1 if scan.records else max(start, segment.first_lsn)


def _decode(store: Store, name: str, raw: native.RawRecord) -> Record:
    try:
        payload = store.get_blob(raw.payload) if raw.flags & native.FLAG_IN_BLOB else raw.payload
        return records.decode(raw.kind, payload)
    except LineageError as error:
        raise type(error)(f"lineage log {name}, record {raw.lsn}: {error.message}") from error


def scalar_value(store: Store, value: Scalar) -> object:
    """The value that was logged, fetched from its blob and unpickled where need be."""
    if isinstance(value, BlobRef):
        (value,) = records.unpack_scalars(store.get_blob(value.key))
    return pickle.loads(value.data) if isinstance(value, Pickled) else value
