"""The table of contents of the command line, and how a noun is loaded once it is used.

A noun is a module that defines one of

* ``app``: a :class:`typer.Typer` with one command per verb, for ``burnish noun verb``;
* ``command``: a function, for a noun without verbs. ``CONTEXT_SETTINGS``, a dictionary, may stand beside it (``run``
  uses it to pass options after the program's name on to the program).

A command may return its exit code; ``None`` is 0. Names of options come from :mod:`burnish.cli.options`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand
from typer.main import get_command, get_group

from burnish.cli import options


class Noun(NamedTuple):
    """One line of ``burnish --help``."""

    group: str
    name: str
    module: str
    help: str


PROGRAMS = "Programs"
MEASURE = "Measure"
INSTALLATION = "This installation"
MEASUREMENT = "Measurement"

NOUNS = (
    Noun(PROGRAMS, "run", "burnish.cli.run", "Run a program in parallel; show its task graph, timeline and traces."),
    Noun(MEASURE, "taskbench", "burnish.cli.taskbench", "What a task runtime costs: METG, comparisons with peers."),
    Noun(MEASURE, "trace", "burnish.cli.trace", "Recognize repeated sequences in token files."),
    Noun(INSTALLATION, "tour", "burnish.cli.tour", "Run every system on a real input; write one page of pictures."),
    Noun(INSTALLATION, "doctor", "burnish.cli.doctor", "Show what is installed, what is missing, what was found."),
)


def card(noun: Noun) -> Any:
    """What help and completion need to know of a noun; costs no import."""
    return TyperCommand(noun.name, help=noun.help, rich_help_panel=noun.group)


def load(noun: Noun) -> Any:
    """Import the noun's module and make its command, with ``--debug`` added to every verb."""
    module = import_module(noun.module)
    if hasattr(module, "app"):
        command: Any = get_group(module.app)
    else:
        command = _single(module.command, getattr(module, "CONTEXT_SETTINGS", None))
    command.name, command.help = noun.name, noun.help
    for verb in (command, *getattr(command, "commands", {}).values()):
        verb.params.append(_debug_option())
    return command


def _single(function: Any, context_settings: dict[str, Any] | None = None) -> Any:
    app = typer.Typer(add_completion=False)
    app.command(context_settings=context_settings)(function)
    return get_command(app)


@cache
def _debug_option() -> Any:
    def nothing(debug: options.Debug = False) -> None: ...

    return _single(nothing).params[0]
