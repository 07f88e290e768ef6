"""The memory limit: what would allocate beyond it waits until space is free, or says what takes the space."""

from __future__ import annotations

import gc
import logging
import re
from typing import Any

from burnish._native import runtime as _rt
from burnish.runtime.errors import RuntimeProblem
from burnish.runtime.naming import Origin, name_of

_UNITS = {
    "": 1,
    "k": 1000,
    "m": 1000**2,
    "g": 1000**3,
    "t": 1000**4,
    "ki": 1 << 10,
    "mi": 1 << 20,
    "gi": 1 << 30,
    "ti": 1 << 40,
}
_log = logging.getLogger("burnish.runtime")


def parse_size(text: str) -> int:
    """Bytes from ``500MB``, ``2GiB``, ``1e9``.

    >>> parse_size("1.5 KiB")
    1536
    """
    found = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*(|[kmgt]i?)b?\s*", text.lower())
    try:
        size = int(float(found[1]) * _UNITS[found[2]]) if found else 0
    except ValueError:
        size = 0
    if size <= 0:
        raise RuntimeProblem(f"memory_limit={text!r} is not a size; write 500MB, 2GiB or a number of bytes")
    return size


def size_text(n: int) -> str:
    """``80 MB``."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 1000)):
        if n >= factor:
            return f"{n / factor:.3g} {unit}"
    return f"{n} bytes"


def _largest() -> str:
    regions = sorted(((size, region) for _, region, size in _rt.live_roots()), key=lambda r: -r[0])[:3]
    return ", ".join(f"'{region.name}' ({size_text(size)})" for size, region in regions if size) or "none"


def make_room_for_region(origin: Origin, needed: int) -> None:
    """Called before a region of ``needed`` bytes is made."""
    limit = _rt.memory_limit()
    if limit and _rt.memory_used() + needed > limit:
        name = name_of(origin)
        _make_room(f"region '{name}'" if name else "a region", needed)


def make_room_for_launch(info: Any, needed: int) -> None:
    """Called by native code, with a TaskInfo, for a launch whose reduction buffers would go beyond the limit."""
    _make_room(f"launch of '{info.name}' with its reduction buffers", needed)


def _make_room(what: str, needed: int) -> None:
    """Wait until ``needed`` more bytes fit below the limit; RuntimeProblem if they never will."""
    limit, used = _rt.memory_limit(), _rt.memory_used()
    _log.warning(
        "%s needs %s, but memory_limit=%s leaves %s: waiting for tasks to finish; the largest regions are %s",
        what,
        size_text(needed),
        size_text(limit),
        size_text(max(0, limit - used)),
        _largest(),
    )
    gc.collect()
    _rt.fold_all()
    used = _rt.memory_used()
    if used + needed > limit:
        raise RuntimeProblem(
            f"{what} needs {size_text(needed)}, but {size_text(used)} of memory_limit={size_text(limit)} are in use; "
            f"the largest regions are {_largest()}. Drop regions or raise the limit"
        )
