"""What a task declares, and how the arguments of a launch are matched to it."""

from __future__ import annotations

import copy
import dataclasses
import enum
import functools
import hashlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from burnish._native import runtime as _rt
from burnish.runtime.access import Constant
from burnish.runtime.errors import TaskSignatureError, handles, where
from burnish.runtime.naming import parameter_line
from burnish.runtime.partition import Partition
from burnish.runtime.privilege import Privilege
from burnish.runtime.region import Region

VALUE_LIMIT = 64 * 1024  # bytes of an array argument passed by value


@dataclass(frozen=True)
class Parameter:
    """One parameter of a task: regions come with a privilege, everything else by value."""

    name: str
    privilege: Privilege | None = None
    annotation: Any = None
    dtype: np.dtype[Any] | None = None  # what a native body expects of its arrays
    ndim: int | None = None

    def __str__(self) -> str:
        if self.privilege is not None:
            return f"{self.name}: {self.privilege}"
        shown = getattr(self.annotation, "__name__", None)
        return f"{self.name}: {shown}" if shown else self.name


@dataclass(frozen=True, eq=False)
class TaskInfo:
    """A task as declared; what a mapper is asked about and what messages are made from.

    ``fn`` is the undecorated function, None for native bodies. ``kernel``: ``"python"``, ``"numba"`` or ``"native"``.
    """

    name: str
    fn: Callable[..., Any] | None
    parameters: tuple[Parameter, ...]
    returns: bool = False
    kernel: str = "python"
    priority: int = 0
    deterministic: bool = True
    idempotent: bool = False
    inner: bool = False
    code_hash: int = 0
    native_body: tuple[int, int, str, str] | None = None  # function pointer, user pointer, scalar types, result type
    local: bool = False  # runs in the driver also when bodies go to worker processes

    @property
    def code(self) -> CodeType | None:
        return getattr(self.fn, "__code__", None)

    @property
    def native_parameters(self) -> list[tuple[str, list[tuple[list[str], int, int]] | None]]:
        """The parameters as native code takes them."""
        return [(p.name, _requirements(p.privilege) if p.privilege is not None else None) for p in self.parameters]

    @property
    def regions(self) -> tuple[Parameter, ...]:
        """The parameters that receive regions."""
        return tuple(p for p in self.parameters if p.privilege is not None)

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        if self.fn is not None:
            return inspect.signature(self.fn)
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(p.name, kind) for p in self.parameters])

    @property
    def source(self) -> str:
        """Source of the body and, for Numba, of what burnish generated around it."""
        if self.fn is None:
            return f"# native code at {self.native_body[0]:#x}\n" if self.native_body else ""
        try:
            text = inspect.getsource(self.fn)
        except OSError:
            text = f"# no source of {self.fn.__qualname__}\n"
        if self.kernel == "numba":
            from burnish.runtime.numba_body import source_of

            text += "\n" + source_of(self)
        return text

    @property
    def declaration(self) -> str:
        """``name(x: Read, w: float)``."""
        return f"{self.name}({', '.join(map(str, self.parameters))})"

    def declared_at(self, parameter: str) -> str:
        """``file:line`` of a parameter's declaration."""
        return where(self.code, parameter_line(self.code, parameter)) if self.code else "its declaration"


def _requirements(privilege: Privilege) -> list[tuple[list[str], int, int]]:
    return [(list(r.fields), r.kind, _rt.find_reduction(r.op) if r.op else -1) for r in privilege.requirements]


def codes_of(code: CodeType) -> list[CodeType]:
    """A function's code and that of the functions defined in it."""
    return [code, *(c for const in code.co_consts if isinstance(const, CodeType) for c in codes_of(const))]


def code_hash(fn: FunctionType) -> int:
    """A 64-bit hash of what a function does: its bytecode, constants and names."""
    digest = hashlib.sha256()
    for code in codes_of(fn.__code__):
        digest.update(code.co_code)
        digest.update(repr([c for c in code.co_consts if not isinstance(c, CodeType)]).encode())
        digest.update(repr(code.co_names).encode())
    return int.from_bytes(digest.digest()[:8], "little")


def annotations_of(fn: FunctionType) -> dict[str, Any]:
    try:
        return inspect.get_annotations(fn, eval_str=True)
    except NameError as error:
        raise TaskSignatureError(f"task '{fn.__name__}' at {where(fn.__code__)}: annotation uses {error}") from None


def parameters_of(fn: FunctionType) -> tuple[Parameter, ...]:
    """Parameters of a function with their privileges; raises TaskSignatureError for ``*args`` and ``**kwargs``."""
    hints = annotations_of(fn)
    made = []
    for p in inspect.signature(fn).parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            stars = "*" if p.kind == p.VAR_POSITIONAL else "**"
            raise TaskSignatureError(
                f"task '{fn.__name__}' at {where(fn.__code__)}: {stars}{p.name} is not allowed; name every parameter"
            )
        hint = hints.get(p.name)
        made.append(Parameter(p.name, hint) if isinstance(hint, Privilege) else Parameter(p.name, annotation=hint))
    return tuple(made)


def internal_task(fn: Callable[..., Any], name: str, parameters: tuple[str, ...]) -> Any:
    """A task of burnish itself: plain values in, one value out."""
    return _rt.make_task(TaskInfo(name, fn, tuple(map(Parameter, parameters)), returns=True, local=True))


