"""Check mode: bodies run between guards that find what would otherwise only show as wrong results.

``Read`` arguments are copies, compared with the original afterwards: writes that went around NumPy's read-only flag are
found. ``Write`` arguments are filled with signalling values: points that are read before they are written, or never
written, are found. The copies have the strides and the alignment of the original, so that results stay bitwise the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np
import numpy.typing as npt

from burnish._native import runtime as _rt
from burnish.runtime import races, signalling
from burnish.runtime.access import SparseField, fields_view
from burnish.runtime.capture import captured
from burnish.runtime.errors import UninitializedError
from burnish.runtime.failure import wrote_read_only
from burnish.runtime.locate import running_text
from burnish.runtime.privilege import Requirement
from burnish.runtime.region import READ, WRITE, Region
from burnish.runtime.signature import TaskInfo

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Slot:
    """One field of one region argument: what it is called, what it may be used for, and what the body gets."""

    name: str
    kind: int
    region: Region
    item: Array  # an array, or a SparseField
    mark: int

    @property
    def array(self) -> Array:
        return self.item.values if isinstance(self.item, SparseField) else self.item

    def points(self, flags: npt.NDArray[np.bool_]) -> int:
        """Points with any flag set; ``flags`` has the array's shape."""
        outer = len(self.region.ispace.bounds[0]) if self.region.dense else 1
        return int(flags.any(axis=tuple(range(outer, flags.ndim))).sum())


def _kind_of(requirements: tuple[Requirement, ...], field: str) -> int:
    return next(r.kind for r in requirements if not r.fields or field in r.fields)


def _slots(
    info: TaskInfo, args: tuple[Any, ...], regions: tuple[Region, ...]
) -> Iterator[tuple[int, str | None, Slot]]:
    """(position of the argument, attribute in it, slot) in declaration order."""
    mark, left = 0, iter(regions)
    for position, (parameter, value) in enumerate(zip(info.parameters, args, strict=True)):
        if parameter.privilege is None:
            continue
        region, requirements = next(left), parameter.privilege.requirements
        alone = isinstance(value, np.ndarray)
        named = requirements[0].fields
        for field in [named[0] if named else region.fields[0].name] if alone else type(value).__slots__:
            mark = mark % signalling.MARKS + 1
            label = parameter.name if alone else f"{parameter.name}.{field}"
            item = value if alone else getattr(value, field)
            yield (
                position,
                None if alone else field,
                Slot(label, _kind_of(requirements, field), region, item, mark),
            )


def _guarded_copy(original: Array) -> Array:
    """A read-only copy with the same strides, at the same place within a cache line."""
    low, high = np.lib.array_utils.byte_bounds(original)
    buffer = np.empty(high - low + 128, np.uint8)
    start = (low - buffer.ctypes.data) % 64
    copy: Array = np.ndarray(
        original.shape, original.dtype, buffer, start + original.ctypes.data - low, original.strides
    )
    copy[...] = original
    copy.flags.writeable = False
    return copy


def _first_change(copy: Array, original: Array) -> tuple[int, ...] | None:
    """Index of the first value whose bytes differ."""
    if copy.size == 0:
        return None
    different = copy.view(np.uint8) != original.view(np.uint8)
    if not different.any():
        return None
    at = np.unravel_index(int(np.argmax(different)), different.shape)
    return (*(int(i) for i in at[:-1]), int(at[-1]) // copy.itemsize)


def _replace(args: list[Any], position: int, attribute: str | None, item: Array) -> None:
    """Put ``item`` in the place of one array of the arguments."""
    if attribute is None:
        args[position] = item
    else:
        value = args[position]
        names = list(type(value).__slots__)
        args[position] = fields_view(names, [item if n == attribute else getattr(value, n) for n in names])


def run_checked(
    info: TaskInfo, args: tuple[Any, ...], color: Any, regions: tuple[Region, ...], body: Callable[..., Any]
) -> Any:
    """Run one body with guards; native code calls this in the thread that runs the task.

    Raises PrivilegeError if a ``Read`` argument was changed, UninitializedError if a ``Write`` argument was not
    overwritten before use.
    """
    passed = list(args)
    reads: list[tuple[Slot, Array]] = []
    writes: list[Slot] = []
    others: list[Slot] = []
    for position, attribute, slot in _slots(info, args, regions):
        if slot.kind == READ:
            copy = _guarded_copy(slot.array)
            index = getattr(slot.item, "index", None)
            item = SparseField(index, copy) if index is not None else copy
            _rt.lend(item, slot.item)
            _replace(passed, position, attribute, item)
            reads.append((slot, copy))
        elif slot.kind == WRITE and signalling.fill(slot.array, slot.mark):
            writes.append(slot)
        else:
            others.append(slot)
    result = body(*passed) if info.kernel == "python" else body(*_flat(info, passed, regions))
    for slot, copy in reads:
        changed = _first_change(copy, slot.array)
        if changed is not None:
            raise wrote_read_only(info, slot.name, f"[{', '.join(map(str, changed))}]")
    _check_written(writes, others, result)
    return result


def _flat(info: TaskInfo, args: list[Any], regions: tuple[Region, ...]) -> tuple[list[Array], list[Any]]:
    """Arguments as a native body takes them: all arrays, all numbers."""
    arrays = [slot.array for _, _, slot in _slots(info, tuple(args), regions)]
    return arrays, [value for p, value in zip(info.parameters, args, strict=True) if p.privilege is None]


def _check_written(writes: list[Slot], others: list[Slot], result: Any) -> None:
    if not writes:
        return
    outputs = [(s, signalling.marks(s.array, quiet_only=False)) for s in (*writes, *others)]
    shown = _marks_of_value(result)
    for slot in writes:
        total = slot.region.volume
        count = slot.points(signalling.marks(slot.array, quiet_only=True) == slot.mark)
        if count:
            raise _uninitialized(f"{count} of {total} points of '{slot.name}' were read before being written")
        for other, found in outputs:
            count = other.points(found == slot.mark) if other is not slot else 0
            if count:
                raise _uninitialized(
                    f"'{slot.name}' was read before being written: {count} points of '{other.name}' come from it"
                )
        if slot.mark in shown:
            raise _uninitialized(f"'{slot.name}' was read before being written: the returned value comes from it")
        count = slot.points(signalling.unwritten(slot.array, slot.mark))
        if count:
            raise _uninitialized(f"{count} of {total} points of '{slot.name}' were never written")


def _marks_of_value(value: Any) -> set[int]:
    """Marks in what a body returned."""
    if not isinstance(value, (float, complex, np.generic, np.ndarray)):
        return set()
    array = np.atleast_1d(np.asarray(value))
    return {int(m) for m in np.unique(signalling.marks(array, quiet_only=False))}


def on_launch(info: TaskInfo, regions: list[Region], after: bool) -> None:
    """Called before and after each launch in check mode, with the root regions it uses; see :mod:`races`."""
    watched = [w for w in map(races.watched_region, regions) if w is not None]
    for name, array in _captures(info):
        watched.append(races.watched_capture(info.name, name, array))
    if not watched:
        return
    _rt.settle()
    for one in watched:
        if not after:
            one.look()
        one.remember()


@functools.cache
def _captures(info: TaskInfo) -> tuple[tuple[str, Array], ...]:
    found = captured(info.fn) if isinstance(info.fn, FunctionType) else ()
    return tuple((name, v) for _, name, v in found if isinstance(v, np.ndarray) and not v.dtype.hasobject)


def _uninitialized(what: str) -> UninitializedError:
    return UninitializedError(f"{running_text()}{what}; declare ReadWrite")
