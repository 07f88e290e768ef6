"""The counter that all tasks of a run, in whatever process, count themselves in; with records if a timeline is wanted."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from burnish.taskbench import _native

#: Columns of ``Ledger.records()``; start and end in ns of CLOCK_MONOTONIC, the last packs graph and thread id.
RECORD_COLUMNS = ("start", "end", "t", "p", "graph_thread")


@lru_cache(maxsize=8)
def attached(path: str | None) -> Any:
    """The ledger in file ``path``, or the one of this process. A machine that does not share the file makes its own."""
    if path is None:
        return _native.create_ledger("", 0)
    return _native.attach_ledger(path) if Path(path).exists() else _native.create_ledger(path, 0)


@contextmanager
def shared_ledger(capacity: int = 0) -> Iterator[Any]:
    """A ledger that processes of this machine attach by its path; removed afterwards."""
    folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()
    handle, path = tempfile.mkstemp(prefix="burnish-taskbench-", dir=folder)
    os.close(handle)
    try:
        yield _native.create_ledger(path, capacity)
    finally:
        Path(path).unlink(missing_ok=True)


def collect(path: str) -> int:
    """Tasks that this machine counted in its own file ``path``, which is removed: for machines that share no files."""
    count = int(attached(path).executed)
    attached.cache_clear()
    Path(path).unlink(missing_ok=True)
    return count
