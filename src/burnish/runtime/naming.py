"""Names for what a program made without naming it, and the text of a call's arguments: read from the source, lazily.

Regions and partitions keep their *origin*: the name they were given, or the place of the expression that made them.
Only a message that needs the name parses the source. Everything here answers None where there is no source.
"""

from __future__ import annotations

import ast
import functools
import linecache
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

_PACKAGE = str(Path(__file__).parent.parent) + "/"


class Site(NamedTuple):
    """A place in running code: the code object and a bytecode offset in it."""

    code: CodeType
    lasti: int


class Origin(NamedTuple):
    """How a region or partition came about: the name it was given, and where."""

    name: str | None
    site: Site | None


def outside(frame: FrameType | None) -> Site | None:
    """Where ``frame``, or its nearest caller outside burnish, is."""
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return Site(frame.f_code, frame.f_lasti) if frame is not None else None


def here() -> Site | None:
    """The nearest caller outside burnish."""
    return outside(sys._getframe(1))


def caller_of(function: CodeType) -> Site | None:
    """The program's line whose call ran ``function``, or None if burnish itself called it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not function:
        frame = frame.f_back
    frame = frame.f_back if frame else None
    if frame is None or frame.f_code.co_filename.startswith(_PACKAGE):
        return None
    return Site(frame.f_code, frame.f_lasti)


def source_of(code: CodeType) -> str:
    """Text of the file that ``code`` comes from; empty if there is none."""
    return "".join(linecache.getlines(code.co_filename))


@functools.lru_cache(maxsize=64)
def _parse(filename: str, source: str) -> ast.Module | None:
    try:
        return ast.parse(source, filename)
    except SyntaxError:
        return None


def tree_of(code: CodeType) -> ast.Module | None:
    """Syntax tree of the file that ``code`` comes from."""
    source = source_of(code)
    return _parse(code.co_filename, source) if source else None


def _expression(site: Site) -> ast.expr | None:
    """The expression that was being evaluated at ``site``."""
    tree = tree_of(site.code)
    position = next(islice(site.code.co_positions(), site.lasti // 2, None), None)
    if tree is None or position is None or None in position:
        return None
    line, end_line, column, end_column = position
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr) or (node.end_lineno, node.end_col_offset) != (end_line, end_column):
            continue
        # Python gives a method call over several lines the line of the method's name: its end identifies it.
        if (node.lineno, node.col_offset) == (line, column) or isinstance(node, ast.Call):
            return node
    return None


def _bindings(tree: ast.Module) -> Iterator[tuple[ast.expr, ast.expr]]:
    """(target, value) of everything that gives a value a name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _pairs(target, node.value)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            yield node.target, node.value
        elif isinstance(node, ast.Dict):
            yield from ((key, value) for key, value in zip(node.keys, node.values, strict=True) if key is not None)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    sequence = (ast.Tuple, ast.List)
    if isinstance(target, sequence) and isinstance(value, sequence) and len(target.elts) == len(value.elts):
        for t, v in zip(target.elts, value.elts, strict=True):
            yield from _pairs(t, v)
    elif isinstance(value, ast.IfExp):
        yield from _pairs(target, value.body)
        yield from _pairs(target, value.orelse)
    else:
        yield target, value


def _label(target: ast.expr) -> str | None:
    if isinstance(target, ast.Name):
        return target.id
    if isinstance(target, ast.Attribute):
        return target.attr
    if isinstance(target, ast.Subscript):
        return _label(target.slice)
    if isinstance(target, ast.Constant) and isinstance(target.value, str):
        return target.value
    return None


def origin_here(name: str | None = None) -> Origin:
    """The origin of what the nearest caller outside burnish makes."""
    return Origin(name, here())


def name_of(origin: Origin) -> str | None:
    """The given name, or what the expression at the site is assigned to: ``pu`` in ``pu, pv = block(u, 4), block(v, 4)``."""
    if origin.name or origin.site is None:
        return origin.name
    made, tree = _expression(origin.site), tree_of(origin.site.code)
    if made is None or tree is None:
        return None
    return next((_label(target) for target, value in _bindings(tree) if value is made), None)


def text_of(site: Site | None) -> str | None:
    """Source of the expression at the site, if it is short."""
    made = _expression(site) if site else None
    return _text(made, site.code) if made is not None and site is not None else None


def _text(node: ast.expr, code: CodeType) -> str | None:
    segment = ast.get_source_segment(source_of(code), node)
    text = " ".join(segment.split()) if segment else ""
    return text if 0 < len(text) <= 60 else None


def argument_text(site: Site | None, position: int, keyword: str) -> str | None:
    """Source of one argument of the call at ``site``: the one named ``keyword``, else the positional one."""
    call = _expression(site) if site else None
    if site is None or not isinstance(call, ast.Call):
        return None
    for given in call.keywords:
        if given.arg == keyword:
            return _text(given.value, site.code)
    before = call.args[: position + 1]
    if len(before) <= position or any(isinstance(a, ast.Starred) for a in before):
        return None
    return _text(before[position], site.code)


def definition(code: CodeType) -> ast.FunctionDef | None:
    """The ``def`` statement of a function."""
    for node in ast.walk(tree_of(code) or ast.Module([], [])):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
            if first == code.co_firstlineno:
                return node
    return None


def parameter_line(code: CodeType, parameter: str) -> int:
    """Line on which a function declares a parameter; the function's own if the source is not there."""
    node = definition(code)
    if node is None:
        return code.co_firstlineno
    declared = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return next((a.lineno for a in declared if a.arg == parameter), node.lineno)
