"""The write-ahead log of what ran on what, and the planning of recovery from it; shared by the runtime and queries."""

from burnish.runtime.lineage.errors import LineageCorruptError, LineageError, LineageMissingError, LineageWriteError
from burnish.runtime.lineage.log import Entry, LineageLog, read_log
from burnish.runtime.lineage.stores import DirectoryStore, MemoryStore, Store

__all__ = [
    "DirectoryStore",
    "Entry",
    "LineageCorruptError",
    "LineageError",
    "LineageLog",
    "LineageMissingError",
    "LineageWriteError",
    "MemoryStore",
    "Store",
    "read_log",
]
