"""Errors that users see: one line that says what is wrong, where, and what to do.

Every error that bad input can cause derives from :class:`BurnishError`; the command line prints it without a
traceback and exits with the error's ``exit_code``.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import ModuleType
from typing import Final

from burnish.core.text import blank, cells

EXIT_OK: Final = 0  # done
EXIT_NO: Final = 1  # the answer is no: refuted, a test failed
EXIT_BAD_INPUT: Final = 2
EXIT_BUDGET: Final = 3  # the budget ran out without an answer
EXIT_ENVIRONMENT: Final = 4
EXIT_INTERNAL: Final = 70  # a defect of burnish itself (EX_SOFTWARE of sysexits.h)
EXIT_INTERRUPTED: Final = 130  # Ctrl-C, as shells report it

_WINDOW = 100  # characters of a source line that are shown around the offending text


@dataclass(frozen=True)
class Place:
    """A position in a source file.

    ``line`` and ``column`` count from 1, columns in characters. ``text`` is the source line and ``length`` is how
    many of its characters, from ``column`` on, are to be underlined.
    """

    file: str
    line: int
    column: int | None = None
    text: str | None = None
    length: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f":{self.column}" if self.column is not None else "")

    def excerpt(self) -> str:
        """The source line and, below it, carets under the offending text; empty without ``text``.

        Carets line up in a terminal also after tabs, wide (East Asian) and combining characters. Of a very long line
        only the surroundings of the column are shown.
        """
        if self.text is None:
            return ""
        line = self.text.rstrip("\r\n")
        if self.column is None:
            return line if len(line) <= _WINDOW else line[:_WINDOW] + "…"
        start = max(0, self.column - 1)
        first = 0 if len(line) <= _WINDOW else max(0, start - _WINDOW // 2)
        last = min(len(line), first + _WINDOW)
        before = ("…" if first else "") + line[first:start]
        marked = line[start : min(start + max(1, self.length), last)]
        shown = before + line[start:last] + ("…" if last < len(line) else "")
        return f"{shown}\n{blank(before)}{'^' * max(1, cells(marked))}"


class BurnishError(Exception):
    """Base of all errors that bad input can cause.

    ``message`` says what is wrong, ``place`` where, ``hint`` what to do. ``str(error)`` is one line
    ``place: message; hint``, followed by the source line with the offending text underlined if ``place`` has it.
    """

    exit_code: int = EXIT_BAD_INPUT

    def __init__(self, message: str, *, place: Place | None = None, hint: str | None = None) -> None:
        self.message, self.place, self.hint = message, place, hint
        super().__init__(message)

    def __str__(self) -> str:
        head = f"{self.place}: {self.message}" if self.place else self.message
        if self.hint:
            head += f"; {self.hint}"
        excerpt = self.place.excerpt() if self.place else ""
        return "\n    ".join([head, *excerpt.splitlines()])


class EnvironmentProblem(BurnishError):
    """The machine lacks something that the request needs (exit code 4)."""

    exit_code = EXIT_ENVIRONMENT


class BudgetExhausted(BurnishError):
    """The budget ran out before there was any answer (exit code 3)."""

    exit_code = EXIT_BUDGET


class MissingExtraError(EnvironmentProblem, ImportError):
    """A system's optional packages are not installed."""


def require(module: str, *, needed_by: str, extra: str) -> ModuleType:
    """Import an optional package.

    ``module`` is what to import (``"polars"``), ``needed_by`` the system that asks (``"burnish.query"``) and
    ``extra`` the name under which the distribution lists the package (``"query"``).

    Raises :class:`MissingExtraError` with the command that installs the package, or :class:`EnvironmentProblem` if it
    is installed but does not load.
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name in (module, package):
            raise MissingExtraError(f"{needed_by} needs {package}: pip install 'burnish[{extra}]'") from error
        raise EnvironmentProblem(
            f"{needed_by} needs {package}, which is installed but does not load: {error}",
            hint=f"pip install --force-reinstall {package}, or see its installation page",
        ) from error
