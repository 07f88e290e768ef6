"""The report itself: a title and a list of blocks, independent of where it is shown."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from burnish.core.evidence import Evidence
from burnish.core.io import open_atomic, write_atomic
from burnish.report.values import plain

if TYPE_CHECKING:
    import matplotlib.figure
    import rich.console


@dataclass(frozen=True)
class Section:
    """A heading; level 1 is a section of the report, 2 a section within it, and so on."""

    title: str
    level: int = 1


@dataclass(frozen=True)
class Text:
    """A paragraph or more of CommonMark, tables included; images and raw HTML are shown as text."""

    markdown: str


@dataclass(frozen=True)
class Table:
    """Rows of values as they are (numbers stay numbers); each row has one value per column."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    title: str | None = None


@dataclass(frozen=True)
class Figure:
    """A matplotlib figure, kept as it is when the report is written."""

    figure: matplotlib.figure.Figure
    title: str | None = None
    caption: str | None = None

    def savefig(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write the picture alone; the suffix names the format (svg, png, pdf), ``options`` go to matplotlib.

        Raises :class:`~burnish.core.errors.BurnishError` if the file cannot be written or the format is unknown.
        """
        from burnish.report.plots import picture_format

        kind = options.pop("format", None) or picture_format(path)
        with open_atomic(path) as stream:
            self.figure.savefig(stream, format=kind, **{"dpi": 150, "bbox_inches": "tight", **options})
        return Path(path)


@dataclass(frozen=True)
class EvidenceList:
    """What the results are known by."""

    items: tuple[Evidence, ...]


Block = Section | Text | Table | Figure | EvidenceList


class Report:
    """Collects what a command found, block by block, and shows it in a terminal, as JSON or as an HTML page.

    >>> report = Report("Squares")
    >>> report.table(["n", "n squared"], [(n, n * n) for n in range(3)])
    >>> report.blocks[0].rows[2]
    (2, 4)
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self._blocks: list[Block] = []

    def __repr__(self) -> str:
        return f"Report({self.title!r}, {len(self._blocks)} blocks)"

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Everything added so far, in order."""
        return tuple(self._blocks)

    @property
    def figures(self) -> tuple[Figure, ...]:
        """The figures, each with ``.savefig(path)``."""
        return tuple(block for block in self._blocks if isinstance(block, Figure))

    def section(self, title: str, level: int = 1) -> None:
        """Start a section; ``level`` 2 and more nest."""
        if level < 1:
            raise ValueError(f"level {level} of section '{title}' must be 1 or more")
        self._blocks.append(Section(title, level))

    def text(self, markdown: str) -> None:
        """Add CommonMark text."""
        self._blocks.append(Text(markdown))

    def table(self, columns: Sequence[str], rows: Iterable[Iterable[Any]], title: str | None = None) -> None:
        """Add a table; give numbers as numbers, they are formatted where they are shown and exact in JSON.

        Raises :class:`ValueError` for a row that has not one value per column.
        """
        body = tuple(tuple(row) for row in rows)
        for number, row in enumerate(body):
            if len(row) != len(columns):
                raise ValueError(f"row {number} has {len(row)} values, the table {len(columns)} columns")
        self._blocks.append(Table(tuple(columns), body, title))

    def figure(self, figure: matplotlib.figure.Figure, title: str | None = None, caption: str | None = None) -> Figure:
        """Add a matplotlib figure (see :func:`burnish.report.plots.figure`) and return it with its ``.savefig``."""
        block = Figure(figure, title, caption)
        self._blocks.append(block)
        return block

    def evidence(self, *items: Evidence) -> None:
        """Add what the results are known by."""
        if items:
            self._blocks.append(EvidenceList(items))

    def include(self, other: Report, level: int = 1) -> None:
        """Add another report as a section of this one, its own sections one level below."""
        self.section(other.title, level)
        for block in other.blocks:
            self._blocks.append(replace(block, level=block.level + level) if isinstance(block, Section) else block)

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold; of figures only title and caption."""
        return {"title": self.title, "blocks": [_block_to_dict(block) for block in self._blocks]}

    def to_json(self) -> str:
        """:meth:`to_dict` as JSON text. A number that is not finite becomes the string "nan", "inf" or "-inf"."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def to_terminal(self, console: rich.console.Console | None = None, *, stderr: bool = False) -> None:
        """Print to ``console``, or else to standard output or standard error."""
        from burnish.report.terminal import default_console, print_report

        print_report(self, console or default_console(stderr=stderr))

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """Write one page that needs nothing else: no network, no scripts, pictures inline, light and dark.

        Raises :class:`~burnish.core.errors.BurnishError` if the file cannot be written.
        """
        from burnish.report.html import render

        return write_atomic(path, render(self))


def _block_to_dict(block: Block) -> dict[str, Any]:
    match block:
        case Section(title, level):
            return {"kind": "section", "title": title, "level": level}
        case Text(markdown):
            return {"kind": "text", "markdown": markdown}
        case Table(columns, rows, title):
            return {"kind": "table", "title": title, "columns": list(columns), "rows": plain(rows)}
        case Figure(_, title, caption):
            return {"kind": "figure", "title": title, "caption": caption}
        case EvidenceList(items):
            return {"kind": "evidence", "items": [plain(item.as_dict()) for item in items]}
