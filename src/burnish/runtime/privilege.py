"""Privileges: what a task does with an argument. ``Read["x"] | ReadWrite["y"]`` joins several on one argument."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from burnish._native import runtime as _rt
from burnish.runtime.errors import RuntimeProblem
from burnish.runtime.region import READ, READ_WRITE, REDUCE, WRITE

NAMES = {READ: "Read", WRITE: "Write", READ_WRITE: "ReadWrite", REDUCE: "Reduce"}


@dataclass(frozen=True)
class Requirement:
    """One privilege on some fields (none: all fields), with the operator of a reduction."""

    kind: int
    fields: tuple[str, ...] = ()
    op: str | None = None

    def __str__(self) -> str:
        inside = ([f'"{self.op}"'] if self.op else []) + [f'"{f}"' for f in self.fields]
        return NAMES[self.kind] + (f"[{', '.join(inside)}]" if inside else "")


@dataclass(frozen=True)
class Privilege:
    """What an annotation holds: one or more requirements."""

    requirements: tuple[Requirement, ...]

    def __getitem__(self, fields: str | tuple[str, ...]) -> Privilege:
        names = (fields,) if isinstance(fields, str) else tuple(fields)
        if len(self.requirements) != 1 or self.requirements[0].fields or not all(isinstance(n, str) for n in names):
            raise RuntimeProblem(f"{self}[{fields!r}]: fields are names, given once")
        return Privilege((Requirement(self.requirements[0].kind, names),))

    def __or__(self, other: Privilege) -> Privilege:
        return Privilege(self.requirements + other.requirements)

    def __str__(self) -> str:
        return " | ".join(map(str, self.requirements))


class _Reduce:
    """``Reduce["+"]``, ``Reduce["min", "field"]``: accumulate with an operator into a private buffer."""

    def __getitem__(self, key: str | tuple[str, ...]) -> Privilege:
        op, *fields = (key,) if isinstance(key, str) else key
        if _rt.find_reduction(op) < 0:
            raise RuntimeProblem(
                f'Reduce["{op}"]: unknown operator; builtin are + * min max & |, others are made with reduction()'
            )
        return Privilege((Requirement(REDUCE, tuple(fields), op),))


if TYPE_CHECKING:  # annotations of task parameters: bodies receive arrays or objects with one array per field
    Read = Write = ReadWrite = Reduce = Any
else:
    Read = Privilege((Requirement(READ),))
    Write = Privilege((Requirement(WRITE),))
    ReadWrite = Privilege((Requirement(READ_WRITE),))
    Reduce = _Reduce()


def reduction(name: str, fn: Any, identity: Any, *, commutative: bool = True) -> None:
    """Define a reduction operator for ``Reduce[name]``.

    ``fn(old, new)`` combines two arrays elementwise and must be associative; ``identity`` fills fresh buffers.
    Buffers are folded in launch order.
    """
    if _rt.add_reduction(name, fn, identity, commutative) < 0:
        raise RuntimeProblem(f"reduction '{name}' exists already")


def operator_name(op: int) -> str:
    """Name of a reduction operator by its number."""
    name: str = _rt.reduction_name(op)
    return name
