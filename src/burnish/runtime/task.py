"""Tasks: functions that declare what they read, write or reduce."""

from __future__ import annotations

import ast
import copy
import dataclasses
import enum
import hashlib
import inspect
import linecache
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, Literal, overload

import numpy as np

from burnish._native import runtime as _rt
from burnish.runtime.access import Constant
from burnish.runtime.errors import (
    AliasError,
    CaptureError,
    InterferenceError,
    PrivilegeError,
    TaskSignatureError,
    handles,
    line_of,
    short_path,
    where,
)
from burnish.runtime.partition import Partition
from burnish.runtime.privilege import NAMES, Privilege
from burnish.runtime.region import READ, Region

Task = _rt.Task
VALUE_LIMIT = 64 * 1024  # bytes of an array argument passed by value


def _annotations(fn: Callable[..., Any]) -> dict[str, Any]:
    try:
        return inspect.get_annotations(fn, eval_str=True)
    except NameError as error:
        raise TaskSignatureError(f"task '{fn.__name__}' at {where(fn.__code__)}: annotation uses {error}") from None


def _codes(code: CodeType) -> list[CodeType]:
    return [code, *(c for const in code.co_consts if isinstance(const, CodeType) for c in _codes(const))]


def _hidden(value: Any) -> str | None:
    """What makes a captured value invisible to the runtime; None if it is harmless."""
    if isinstance(value, Region):
        return f"Region {value.name}"
    if isinstance(value, np.ndarray) and value.flags.writeable and not isinstance(value, Constant):
        size = value.nbytes
        return f"ndarray, {size / 1e6:.0f} MB" if size >= 1e6 else f"ndarray, {size} bytes"
    return None


def _capture_error(fn: Callable[..., Any], kind: str, name: str, what: str) -> CaptureError:
    return CaptureError(
        f"task '{fn.__name__}' uses {kind} '{name}' ({what}), which the runtime cannot see; "
        f"pass it as an argument or wrap it with rt.constant({name})"
    )


def check_closure(fn: FunctionType) -> None:
    """Raise :class:`CaptureError` if ``fn`` closes over a mutable array or a region."""
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        try:
            what = _hidden(cell.cell_contents)
        except ValueError:  # not bound yet
            continue
        if what:
            raise _capture_error(fn, "variable", name, what)


def check_globals(fn: FunctionType) -> None:
    """Raise :class:`CaptureError` if ``fn`` uses a global that is a mutable array or a region."""
    for code in _codes(fn.__code__):
        for name in code.co_names:
            what = _hidden(fn.__globals__.get(name))
            if what:
                raise _capture_error(fn, "global", name, what)


def _code_hash(fn: Callable[..., Any]) -> int:
    digest = hashlib.sha256()
    for code in _codes(fn.__code__):
        digest.update(code.co_code)
        digest.update(repr([c for c in code.co_consts if not isinstance(c, CodeType)]).encode())
    return int.from_bytes(digest.digest()[:8], "little")


def _parameters(fn: Callable[..., Any]) -> tuple[list[tuple[str, Any]], bool]:
    hints = _annotations(fn)
    params: list[tuple[str, Any]] = []
    for p in inspect.signature(fn).parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise TaskSignatureError(f"task '{fn.__name__}' at {where(fn.__code__)}: *{p.name} is not allowed; name every parameter")
        hint = hints.get(p.name)
        if isinstance(hint, Privilege):
            declared = [(list(r.fields), r.kind, _rt.find_reduction(r.op) if r.op else -1) for r in hint.requirements]
            params.append((p.name, declared))
        else:
            params.append((p.name, None))
    returns = hints.get("return") not in (None, type(None))
    return params, returns


@overload
def task(fn: Callable[..., Any], /) -> Any: ...
@overload
def task(
    *,
    name: str | None = None,
    kernel: Literal["python", "numba", "native"] = "python",
    deterministic: bool = True,
    priority: int = 0,
    idempotent: bool = False,
    inner: bool = False,
) -> Callable[[Callable[..., Any]], Any]: ...
def task(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    kernel: Literal["python", "numba", "native"] = "python",
    deterministic: bool = True,
    priority: int = 0,
    idempotent: bool = False,
    inner: bool = False,
) -> Any:
    """Turn a function into a task; parameters annotated with a privilege receive regions.

    The body gets, for one field of a dense subregion, a NumPy view (not writeable under ``Read``); for several fields,
    an object with one attribute per field; for a sparse subregion, a :class:`SparseField`. Other parameters are passed
    by value. A call is a launch; it returns a :class:`Future` if the function is annotated to return something.

    kernel: ``"numba"`` compiles the body with Numba (no GIL). deterministic: the same inputs give the same outputs.
    priority: above 0, ready tasks run before others. idempotent: running it twice does no harm (no undo copy).
    inner: the body launches tasks itself; it runs at its place on the launching thread.
    """
    if fn is None:
        return lambda f: task_of(f, name, kernel, deterministic, priority, idempotent, inner)
    return task_of(fn, name, kernel, deterministic, priority, idempotent, inner)


