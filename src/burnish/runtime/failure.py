"""What a failed body raises later: its own exception with a note of where it was launched, or a PrivilegeError."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any

import numpy as np

from burnish.runtime.errors import PrivilegeError, line_of, where
from burnish.runtime.naming import tree_of
from burnish.runtime.signature import TaskInfo


def launched_at(code: CodeType | None, lasti: int) -> str:
    return f"launched at {where(code, line_of(code, lasti))}" if code else "launched by burnish"


def explain_failure(
    exception: BaseException, info: TaskInfo | None, color: Any, code: CodeType | None, lasti: int
) -> BaseException:
    """The exception to keep for a failed task; native code calls this in the thread that ran the body."""
    if isinstance(exception, ValueError) and "read-only" in str(exception) and info is not None:
        parameter = _written_parameter(exception.__traceback__, info)
        if parameter:
            error = wrote_read_only(info, parameter)
            error.__cause__ = exception
            exception = error
    name = info.name if info else "internal"
    exception.add_note(f"in task '{name}'{'' if color is None else f', color {color}'}, {launched_at(code, lasti)}")
    return exception


def wrote_read_only(info: TaskInfo, written: str, index: str = "") -> PrivilegeError:
    """``written``: a parameter, or ``parameter.field``; ``index``: the first changed point, as text."""
    name, _, field = written.partition(".")
    privilege = next(p.privilege for p in info.parameters if p.name == name)
    declared = "which is passed by value"
    if privilege is not None:
        needs = [r for r in privilege.requirements if not r.fields or not field or field in r.fields]
        declared = f"declared {needs[0]}"
    return PrivilegeError(
        f"task '{info.name}' wrote to '{written}'{index}, {declared} at {info.declared_at(name)}; declare ReadWrite, or copy first"
    )


def _written_parameter(traceback: TracebackType | None, info: TaskInfo) -> str | None:
    """The parameter (or field of one) that holds the read-only array which the failing statement stores into."""
    body: FrameType | None = None
    last = traceback
    while traceback is not None:
        if traceback.tb_frame.f_code is info.code:
            body = traceback.tb_frame
        if body is not None:
            last = traceback
        traceback = traceback.tb_next
    if body is None or last is None:
        return None
    owners = list(_arrays(info, body))
    for value in _stored_into(last):
        for name, array in owners:
            if np.may_share_memory(value, array):
                return name
    return owners[0][0] if len(owners) == 1 else None


def _arrays(info: TaskInfo, body: FrameType) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Read-only arrays among the body's arguments, by parameter or ``parameter.field``."""
    for parameter in info.parameters:
        value = body.f_locals.get(parameter.name)
        fields = {f"{parameter.name}.{n}": getattr(value, n) for n in getattr(type(value), "__slots__", ())}
        for name, array in (fields or {parameter.name: value}).items():
            if isinstance(array, np.ndarray) and not array.flags.writeable:
                yield name, array


def _statements(code: CodeType, line: int) -> list[ast.stmt]:
    """Simple statements on a line of the file that ``code`` comes from."""
    return [
        node
        for node in ast.walk(tree_of(code) or ast.Module([], []))
        if isinstance(node, ast.stmt)
        and not hasattr(node, "body")
        and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]


def _stored_into(traceback: TracebackType) -> Iterator[np.ndarray[Any, Any]]:
    """Read-only arrays that the failing statement may have stored into, most likely first."""
    frame = traceback.tb_frame
    for expression in (e for s in _statements(frame.f_code, traceback.tb_lineno) for e in _targets(s)):
        value = _value(expression, frame)
        if isinstance(value, np.ndarray) and not value.flags.writeable:
            yield value


def stored_parameter(info: TaskInfo, line: int) -> str | None:
    """The parameter, or field of one, that a line of the body stores into, as far as the source tells."""
    assert info.code is not None
    for expression in (e for s in _statements(info.code, line) for e in _targets(s)):
        path = expression
        while isinstance(path, ast.Subscript):
            path = path.value
        owner = path.value if isinstance(path, ast.Attribute) else path
        if isinstance(owner, ast.Name) and any(p.name == owner.id and p.privilege is not None for p in info.parameters):
            return f"{owner.id}.{path.attr}" if isinstance(path, ast.Attribute) else owner.id
    return None


def _targets(statement: ast.stmt) -> Iterator[ast.expr]:
    """Expressions that a statement may store into: targets, ``out=``, the object of a method, arguments of a call."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from target.elts if isinstance(target, ast.Tuple) else [target]
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
        yield statement.target
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
    yield from (k.value for c in calls for k in c.keywords if k.arg == "out")
    yield from (c.func.value for c in calls if isinstance(c.func, ast.Attribute))
    yield from (a for c in calls for a in c.args)


def _value(expression: ast.expr, frame: FrameType) -> Any:
    """Value of a name or of attributes and items of one, looked up without calling anything of the program."""
    if isinstance(expression, ast.Name):
        return frame.f_locals.get(expression.id)
    if isinstance(expression, (ast.Subscript, ast.Starred)):
        return _value(expression.value, frame)
    if isinstance(expression, ast.Attribute):
        owner = _value(expression.value, frame)
        return owner if isinstance(owner, np.ndarray) else getattr(owner, expression.attr, None)
    return None
