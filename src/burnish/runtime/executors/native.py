"""The native part of the executors with its types: shared memory, channels, task messages."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NewType, Protocol, TypedDict, cast

import numpy as np

from burnish import _native
from burnish.core.errors import EnvironmentProblem

_ex = _native.executors

OK, DIED, TIMEOUT = 0, 1, 2
"""What :meth:`Channel.send` and :meth:`Channel.wait` return as status."""

CHANNEL_BYTES: int = _ex.Channel.BYTES
ArenaFull = cast(type[MemoryError], _ex.ArenaFull)
ArrayDesc = NewType("ArrayDesc", object)
"""A strided piece of an arena: offset, dtype, shape, strides in bytes."""


class ArenaStats(TypedDict):
    """All in bytes, except ``blocks``; ``retained`` is free memory that still holds pages."""

    capacity: int
    limit: int
    used: int
    peak: int
    retained: int
    blocks: int


class Arena(Protocol):
    """One memory that the driver and all workers map; a block has the same offset in each. Thread-safe."""

    @property
    def fd(self) -> int: ...
    @property
    def capacity(self) -> int: ...
    @property
    def address(self) -> int: ...
    def alloc(self, bytes: int, align: int = 64) -> int: ...
    def free(self, offset: int) -> None: ...
    def block_bytes(self, offset: int) -> int: ...
    def write(self, offset: int, data: bytes) -> None: ...
    def trim(self) -> None: ...
    def stats(self) -> ArenaStats: ...


class ObjectRef(Protocol):
    """A pickled object in an arena; ``id`` is a hash of its bytes."""

    @property
    def id(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def bytes(self) -> int: ...


class Channel(Protocol):
    """Request and response between the driver and one worker; strictly alternating."""

    @property
    def done(self) -> int: ...
    def reset(self) -> None: ...
    def set_spin(self, nanoseconds: int) -> None: ...
    def send(self, request: bytes, pidfd: int, timeout: float = -1.0) -> int: ...
    def wait(self, pidfd: int, timeout: float = -1.0) -> tuple[int, bytes]: ...
    def beat(self) -> None: ...
    def beat_age(self) -> float: ...


class Request(Protocol):
    """Builder of a request: ``task(n)``, one node for the function, ``n`` for its arguments; ...; ``finish()``."""

    def task(self, arguments: int, wants_result: bool = True) -> None: ...
    def value(self, value: object) -> None: ...
    def pickled(self, data: bytes) -> None: ...
    def object(self, ref: ObjectRef) -> None: ...
    def apply(self, ref: ObjectRef, children: int) -> None: ...
    def array(self, desc: ArrayDesc) -> None: ...
    def finish(self) -> bytes: ...


ErrorParts = tuple[bytes | None, str, str, str]
"""Pickled exception or None, type name, message, traceback text."""


class Decoder(Protocol):
    """Nodes of messages as Python objects; arrays are views of the arena."""

    def array(self, desc: ArrayDesc) -> np.ndarray[Any, Any]: ...
    def outcomes(self, response: bytes) -> list[tuple[int, int, int, Any]]: ...


class Undo(Protocol):
    """Copies of pieces, to be put back when a worker died while it changed them."""

    @property
    def bytes(self) -> int: ...
    def save(self, pieces: Sequence[ArrayDesc]) -> None: ...
    def restore(self) -> None: ...
    def release(self) -> None: ...


def new_arena(capacity: int | None = None, *, limit: int = 0, retain: int = 256 << 20) -> Arena:
    """Reserve a sparse arena; ``capacity`` bytes of address space, by default twice the machine's memory.

    ``limit`` bounds the bytes in live blocks (0: the capacity); ``retain`` is how many bytes of free memory may keep
    their pages for quick reuse. Nothing of it outlives the processes that map it.
    """
    size = capacity or 2 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        return cast(Arena, _ex.Arena(size, limit, retain))
    except RuntimeError as error:
        raise EnvironmentProblem(f"{error}; raise the limit of virtual memory (ulimit -v) or ask for less") from None


def attach_arena(fd: int, capacity: int) -> Arena:
    """Map the arena of a driver; takes ``fd`` over."""
    return cast(Arena, _ex.Arena.attach(fd, capacity))


def channel(arena: Arena, offset: int) -> Channel:
    """The channel in the block at ``offset`` (``CHANNEL_BYTES`` long)."""
    return cast(Channel, _ex.Channel(arena, offset))


def object_ref(id: int, offset: int, bytes: int) -> ObjectRef:
    return cast(ObjectRef, _ex.ObjectRef(id, offset, bytes))


def request(pickle: Callable[[Any], bytes]) -> Request:
    return cast(Request, _ex.Request(pickle))


def decoder(arena: Arena) -> Decoder:
    return cast(Decoder, _ex.Decoder(arena))


def undo(arena: Arena) -> Undo:
    return cast(Undo, _ex.Undo(arena))


def array_desc(
    offset: int,
    dtype: str | ObjectRef,
    item_bytes: int,
    shape: Sequence[int],
    strides: Sequence[int],
    writeable: bool,
) -> ArrayDesc:
    """Describe an array in the arena; ``dtype`` is NumPy's ``dtype.str`` (at most 8 characters) or a stored dtype."""
    return cast(ArrayDesc, _ex.ArrayDesc(offset, dtype, item_bytes, list(shape), list(strides), writeable))


def serve(channel: Channel, decoder: Decoder, pickle: Callable[[Any], bytes], describe: Callable[..., Any]) -> None:
    """Answer requests until an empty one comes (worker side)."""
    _ex.serve(channel, decoder, pickle, describe)


def watch(channel: Channel, pipe: int) -> object:
    """Keep the heartbeat going and end this process when ``pipe`` closes, as long as the returned object lives."""
    return cast(object, _ex.Watch(channel, pipe))


def die_with_parent(parent: int) -> None:
    """End this process together with the thread of ``parent`` that started it."""
    _ex.die_with_parent(parent)
