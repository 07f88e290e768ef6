"""Payloads of lineage records: one frozen dataclass for each kind, written as a msgpack array of its fields in order."""

from __future__ import annotations

import dataclasses
import enum
from dataclasses import dataclass
from typing import Any, ClassVar

import msgpack

from burnish.runtime.executors.message import pack
from burnish.runtime.lineage.errors import LineageCorruptError

FORMAT = 1
"""Version of the payloads, in every PROGRAM record."""


class Kind(enum.IntEnum):
    """The kind byte of a record; the same numbers as ``native/lineage/frame.hpp``."""

    PROGRAM = 1
    REGION = 2
    PARTITION = 3
    TASKDEF = 4
    LAUNCH = 5
    TEMPLATE = 6
    REPLAY = 7
    COMMIT = 8
    CHECKPOINT = 9
    USER = 10
    TRUNCATE = 11


@dataclass(frozen=True)
class BlobRef:
    """Something too large for the log, kept under the hash of its bytes."""

    key: bytes


@dataclass(frozen=True)
class Pickled:
    """A value that msgpack does not know."""

    data: bytes


Scalar = None | bool | int | float | str | Pickled | BlobRef


def scalar(value: object) -> Scalar:
    """A by-value argument as it goes into a record."""
    if value is None or type(value) in (bool, float, str) or (type(value) is int and -(2**63) <= value < 2**63):
        return value  # type: ignore[return-value]
    return Pickled(pack(value))


@dataclass(frozen=True)
class Program:
    """Start of a program: what ``--resume`` compares. ``code`` is a hash of the main file."""

    KIND: ClassVar = Kind.PROGRAM
    argv: tuple[str, ...]
    code: bytes
    python: str
    settings: dict[str, Any]
    started: float
    format: int = FORMAT


@dataclass(frozen=True)
class RegionRecord:
    """A region. ``space``: ``(lo..., hi...)`` of a rectangle, or a blob with sorted intervals. ``fields``: names, dtypes."""

    KIND: ClassVar = Kind.REGION
    region: int
    name: str
    root: int
    parent: int | None
    space: tuple[int, ...] | BlobRef
    fields: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class PartitionRecord:
    """A partition as the recipe that made it, e.g. ``("image", (5, "in_", 2))``."""

    KIND: ClassVar = Kind.PARTITION
    partition: int
    parent: int
    colors: tuple[int, ...]
    recipe: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class TaskDef:
    """A task; ``source`` is a hash of its code, ``blob`` its pickled function."""

    KIND: ClassVar = Kind.TASKDEF
    task: int
    name: str
    source: bytes
    blob: BlobRef
    deterministic: bool = True


@dataclass(frozen=True)
class Argument:
    """A region argument: ``target`` is a region where ``projection`` is None, else a partition with the offset of the
    color in each dimension (empty for ``each``) or the name of a mapped function. ``privilege``: 0 Read, 1 Write,
    2 ReadWrite, 3 + operator for Reduce. ``mask``: fields."""

    target: int
    projection: tuple[int, ...] | str | None
    privilege: int
    mask: int


@dataclass(frozen=True)
class Launch:
    """One launch; ``domain`` is empty for a single task."""

    KIND: ClassVar = Kind.LAUNCH
    task: int
    domain: tuple[int, ...]
    arguments: tuple[Argument, ...]
    scalars: tuple[Scalar, ...] = ()
    futures: tuple[int, ...] = ()


@dataclass(frozen=True)
class Template:
    """A captured trace: its tokens, as the trace module packs them."""

    KIND: ClassVar = Kind.TEMPLATE
    template: int
    tokens: bytes | BlobRef


@dataclass(frozen=True)
class Replay:
    """One replay of a template, however many tasks it has; ``bindings`` is the key of the interned binding vector."""

    KIND: ClassVar = Kind.REPLAY
    template: int
    bindings: bytes
    scalars: tuple[Scalar, ...] = ()


@dataclass(frozen=True)
class Commit:
    """Launches ``first..last`` are done on failure domain ``domain``."""

    KIND: ClassVar = Kind.COMMIT
    domain: int
    first: int
    last: int


@dataclass(frozen=True)
class Checkpoint:
    """A durable copy of one field of one piece at a version (the launch that wrote it: lsn, point)."""

    KIND: ClassVar = Kind.CHECKPOINT
    root: int
    field: int
    color: tuple[int, ...]
    version: tuple[int, int]
    file: str
    sha256: bytes


@dataclass(frozen=True)
class User:
    """A record of another system (queries): task ``(stage, channel, sequence)`` and what it says about it."""

    KIND: ClassVar = Kind.USER
    stage: int
    channel: int
    sequence: int
    payload: bytes


@dataclass(frozen=True)
class Truncate:
    """Records before ``lsn`` may be gone."""

    KIND: ClassVar = Kind.TRUNCATE
    lsn: int


Record = (
    Program
    | RegionRecord
    | PartitionRecord
    | TaskDef
    | Launch
    | Template
    | Replay
    | Commit
    | Checkpoint
    | User
    | Truncate
)

_CLASSES: dict[int, type[Any]] = {cls.KIND: cls for cls in Record.__args__}
_FIELDS = {cls: tuple(f.name for f in dataclasses.fields(cls)) for cls in (*_CLASSES.values(), Argument)}
_EXT_PICKLED, _EXT_BLOB = 1, 2


def _default(value: Any) -> Any:
    if isinstance(value, BlobRef):
        return msgpack.ExtType(_EXT_BLOB, value.key)
    if isinstance(value, Pickled):
        return msgpack.ExtType(_EXT_PICKLED, value.data)
    if isinstance(value, Argument):
        return (value.target, value.projection, value.privilege, value.mask)
    raise TypeError(f"a lineage record cannot hold a {type(value).__name__}")


def _extension(code: int, data: bytes) -> Any:
    return (
        BlobRef(data) if code == _EXT_BLOB else Pickled(data) if code == _EXT_PICKLED else msgpack.ExtType(code, data)
    )


def encode(record: Record) -> bytes:
    """The payload of a record."""
    values = [getattr(record, name) for name in _FIELDS[type(record)]]
    return msgpack.packb(values, default=_default)  # type: ignore[no-any-return]


def pack_scalars(scalars: tuple[Scalar, ...]) -> bytes:
    """Scalars as native code wants them: one msgpack item after another."""
    return b"".join(msgpack.packb(s, default=_default) for s in scalars)


def unpack_scalars(data: bytes) -> tuple[Scalar, ...]:
    """The reverse of :func:`pack_scalars`."""
    unpacker = msgpack.Unpacker(ext_hook=_extension)
    unpacker.feed(data)
    return tuple(unpacker)


def decode(kind: int, payload: bytes) -> Record:
    """The record of a payload; raises :class:`LineageCorruptError` if it is none."""
    try:
        cls = _CLASSES[kind]
        values = msgpack.unpackb(payload, use_list=False, ext_hook=_extension, strict_map_key=False)
        if cls is Launch:
            values = (*values[:2], tuple(Argument(*a) for a in values[2]), *values[3:])
        return cls(*values)  # type: ignore[no-any-return]
    except (KeyError, TypeError, ValueError, IndexError, msgpack.UnpackException) as error:
        raise LineageCorruptError(f"a lineage record of kind {kind} does not hold what it should: {error}") from error
