"""Progress of long work: silent in libraries, bars in the CLI, a line of HTML in notebooks.

Library code reports with :func:`progress` or :func:`track` and need not know whether anybody looks. Who wants to see
it, the command line or a person in a notebook, wraps the call in :func:`visible`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sized
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Literal, Protocol, TypeVar

T = TypeVar("T")


class Meter(Protocol):
    """What a running piece of work reports to."""

    def advance(self, n: float = 1) -> None:
        """``n`` more units are done."""

    def describe(self, text: str) -> None:
        """Say what is being done now."""


class Display(Protocol):
    """Where meters are shown."""

    def meter(self, title: str, total: float | None) -> AbstractContextManager[Meter]:
        """A meter that is on show while the block runs; ``total`` units of work, or an unknown number."""


class _Silent:
    """A meter nobody looks at."""

    def advance(self, n: float = 1) -> None: ...
    def describe(self, text: str) -> None: ...


_display: ContextVar[Display | None] = ContextVar("burnish_progress_display", default=None)


@contextmanager
def progress(title: str, total: float | None = None) -> Iterator[Meter]:
    """A meter for ``title`` with ``total`` units of work (``None``: unknown); shown only inside :func:`visible`.

    Meters may be nested. Threads that the block starts report to nobody unless they are given the meter.
    """
    display = _display.get()
    if display is None:
        yield _Silent()
    else:
        with display.meter(title, total) as meter:
            yield meter


def track(items: Iterable[T], title: str, total: float | None = None) -> Iterator[T]:
    """Iterate over ``items`` with a meter; ``total`` defaults to their number where they know it."""
    if total is None and isinstance(items, Sized):
        total = len(items)
    with progress(title, total) as meter:
        for item in items:
            yield item
            meter.advance()


@contextmanager
def visible(where: Literal["auto", "terminal", "notebook", "nowhere"] = "auto") -> Iterator[None]:
    """Show the progress of the work inside.

    ``auto`` takes the notebook if the code runs in one, else standard error if that is a terminal, else nothing.
    """
    if where == "auto":
        where = "notebook" if _in_notebook() else "terminal" if sys.stderr.isatty() else "nowhere"
    if where == "nowhere":
        shown: AbstractContextManager[Display | None] = _nowhere()
    else:
        from burnish.core import _progress_displays

        shown = _progress_displays.terminal() if where == "terminal" else _progress_displays.notebook()
    with shown as display:
        token = _display.set(display)
        try:
            yield
        finally:
            _display.reset(token)


@contextmanager
def _nowhere() -> Iterator[None]:
    yield None


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"