# ---- called from the launch path ----
def bind(info: TaskInfo, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Positional arguments of a call with keywords or defaults; TaskSignatureError if they do not fit."""
    try:
        bound = info.signature.bind(*args, **kwargs)
    except TypeError as error:
        got = [f"{len(args)} positional"] * bool(args) + [f"{name}=" for name in kwargs]
        raise TaskSignatureError(
            f"task '{info.declaration}': {error}; got {', '.join(got) or 'no arguments'}"
        ) from None
    bound.apply_defaults()
    return tuple(bound.arguments[p.name] for p in info.parameters)


def pass_by_value(info: TaskInfo, index: int, value: Any) -> Any:
    """What the body gets for a plain argument: immutable things as they are, small mutable ones as a copy."""
    parameter = info.parameters[index].name
    if isinstance(value, (Region, Partition, _rt.Projected)):
        kind = (
            "Region"
            if isinstance(value, Region)
            else "Partition"
            if isinstance(value, Partition)
            else "projected partition"
        )
        raise TaskSignatureError(
            f"parameter '{parameter}' of task '{info.name}' receives a {kind} but has no privilege; "
            "annotate it Read, Write, ReadWrite or Reduce[...]"
        )
    if isinstance(value, Constant):
        return value
    if isinstance(value, np.ndarray):
        if value.nbytes > VALUE_LIMIT:
            raise TaskSignatureError(
                f"parameter '{parameter}' of task '{info.name}' receives an array of {value.nbytes} bytes by value "
                f"(limit {VALUE_LIMIT}); put it into a region or wrap it with rt.constant(...)"
            )
        snapshot = value.copy()
        snapshot.flags.writeable = False
        return snapshot
    if isinstance(value, (np.generic, enum.Enum, np.dtype, type, FunctionType, frozenset, range)):
        return value
    if dataclasses.is_dataclass(value) and getattr(value, "__dataclass_params__").frozen:  # noqa: B009 - not in the stubs
        return value
    return copy.deepcopy(value)


# ---- messages ----
@handles("argument")
def _argument(info: TaskInfo, index: int, value: Any) -> TaskSignatureError:
    got = type(value).__name__
    if isinstance(value, Partition):
        got = "a Partition (subscript it with a color, or use .map)"
    elif isinstance(value, _rt.Projected):
        got = "a projected partition, which only .map takes"
    return TaskSignatureError(
        f"parameter '{info.parameters[index].name}' of task '{info.declaration}' needs a Region, got {got}"
    )


@handles("scalar")
def _scalar(info: TaskInfo, index: int, value: Any) -> TaskSignatureError:
    if isinstance(value, (Region, Partition, _rt.Projected)):
        pass_by_value(info, index, value)
    return TaskSignatureError(
        f"parameter '{info.parameters[index].name}' of task '{info.declaration}' needs a number, got {value!r}"
    )


@handles("reduce_type")
def _reduce_type(info: TaskInfo, index: int, field: str, region: Region) -> TaskSignatureError:
    dtype = next(f.dtype for f in region.fields if f.name == field)
    return TaskSignatureError(
        f"parameter '{info.parameters[index].name}' of task '{info.declaration}' reduces field '{field}' of "
        f"'{region.name}' ({dtype}) with an operator that this type does not have"
    )


@handles("field")
def _field(info: TaskInfo, index: int, field: str, region: Region) -> TaskSignatureError:
    have = ", ".join(f.name for f in region.fields)
    return TaskSignatureError(
        f"parameter '{info.parameters[index].name}' of task '{info.declaration}' names field '{field}', "
        f"but '{region.name}' has fields {have}"
    )


@handles("field_twice")
def _field_twice(info: TaskInfo, index: int) -> TaskSignatureError:
    parameter = info.parameters[index]
    return TaskSignatureError(
        f"parameter '{parameter.name}' of task '{info.name}' gives one field two privileges: {parameter.privilege}"
    )


@handles("native_type")
def _native_type(info: TaskInfo, index: int, region: Region) -> TaskSignatureError:
    parameter = info.parameters[index]
    needs = str(parameter.dtype) + (f" in {parameter.ndim} dimensions" if parameter.ndim is not None else "")
    have = ", ".join(f"{f.name}: {f.dtype}" for f in region.fields)
    return TaskSignatureError(
        f"parameter '{parameter.name}' of task '{info.declaration}' needs {needs}, got '{region.name}' "
        f"with {have} in {len(region.shape)} dimension{'s' if len(region.shape) != 1 else ''}"
    )


@handles("domain")
def _domain(value: Any) -> TaskSignatureError:
    return TaskSignatureError(
        f"domain {value!r} of an index launch must be a count, a tuple of 1 to 4 counts, or a partition"
    )


@handles("edge")
def _edge(value: Any) -> TaskSignatureError:
    return TaskSignatureError(f"edge={value!r} is none of 'error', 'skip', 'clip', 'wrap'")


@handles("when")
def _when(value: Any) -> TaskSignatureError:
    return TaskSignatureError(f"when= takes a Future, got {type(value).__name__}")


@handles("in_body")
def _in_body(info: TaskInfo, launched: TaskInfo | None) -> TaskSignatureError:
    what = f"launches '{launched.name}'" if launched else "waits for or changes regions of the program"
    return TaskSignatureError(
        f"task '{info.name}' {what} in its body; declare it @task(inner=True), or do it in the main program"
    )
