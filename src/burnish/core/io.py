"""Outputs appear whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from burnish.core.errors import BurnishError

_DISK_TROUBLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def write_atomic(path: str | os.PathLike[str], data: str | bytes) -> Path:
    """Write ``data`` (text as UTF-8) to ``path``, whole or not at all, and return the path.

    See :func:`open_atomic`, which this uses.
    """
    raw = data.encode() if isinstance(data, str) else data
    with open_atomic(path) as stream:
        stream.write(raw)
    return Path(path)


@contextmanager
def open_atomic(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary stream whose contents become ``path`` when the block ends without an exception.

    They go to a temporary file beside the target, which is renamed over it at the end; until then, and if the block
    raises, is interrupted or the process is killed, ``path`` stays what it was. Parent folders are made, a symbolic
    link is written through, an existing file keeps its permissions. Devices and pipes (``/dev/null``) cannot be
    replaced and are written directly.

    Raises :class:`BurnishError` if the file cannot be written.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(6)}.part")
    try:
        before = _mode(target)
        if before is not None and stat.S_ISDIR(before):
            raise BurnishError(f"cannot write {os.fspath(path)}: it is a folder", hint="give the name of a file")
        in_place = before is not None and not stat.S_ISREG(before)
        if not in_place:
            target.parent.mkdir(parents=True, exist_ok=True)
        stream = (target if in_place else temporary).open("wb" if in_place else "xb")
    except OSError as error:
        raise _cannot_write(path, error) from error
    try:
        with stream:
            yield stream
            if not in_place:
                stream.flush()
                os.fsync(stream.fileno())
        if not in_place:
            if before is not None:
                temporary.chmod(stat.S_IMODE(before))
            temporary.replace(target)
    except OSError as error:
        # The block may fail for reasons of its own, such as an input that is not there; those pass through.
        if error.errno in _DISK_TROUBLE or error.filename == str(temporary):
            raise _cannot_write(path, error) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise now, before long work, the :class:`BurnishError` that writing ``path`` would raise after it.

    Changes nothing but that parent folders are made.
    """
    before = _mode(Path(os.path.realpath(path))) if os.path.exists(path) else None
    if before is not None and not stat.S_ISREG(before) and not stat.S_ISDIR(before):
        return  # a pipe: to open it would already tell its reader something
    with suppress(_Probe), open_atomic(path):
        raise _Probe


class _Probe(Exception):
    """Ends the writing of :func:`check_writable`."""


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _cannot_write(path: str | os.PathLike[str], error: OSError) -> BurnishError:
    return BurnishError(f"cannot write {os.fspath(path)}: {error.strerror or error}")
