"""Progress of long work: silent in libraries, a bar in the CLI, a widget in notebooks (rich decides)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

T = TypeVar("T")


class Meter(Protocol):
    """What a running piece of work reports to."""

    def advance(self, n: float = 1) -> None: ...
    def describe(self, text: str) -> None: ...


class _Silent:
    def advance(self, n: float = 1) -> None: ...
    def describe(self, text: str) -> None: ...


_show: ContextVar[Callable[[str, float | None], Iterator[Meter]] | None] = ContextVar("burnish_progress", default=None)


@contextmanager
def progress(title: str, total: float | None = None) -> Iterator[Meter]:
    """A meter for ``title``; shown only inside :func:`visible`."""
    show = _show.get()
    if show is None:
        yield _Silent()
    else:
        yield from show(title, total)


def track(items: Iterable[T], title: str, total: float | None = None) -> Iterator[T]:
    """Iterate with a meter."""
    with progress(title, total) as meter:
        for item in items:
            yield item
            meter.advance()


def _rich_meter(title: str, total: float | None) -> Iterator[Meter]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(title, total=total)

        class _Bar:
            def advance(self, n: float = 1) -> None:
                bars.advance(task, n)

            def describe(self, text: str) -> None:
                bars.update(task, description=text)

        yield _Bar()


@contextmanager
def visible() -> Iterator[None]:
    """Show progress bars on stderr for the work inside (the CLI's default without ``--quiet``)."""
    token = _show.set(_rich_meter)
    try:
        yield
    finally:
        _show.reset(token)
