"""The native part of the lineage log with its types: checksums, framing, group commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol, cast

from burnish import _native

_ln = _native.lineage

FLAG_IN_BLOB = 1
"""The payload is the key of a blob that holds the real payload."""
HEADER_BYTES = 24


class RawRecord(NamedTuple):
    lsn: int
    kind: int
    flags: int
    payload: bytes


class Scan(NamedTuple):
    """Frames of a run of bytes, and how it ended; ``good_bytes`` is where the whole frames end."""

    records: list[RawRecord]
    good_bytes: int
    end: Literal["complete", "torn", "damaged"]
    problem: str


class GroupCommit(Protocol):
    """Frames records and writes them in groups, from one native thread."""

    @property
    def durable(self) -> int: ...
    @property
    def next_lsn(self) -> int: ...
    @property
    def groups(self) -> int: ...
    def append(self, kind: int, flags: int, payload: bytes) -> int: ...
    def flush(self, upto: int = 0) -> None: ...
    def close(self) -> None: ...


def crc32c(data: bytes, crc: int = 0) -> int:
    """CRC-32C (Castagnoli) of ``data``, continuing ``crc``."""
    return cast(int, _ln.crc32c(data, crc))


def frame(kind: int, flags: int, lsn: int, payload: bytes) -> bytes:
    """One framed record."""
    return cast(bytes, _ln.frame(kind, flags, lsn, payload))


def scan(data: Any, first_lsn: int, start: int = 0) -> Scan:
    """Parse frames from any buffer; the first must be record ``first_lsn``; records below ``start`` are left out."""
    records, good, end, problem = _ln.scan(data, first_lsn, start)
    return Scan([RawRecord(*r) for r in records], good, end, problem)


def commit_to_directory(directory: str, tail: str, sync: bool, segment_bytes: int, next_lsn: int) -> GroupCommit:
    return cast(GroupCommit, _ln.OwnedGroupCommit.to_directory(directory, tail, sync, segment_bytes, next_lsn))


def commit_to_callable(write: Callable[[int, bytes], None], next_lsn: int) -> GroupCommit:
    return cast(GroupCommit, _ln.OwnedGroupCommit.to_callable(write, next_lsn))
