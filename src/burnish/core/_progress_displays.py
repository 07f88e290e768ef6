"""The two places where progress is shown; imported only once somebody looks."""

from __future__ import annotations

import html
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from burnish.core.progress import Display, Meter

_REDRAW_SECONDS = 0.1


@contextmanager
def terminal() -> Iterator[Display]:
    """Bars on standard error that vanish when the work is done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    # A title may hold anything, also what rich would take for markup.
    text = TextColumn("{task.description}", markup=False)
    console = Console(stderr=True, highlight=False)
    columns = (text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        yield _Bars(bars)


class _Bars:
    def __init__(self, bars: Any) -> None:
        self._bars = bars

    @contextmanager
    def meter(self, title: str, total: float | None) -> Iterator[Meter]:
        task = self._bars.add_task(title, total=total)
        try:
            yield _Bar(self._bars, task)
        finally:
            self._bars.remove_task(task)


class _Bar:
    def __init__(self, bars: Any, task: int) -> None:
        self._bars, self._task = bars, task

    def advance(self, n: float = 1) -> None:
        self._bars.advance(self._task, n)

    def describe(self, text: str) -> None:
        self._bars.update(self._task, description=text, refresh=True)


@contextmanager
def notebook() -> Iterator[Display]:
    """One line per meter in the output of the cell; needs no widgets."""
    yield _Cell()


class _Cell:
    @contextmanager
    def meter(self, title: str, total: float | None) -> Iterator[Meter]:
        line = _Line(title, total)
        try:
            yield line
        finally:
            line.draw()


class _Line:
    def __init__(self, title: str, total: float | None) -> None:
        from IPython.display import HTML, display

        self._html = HTML
        self._title, self._total, self._done = title, total, 0.0
        self._start = self._drawn = time.monotonic()
        self._handle = display(HTML(self._render()), display_id=True)

    def advance(self, n: float = 1) -> None:
        self._done += n
        if time.monotonic() - self._drawn >= _REDRAW_SECONDS:
            self.draw()

    def describe(self, text: str) -> None:
        self._title = text
        self.draw()

    def draw(self) -> None:
        self._drawn = time.monotonic()
        if self._handle is not None:
            self._handle.update(self._html(self._render()))

    def _render(self) -> str:
        known = self._total is not None
        bar = f"<progress value='{self._done:g}' max='{self._total:g}'></progress> " if known else ""
        count = f"{self._done:g}/{self._total:g}" if known else f"{self._done:g}"
        return f"{bar}{html.escape(self._title)} {count}, {time.monotonic() - self._start:.0f} s"
