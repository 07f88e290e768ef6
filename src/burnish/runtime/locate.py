"""Points that a body asked for and did not get: which they are, what it had, and where they really live."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from burnish._native import ispace as _ispace
from burnish._native import runtime as _rt
from burnish.runtime.errors import OutOfRegionError
from burnish.runtime.partition import Partition
from burnish.runtime.region import Region


def owner_of(root: Region, position: int) -> Region | None:
    """A subregion that holds a row-major position: of a disjoint partition if there is one."""
    shape = list(_rt.root_info(root)["shape"])
    point = _ispace.points([0] * len(shape), shape, np.array([position], np.int64))
    partitions: list[Partition] = sorted(_rt.partitions_of(root), key=lambda p: not p.disjoint)
    return next((child for part in partitions for child in part if _ispace.covers(child.ispace, point)), None)


def running_text() -> str:
    """``task 'f', color 3: `` for the body that this thread runs; empty outside of bodies."""
    running = _rt.running_task()
    if running is None:
        return ""
    info, color = running
    return f"task '{info.name}'{'' if color is None else f', color {color}'}: "


def _place_text(root: Region, position: int) -> str:
    shape = _rt.root_info(root)["shape"]
    return str(position) if len(shape) == 1 else str(tuple(int(c) for c in np.unravel_index(position, shape)))


def out_of_region(position: int, arrays: Sequence[Any]) -> OutOfRegionError:
    """The error for a root position that is in none of the argument arrays of the running body."""
    places = [p for p in map(_rt.whereabouts, arrays) if p is not None]
    if not places:
        return OutOfRegionError(
            f"{running_text()}index {position} is in none of the given fields; add it to the partition"
        )
    region, field = places[0]
    root: Region = region.root
    label = root.name if len(root.fields) == 1 else f"{root.name}.{field}"
    size = int(np.prod(_rt.root_info(root)["shape"]))
    if not 0 <= position < size:
        return OutOfRegionError(
            f"{running_text()}index {position} of '{label}' is outside '{root.name}' ({size} points)"
        )
    had = " or ".join(f"{r.name} ({r.volume} points)" for r, _ in places)
    owner = owner_of(root, position)
    found = "no partition has it. Add it to one"
    if owner is not None:
        found = f"it is in {owner.name}. Add it to the partition, or pass {owner.name}"
    return OutOfRegionError(
        f"{running_text()}index {_place_text(root, position)} of '{label}' is not in {had}; {found}"
    )
