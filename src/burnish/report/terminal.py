"""Reports as text in a terminal, with rich."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from rich import box
from rich.console import Console, RenderableType
from rich.markdown import Markdown
from rich.table import Table as Grid
from rich.text import Text as Line

from burnish.core.evidence import Strength
from burnish.core.text import printable
from burnish.report.markdown import parser
from burnish.report.report import Block, EvidenceList, Figure, Report, Section, Table, Text
from burnish.report.values import is_number, short

_STYLES: dict[Strength, str] = {
    "proved": "bold green",
    "checked": "green",
    "tested": "yellow",
    "measured": "cyan",
}
_WIDTH_OF_FILES = 160  # a pipe or file has no width; wide enough that tables seldom fold


def default_console(*, stderr: bool = False) -> Console:
    """A console on standard output or standard error."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, highlight=False, width=None if stream.isatty() else _WIDTH_OF_FILES)


def print_report(report: Report, console: Console) -> None:
    """Print all blocks; of a figure only its title and caption."""
    console.print(Line(printable(report.title), style="bold"))
    for block in report.blocks:
        for item in _render(block):
            console.print(item)


def _render(block: Block) -> Iterator[RenderableType]:
    match block:
        case Section(title, level):
            yield ""
            yield Line(printable(title), style="bold underline" if level == 1 else "bold")
        case Text(markdown):
            yield _markdown(printable(markdown))
        case Table():
            yield _grid(block)
        case Figure(_, title, caption):
            words = ": ".join(printable(part) for part in (title, caption) if part)
            yield Line(f"[figure] {words}", style="dim italic")
        case EvidenceList(items):
            for item in items:
                line = Line.assemble((f"{item.strength:>8}", _STYLES[item.strength]), "  ", printable(item.claim))
                line.append(f" ({printable(item.method)})", style="dim")
                yield line


def _markdown(text: str) -> Markdown:
    made = Markdown(text, hyperlinks=False)
    made.parsed = parser().parse(text)  # rich's own parser drops raw HTML and decorates images
    return made


def _grid(table: Table) -> RenderableType:
    title = None if table.title is None else Line(printable(table.title), style="italic")
    grid = Grid(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for number, name in enumerate(table.columns):
        grid.add_column(Line(printable(name)), justify=_side(row[number] for row in table.rows), overflow="fold")
    for row in table.rows:
        grid.add_row(*(Line(short(value)) for value in row))
    return grid


def _side(values: Iterator[Any]) -> Any:
    known = [value for value in values if value is not None]
    return "right" if known and all(map(is_number, known)) else "left"