def task_of(fn: Callable[..., Any], name: str | None, kernel: str, deterministic: bool, priority: int, idempotent: bool, inner: bool) -> Any:
    if not isinstance(fn, FunctionType):
        raise TaskSignatureError(f"@task needs a Python function, got {type(fn).__name__}")
    params, returns = _parameters(fn)
    check_closure(fn)
    native = None
    if kernel == "numba":
        from burnish.runtime.numba_body import compile_body

        native = compile_body(fn, params)
    elif kernel != "python":
        raise TaskSignatureError(f"task '{fn.__name__}': kernel is 'python' or 'numba', got '{kernel}' (native bodies: native_task)")
    made = _rt.make_task(fn, name or fn.__name__, params, returns, priority > 0, inner, idempotent, deterministic, _code_hash(fn), native)
    made.__doc__, made.__name__, made.__module__, made.__wrapped__ = fn.__doc__, fn.__name__, fn.__module__, fn
    return made


# ---- called from the launch path ----
def bind(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Positional arguments of a call with keywords or defaults."""
    signature = inspect.signature(fn)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TaskSignatureError(f"task '{fn.__name__}{_declared(fn)}': {error}") from None
    bound.apply_defaults()
    return tuple(bound.arguments[p] for p in signature.parameters)


def _declared(fn: Callable[..., Any]) -> str:
    parts = []
    hints = _annotations(fn)
    for p in inspect.signature(fn).parameters:
        hint = hints.get(p)
        parts.append(f"{p}: {hint}" if isinstance(hint, Privilege) else p)
    return f"({', '.join(parts)})"


def pass_by_value(fn: Callable[..., Any], index: int, value: Any) -> Any:
    """What the body gets for a plain argument: immutable things as they are, small mutable ones as a copy."""
    parameter = list(inspect.signature(fn).parameters)[index]
    if isinstance(value, (Region, Partition)) or Py_projected(value):
        kind = "Region" if isinstance(value, Region) else "projected partition" if Py_projected(value) else "Partition"
        raise TaskSignatureError(
            f"parameter '{parameter}' of task '{fn.__name__}' receives a {kind} but has no privilege; "
            "annotate it Read, Write, ReadWrite or Reduce[...]"
        )
    if isinstance(value, Constant):
        return value
    if isinstance(value, np.ndarray):
        if value.nbytes > VALUE_LIMIT:
            raise TaskSignatureError(
                f"parameter '{parameter}' of task '{fn.__name__}' receives an array of {value.nbytes} bytes by value "
                f"(limit {VALUE_LIMIT}); put it into a region or wrap it with rt.constant(...)"
            )
        snapshot = value.copy()
        snapshot.flags.writeable = False
        return snapshot
    if isinstance(value, (np.generic, enum.Enum, np.dtype, type, FunctionType, frozenset, range)):
        return value
    if dataclasses.is_dataclass(value) and value.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        return value
    return copy.deepcopy(value)


def Py_projected(value: Any) -> bool:
    return isinstance(value, _rt.Projected)


def run_inner(made: Any, args: tuple[Any, ...]) -> Any:
    """A task whose body launches tasks: composition on the launching thread."""
    return made.fn(*args)


# ---- messages ----
def _parameter(fn: Callable[..., Any], index: int) -> str:
    return list(inspect.signature(fn).parameters)[index]


def _privilege(fn: Callable[..., Any], index: int) -> str:
    hint = _annotations(fn).get(_parameter(fn, index))
    return str(hint) if isinstance(hint, Privilege) else "no privilege"


@handles("argument")
def _argument(fn: Callable[..., Any], index: int, value: Any) -> TaskSignatureError:
    got = "a Partition (subscript it with a color, or use .map)" if isinstance(value, Partition) else type(value).__name__
    if Py_projected(value):
        got = "a projected partition, which only .map takes"
    return TaskSignatureError(
        f"parameter '{_parameter(fn, index)}' of task '{fn.__name__}{_declared(fn)}' needs a Region, got {got}"
    )


@handles("field")
def _field(fn: Callable[..., Any], index: int, field: str, region: Region) -> TaskSignatureError:
    have = ", ".join(f.name for f in region.fields)
    return TaskSignatureError(
        f"parameter '{_parameter(fn, index)}' of task '{fn.__name__}{_declared(fn)}' names field '{field}', "
        f"but '{region.name}' has fields {have}"
    )


@handles("field_twice")
def _field_twice(fn: Callable[..., Any], index: int) -> TaskSignatureError:
    return TaskSignatureError(f"parameter '{_parameter(fn, index)}' of task '{fn.__name__}' gives one field two privileges: {_privilege(fn, index)}")


@handles("alias")
def _alias(fn: Callable[..., Any], i: int, a: Region, j: int, b: Region, points: int) -> AliasError:
    first = (_parameter(fn, i), _privilege(fn, i), a.name)
    second = (_parameter(fn, j), _privilege(fn, j), b.name)
    if first[1].startswith("Read") and not first[1].startswith("ReadWrite"):
        first, second = second, first
    return AliasError(
        f"argument '{first[0]}' ({first[1]}, {first[2]}) and '{second[0]}' ({second[1]}, {second[2]}) overlap in "
        f"{points} point{'s' if points != 1 else ''}; pass one ReadWrite argument"
    )


@handles("interference")
def _interference(
    fn: Callable[..., Any], points: int, c1: int, c2: int, i: int, a: Region, j: int, b: Region,
    lo: int, hi: int, field: int, arg_a: Any, arg_b: Any, priv_a: int, priv_b: int,
) -> InterferenceError:  # fmt: skip
    root = a.root
    label = root.name if len(root.fields) == 1 else f"{root.name}.{root.fields[field].name}"
    if priv_a != READ and priv_b != READ:
        verb = f"both {'reduce into' if NAMES[priv_a] == 'Reduce' else 'write'}" if priv_a == priv_b else "use"
    else:
        verb = "read and write"
    part = (b if priv_a == READ else a).partition
    through = ""
    if part is not None:
        through = f" (through {part.name}[...], which is {'disjoint' if part.disjoint else 'aliased'})"
    elif isinstance(arg_a, Region):
        through = " (the same region is passed to every color)"
    return InterferenceError(
        f"{fn.__name__}.map over {points} colors: colors {c1} and {c2} {verb} '{label}'[{lo}:{hi}]{through}; "
        "write through a disjoint partition or use Reduce"
    )


@handles("domain")
def _domain(value: Any) -> TaskSignatureError:
    return TaskSignatureError(f"domain {value!r} of an index launch must be a count, a tuple of 1 to 4 counts, or a partition")


@handles("edge")
def _edge(value: Any) -> TaskSignatureError:
    return TaskSignatureError(f"edge={value!r} is none of 'error', 'skip', 'clip', 'wrap'")


@handles("when")
def _when(value: Any) -> TaskSignatureError:
    return TaskSignatureError(f"when= takes a Future, got {type(value).__name__}")


def explain_failure(exception: BaseException, fn: Any, point: int, site_code: CodeType | None, lasti: int) -> BaseException:
    """What a failed body raises later: NumPy's read-only error becomes a PrivilegeError; others get a note."""
    name = getattr(fn, "__name__", "internal")
    site = f"launched at {short_path(site_code.co_filename)}:{line_of(site_code, lasti)}" if site_code else "launched by burnish"
    color = f", color {point}" if point >= 0 else ""
    if isinstance(exception, ValueError) and "read-only" in str(exception) and fn is not None:
        parameter = _written_parameter(exception, fn)
        if parameter:
            hint = _annotations(fn).get(parameter)
            declared = f"declared {hint}" if isinstance(hint, Privilege) else "which is passed by value"
            error = PrivilegeError(f"task '{name}' wrote to '{parameter}', {declared} at {where(fn.__code__)}; declare ReadWrite, or copy first")
            error.__cause__ = exception
            exception = error
    exception.add_note(f"in task '{name}'{color}, {site}")
    return exception


def _written_parameter(exception: BaseException, fn: Any) -> str | None:
    """The parameter that the failing statement of ``fn`` stores into."""
    tb, found = exception.__traceback__, None
    while tb is not None:
        if tb.tb_frame.f_code is fn.__code__:
            found = tb
        tb = tb.tb_next
    if found is None:
        return None
    source = "".join(linecache.getlines(fn.__code__.co_filename))
    parameters = list(inspect.signature(fn).parameters)
    for node in ast.walk(ast.parse(source)) if source else ():
        if isinstance(node, (ast.Assign, ast.AugAssign)) and node.lineno <= found.tb_lineno <= (node.end_lineno or 0):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for part in ast.walk(target):
                    if isinstance(part, ast.Name) and part.id in parameters:
                        return part.id
    return parameters[0] if len(parameters) == 1 else None
