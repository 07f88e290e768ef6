"""Where things go: results to standard output, human text to standard error, reports to where they are asked for."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import typer

from burnish.core.progress import visible
from burnish.core.text import printable
from burnish.report import Report


def working(quiet: bool = False) -> AbstractContextManager[None]:
    """Show progress bars for the work inside, unless ``quiet``."""
    return nullcontext() if quiet else visible()


def remark(text: str, quiet: bool = False) -> None:
    """One line for a person, on standard error, unless ``quiet``."""
    if not quiet:
        typer.echo(printable(text), err=True)


def publish(report: Report, *, json: bool = False, html: Path | None = None, quiet: bool = False) -> None:
    """Print a report on standard output, as text or as JSON, and write the HTML page if one was asked for."""
    if html is not None:
        report.to_html(html)
        remark(f"wrote {html}", quiet)
    if json:
        typer.echo(report.to_json())
    else:
        report.to_terminal()
