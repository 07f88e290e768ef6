"""Errors that users see: one line that says what is wrong, where, and what to do."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import ModuleType

EXIT_OK, EXIT_NO, EXIT_BAD_INPUT, EXIT_BUDGET, EXIT_ENVIRONMENT = 0, 1, 2, 3, 4


@dataclass(frozen=True)
class Place:
    """A position in a source file; ``column`` counts from 1, ``length`` is how much of ``text`` to underline."""

    file: str
    line: int
    column: int | None = None
    text: str | None = None
    length: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f":{self.column}" if self.column is not None else "")


class BurnishError(Exception):
    """Base of all errors raised for bad input; the CLI prints it as one line and exits with ``exit_code``."""

    exit_code = EXIT_BAD_INPUT

    def __init__(self, message: str, *, place: Place | None = None, hint: str | None = None) -> None:
        self.message, self.place, self.hint = message, place, hint
        super().__init__(message)

    def __str__(self) -> str:
        head = f"{self.place}: {self.message}" if self.place else self.message
        lines = [head + (f"; {self.hint}" if self.hint else "")]
        if self.place and self.place.text is not None:
            lines.append("    " + self.place.text)
            if self.place.column is not None:
                lines.append("    " + " " * (self.place.column - 1) + "^" * max(1, self.place.length))
        return "\n".join(lines)


class EnvironmentProblem(BurnishError):
    """The machine lacks something the request needs (exit code 4)."""

    exit_code = EXIT_ENVIRONMENT


class BudgetExhausted(BurnishError):
    """The budget ran out before there was any answer (exit code 3)."""

    exit_code = EXIT_BUDGET


class MissingExtraError(EnvironmentProblem, ImportError):
    """A system's optional packages are not installed."""


def require(module: str, *, needed_by: str, extra: str) -> ModuleType:
    """Import ``module`` or raise :class:`MissingExtraError` with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(f"{needed_by} needs {package}: pip install 'burnish[{extra}]'") from error
