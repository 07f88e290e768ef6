"""Messages for arguments that get into each other's way, and for colors that leave their partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from burnish._native import runtime as _rt
from burnish.runtime.errors import AliasError, InterferenceError, ProjectionError, handles, raise_error
from burnish.runtime.naming import argument_text, caller_of
from burnish.runtime.partition import Partition
from burnish.runtime.region import READ, READ_WRITE, REDUCE, WRITE, Region
from burnish.runtime.signature import TaskInfo

_VERBS = {READ: "read", WRITE: "write", READ_WRITE: "write", REDUCE: "reduce into"}


def color_text(color: Sequence[int]) -> str:
    """``3`` or ``(1, 2)``."""
    return str(color[0]) if len(color) == 1 else str(tuple(color))


def rect_text(lo: Sequence[int], hi: Sequence[int]) -> str:
    """``[10:20]``, ``[3, 5:9]``."""
    return (
        "[" + ", ".join(str(l) if h == l + 1 and len(lo) > 1 else f"{l}:{h}" for l, h in zip(lo, hi, strict=True)) + "]"
    )


def _through(info: TaskInfo, index: int, argument: Any) -> str:
    """An argument of an index launch as the program wrote it."""
    text = argument_text(caller_of(raise_error.__code__), index + 1, info.parameters[index].name)
    if text:
        return text
    if isinstance(argument, _rt.Projected):
        return f"{argument.partition.name}[{argument.projection!r}]"
    return str(argument.name)


@handles("alias")
def _alias(info: TaskInfo, i: int, a: Region, j: int, b: Region, points: int) -> AliasError:
    first, second = (info.parameters[i], a), (info.parameters[j], b)
    if str(first[0].privilege).startswith("Read") and not str(first[0].privilege).startswith("ReadWrite"):
        first, second = second, first
    shown = [f"'{p.name}' ({p.privilege}, {r.name})" for p, r in (first, second)]
    return AliasError(
        f"argument {shown[0]} and {shown[1]} overlap in {points} point{'s' if points != 1 else ''}; pass one ReadWrite argument"
    )


def _verb(a: int, b: int) -> str:
    first, second = _VERBS[a], _VERBS[b]
    if first != second:
        return f"{first} and {second}" if first == "read" or second == "reduce into" else f"{second} and {first}"
    return "both write" if first == "write" else "reduce with different operators into"


@handles("interference")
def _interference(
    info: TaskInfo, points: int, c1: tuple[int, ...], c2: tuple[int, ...], i: int, a: Region, j: int, b: Region,
    lo: tuple[int, ...], hi: tuple[int, ...], field: int, arg_a: Any, arg_b: Any, priv_a: int, priv_b: int,
) -> InterferenceError:  # fmt: skip
    root = a.root
    label = root.name if len(root.fields) == 1 else f"{root.name}.{root.fields[field].name}"
    if i != j:
        how = f"through {_through(info, i, arg_a)} and {_through(info, j, arg_b)}"
    elif a.partition is None:
        how = f"{_through(info, i, arg_a)} is passed to every color"
    else:
        how = f"through {_through(info, i, arg_a)}, which is {'disjoint' if a.partition.disjoint else 'aliased'}"
    return InterferenceError(
        f"{info.name}.map over {points} colors: colors {color_text(c1)} and {color_text(c2)} {_verb(priv_a, priv_b)} "
        f"'{label}'{rect_text(lo, hi)} ({how}); write through a disjoint partition or use Reduce"
    )


@handles("projection")
def _projection(
    info: TaskInfo, index: int, part: Partition, argument: Any, color: tuple[int, ...], target: tuple[int, ...]
) -> ProjectionError:
    return ProjectionError(
        f"{_through(info, index, argument)} at color {color_text(color)} gives {color_text(target)}, "
        f'outside {part.color_range}; use edge="skip"|"clip"|"wrap"'
    )


@handles("projection_rank")
def _projection_rank(info: TaskInfo, index: int, part: Partition, argument: Any) -> ProjectionError:
    rank = len(part.colors)
    return ProjectionError(
        f"{_through(info, index, argument)}: colors of {part.name} have {rank} coordinate{'s' if rank != 1 else ''}, "
        f"the domain of {info.name}.map or the projection gives another number"
    )
