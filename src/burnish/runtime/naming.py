"""Names for what a program made without naming it: the variable it was assigned to, looked up when a message needs it."""

from __future__ import annotations

import ast
import functools
import linecache
from types import CodeType

from burnish._native import runtime as _rt

Site = tuple[CodeType, int]


def here() -> Site | None:
    """The code object and bytecode offset of the nearest caller outside burnish."""
    site: Site | None = _rt.site_here()
    return site


@functools.lru_cache(maxsize=64)
def _tree(filename: str, source: str) -> ast.Module | None:
    try:
        return ast.parse(source, filename)
    except SyntaxError:
        return None


def _source(code: CodeType) -> str:
    return "".join(linecache.getlines(code.co_filename))


def _position(site: Site) -> tuple[int, int, int, int] | None:
    code, lasti = site
    for index, (line, end_line, column, end_column) in enumerate(code.co_positions()):
        if index * 2 == lasti:
            if line is None or end_line is None or column is None or end_column is None:
                return None
            return line, end_line, column, end_column
    return None


def _matches(node: ast.AST, position: tuple[int, int, int, int]) -> bool:
    place = (getattr(node, "lineno", -1), getattr(node, "end_lineno", -1), getattr(node, "col_offset", -1), getattr(node, "end_col_offset", -1))
    return place == position


def _find_call(site: Site) -> tuple[ast.Call, ast.Module, str] | None:
    position = _position(site)
    source = _source(site[0])
    tree = _tree(site[0].co_filename, source) if source else None
    if position is None or tree is None:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _matches(node, position):
            return node, tree, source
    return None


def assigned_name(site: Site | None) -> str | None:
    """The variable that the call at ``site`` is assigned to: ``pu`` in ``pu, pv = block(u, 4), block(v, 4)``."""
    found = _find_call(site) if site else None
    if not found:
        return None
    call, tree, _ = found
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            if isinstance(target, ast.Name) and any(n is call for n in ast.walk(node.value)):
                return target.id
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                for name, value in zip(target.elts, node.value.elts, strict=False):
                    if isinstance(name, ast.Name) and any(n is call for n in ast.walk(value)):
                        return name.id
    return None


def argument_text(site: Site | None, index: int) -> str | None:
    """Source text of positional argument ``index`` of the call at ``site``."""
    found = _find_call(site) if site else None
    if not found or index >= len(found[0].args):
        return None
    return ast.get_source_segment(found[2], found[0].args[index])
