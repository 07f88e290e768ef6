"""Check mode: data that the program must leave alone while tasks may use them, watched by checksums.

Attached arrays and arrays that bodies capture are looked at whenever the program comes back to the runtime. Between two
such moments nothing of the runtime runs (launches that use them are waited for), so any change was made outside it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from burnish._native import runtime as _rt
from burnish.runtime.errors import RaceError, line_of, where
from burnish.runtime.naming import Site, argument_text, here

enabled = False  # set with the settings of the context


@dataclass
class Watched:
    """One array, with the checksum of its contents and the place of the program when the runtime last knew them."""

    array: npt.NDArray[Any]
    label: str
    remedy: str
    digest: bytes = b""
    site: Site | None = None

    def remember(self) -> None:
        self.digest, self.site = _digest(self.array), here()

    def look(self) -> None:
        """Raise RaceError if the contents changed since the runtime last knew them."""
        if not self.digest or _digest(self.array) == self.digest:
            return
        since, now = self.site, here()
        self.remember()  # one report for one change
        places = f"{_text(since, 'the start')} and {_text(now, 'the end')}"
        raise RaceError(f"{self.label} was modified outside the runtime between {places}; {self.remedy}")


_watched: dict[Any, Watched] = {}  # by root id, or by task and name


def _digest(array: npt.NDArray[Any]) -> bytes:
    flat: Any = np.ascontiguousarray(array).view(np.uint8)
    return hashlib.blake2b(flat, digest_size=16).digest() if array.size else b""


def _text(site: Site | None, otherwise: str) -> str:
    return where(site.code, line_of(*site)) if site else f"{otherwise} of the program"


def watched_region(region: Any) -> Watched | None:
    """What is known of a region's array; None unless it is attached."""
    info = _rt.root_info(region)
    if not info["attached"]:
        return None
    key = info["id"]
    if key not in _watched:
        name = region.root.name
        label = argument_text(info["origin"].site, 0, "array") or name
        _watched[key] = Watched(
            info["owner"], f"array '{label}' attached as region '{name}'", f"use with {name}.host('rw')"
        )
    return _watched[key]


def watched_capture(task: str, name: str, array: npt.NDArray[Any]) -> Watched:
    """What is known of an array that a body captures."""
    made = Watched(array, f"array '{name}', which task '{task}' uses,", "pass it as an argument")
    return _watched.setdefault((task, name), made)


def before_access(region: Any) -> None:
    """The program is about to use a region through the runtime."""
    watched = watched_region(region) if enabled else None
    if watched is not None:
        _rt.settle()
        watched.look()


def after_access(region: Any) -> None:
    """The program has used a region through the runtime."""
    watched = watched_region(region) if enabled else None
    if watched is not None:
        _rt.settle()
        watched.remember()


def forget(region: Any) -> None:
    """The region was detached from its array."""
    _watched.pop(_rt.root_info(region)["id"], None)


def look_at_all() -> None:
    """The program waits for everything."""
    for one in list(_watched.values()):
        one.look()


def clear() -> None:
    """The context ends."""
    _watched.clear()
