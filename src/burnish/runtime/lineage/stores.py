"""Where a lineage log lives: a directory of append-only segments, or memory. (On Ray: :mod:`.ray_store`.)"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import itertools
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from burnish.core.errors import BurnishError
from burnish.core.io import write_atomic
from burnish.runtime.lineage import native
from burnish.runtime.lineage.errors import LineageCorruptError, LineageMissingError, LineageWriteError

SEGMENT_BYTES = 64 << 20
KEY_BYTES = 16


def blob_key(data: bytes) -> bytes:
    """Name of a blob: 16 bytes of BLAKE2b."""
    return hashlib.blake2b(data, digest_size=KEY_BYTES).digest()


@dataclass(frozen=True)
class Segment:
    """Consecutive frames; ``name`` is for messages. Only the last segment of a log may end in an unfinished record."""

    name: str
    first_lsn: int
    data: bytes
    last: bool


@dataclass(frozen=True)
class Tail:
    """Where a log that is opened for writing goes on, and how many bytes of an unfinished record were cut off."""

    next_lsn: int
    torn_bytes: int


class Store(Protocol):
    """What :class:`LineageLog` needs from a place. ``open`` locks it for one writer and cuts off an unfinished record."""

    def open(self) -> Tail: ...
    def writer(self, tail: Tail) -> native.GroupCommit: ...
    def close(self) -> None: ...
    def first_lsn(self) -> int: ...
    def segments(self, from_lsn: int) -> Iterator[Segment]: ...
    def drop_before(self, lsn: int) -> None: ...
    def put_blob(self, data: bytes) -> bytes: ...
    def get_blob(self, key: bytes) -> bytes: ...


class MemoryStore:
    """Lives and dies with the process; for tests and for programs whose driver need not survive."""

    def __init__(self) -> None:
        self._groups: list[tuple[int, bytes]] = []
        self._first = 1
        self._next = 1
        self._blobs: dict[bytes, bytes] = {}
        self._lock = threading.Lock()

    def open(self) -> Tail:
        return Tail(self._next, 0)

    def writer(self, tail: Tail) -> native.GroupCommit:
        return native.commit_to_callable(self._write, tail.next_lsn)

    def _write(self, first_lsn: int, frames: bytes) -> None:
        with self._lock:
            self._groups.append((first_lsn, frames))
            self._next = native.scan(frames, first_lsn).records[-1].lsn + 1

    def close(self) -> None:
        pass

    def first_lsn(self) -> int:
        return self._first

    def segments(self, from_lsn: int) -> Iterator[Segment]:
        with self._lock:
            groups = list(self._groups)
        for i, (first, data) in enumerate(groups):
            if i + 1 == len(groups) or groups[i + 1][0] > from_lsn:
                yield Segment(f"memory group {i}", first, data, last=False)

    def drop_before(self, lsn: int) -> None:
        with self._lock:
            self._first = lsn
            later = [first for first, _ in self._groups[1:]] + [lsn + 1]
            self._groups = [group for group, nxt in zip(self._groups, later, strict=False) if nxt > lsn]

    def put_blob(self, data: bytes) -> bytes:
        key = blob_key(data)
        self._blobs[key] = data
        return key

    def get_blob(self, key: bytes) -> bytes:
        try:
            return self._blobs[key]
        except KeyError:
            raise LineageMissingError(f"blob {key.hex()} is not in the lineage store") from None


class DirectoryStore:
    """``DIR/<first lsn>.log`` segments, ``DIR/blobs/``, ``DIR/first`` (first record that counts), ``DIR/lock``.

    ``durability="host"``: a group is durable when ``fdatasync`` returned, it survives loss of power. ``"process"``: when
    ``write`` returned, it survives the death of any process, at a fraction of the cost.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Literal["host", "process"] = "host",
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self.path = Path(path)
        self._sync, self._segment_bytes = durability == "host", segment_bytes
        self._lock_fd = -1
        self._known_blobs: set[bytes] = set()

    # --- writing

    def open(self) -> Tail:
        try:
            (self.path / "blobs").mkdir(parents=True, exist_ok=True)
            self._lock_fd = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise LineageWriteError(f"the lineage log {self.path} is in use by another process") from None
        except OSError as error:
            self.close()
            raise LineageWriteError(f"cannot open the lineage log {self.path}: {error.strerror}") from error
        try:
            return self._cut_torn_tail()
        except BaseException:
            self.close()
            raise

    def _cut_torn_tail(self) -> Tail:
        files = self._files()
        if not files:
            return Tail(max(1, self.first_lsn()), 0)
        first, file = files[-1]
        data = file.read_bytes()
        scan = native.scan(data, first)
        if scan.end == "damaged":
            raise damaged(str(file), first, scan)
        torn = len(data) - scan.good_bytes
        if torn:
            with open(file, "r+b") as stream:
                stream.truncate(scan.good_bytes)
                os.fsync(stream.fileno())
        return Tail(first + len(scan.records), torn)

    def writer(self, tail: Tail) -> native.GroupCommit:
        files = self._files()
        last = str(files[-1][1]) if files else ""
        return native.commit_to_directory(str(self.path), last, self._sync, self._segment_bytes, tail.next_lsn)

    def close(self) -> None:
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1

    # --- reading

    def _files(self) -> list[tuple[int, Path]]:
        return sorted((int(file.stem), file) for file in self.path.glob("*.log") if file.stem.isdecimal())

    def first_lsn(self) -> int:
        with contextlib.suppress(FileNotFoundError):
            return int((self.path / "first").read_text())
        files = self._files()
        return files[0][0] if files else 1

    def segments(self, from_lsn: int) -> Iterator[Segment]:
        if not self.path.is_dir():
            raise BurnishError(f"there is no lineage log in {self.path}")
        files = self._files()
        for i, (first, file) in enumerate(files):
            if i + 1 == len(files) or files[i + 1][0] > from_lsn:
                yield Segment(str(file), first, file.read_bytes(), last=i + 1 == len(files))

    def drop_before(self, lsn: int) -> None:
        write_atomic(self.path / "first", str(lsn))
        files = self._files()
        for (_, file), (following, _) in itertools.pairwise(files):
            if following <= lsn:
                file.unlink()

    # --- blobs

    def _blob_path(self, key: bytes) -> Path:
        name = key.hex()
        return self.path / "blobs" / name[:2] / name[2:]

    def put_blob(self, data: bytes) -> bytes:
        key = blob_key(data)
        if key not in self._known_blobs:
            path = self._blob_path(key)
            if not path.exists():
                self._write_blob(path, data)
            self._known_blobs.add(key)
        return key

    def _write_blob(self, path: Path, data: bytes) -> None:
        try:
            if self._sync:
                write_atomic(path, data)
                return
            path.parent.mkdir(exist_ok=True)
            temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
            temporary.write_bytes(data)
            temporary.replace(path)
        except BurnishError as error:
            raise LineageWriteError(error.message) from error
        except OSError as error:
            raise LineageWriteError(f"cannot write {path}: {error.strerror}") from error

    def get_blob(self, key: bytes) -> bytes:
        path = self._blob_path(key)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise LineageMissingError(f"blob {key.hex()} is not in the lineage store ({path})") from None
        if blob_key(data) != key:
            raise LineageCorruptError(f"blob {path} is damaged: its content does not match its name")
        return data


def damaged(name: str, first_lsn: int, scan: native.Scan) -> LineageCorruptError:
    """The error for a bad place in a segment that starts with record ``first_lsn``."""
    lsn = first_lsn + len(scan.records)
    return LineageCorruptError(
        f"lineage log {name} is damaged at byte {scan.good_bytes}, record {lsn}: {scan.problem}",
        hint="restore the file from a copy; records before this one are intact",
    )
