"""The root of the command line: finds the noun, runs it, and turns whatever happens into an exit code."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import copy_context
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

import burnish
from burnish.cli import options
from burnish.cli.failure import explain
from burnish.cli.nouns import NOUNS, card, load
from burnish.core.errors import EXIT_INTERRUPTED, EXIT_OK

_EPILOG = """burnish NOUN --help tells more. Results go to standard output, all else to standard error. Exit codes: 0 done,
1 the answer is no, 2 bad input, 3 the budget ran out without an answer, 4 this machine lacks something."""


class _Contents(TyperGroup):
    """A group that knows its nouns by their cards and loads one only to run it or to complete its options."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {noun.name: card(noun) for noun in NOUNS}

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            command = load(next(noun for noun in NOUNS if noun.name == name))
        return name, command, rest

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """A table of contents: nouns by group, then the options."""
        formatter.write_text(self.help or "")
        formatter.write_paragraph()
        formatter.write_usage("burnish", "NOUN [VERB] [OPTIONS]")
        for group in dict.fromkeys(noun.group for noun in NOUNS):
            with formatter.section(typer.style(group, bold=True)):
                formatter.write_dl([(noun.name, noun.help) for noun in NOUNS if noun.group == group])
        options = [record for parameter in self.get_params(ctx) if (record := parameter.get_help_record(ctx))]
        with formatter.section(typer.style("Options", bold=True)):
            formatter.write_dl([(names, text) for names, text in options])
        formatter.write_paragraph()
        formatter.write_text(self.epilog or "")


app = typer.Typer(cls=_Contents, add_completion=True, rich_markup_mode="rich", epilog=_EPILOG)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"burnish {burnish.__version__}")
        raise typer.Exit()


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    debug: options.Debug = False,
) -> None:
    """Write the obvious program. burnish finds the fast one, and shows that it is still the same program."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line ``args`` (by default the program's own) and return its exit code.

    Never raises for anything a user can cause: errors become one line on standard error, see
    :mod:`burnish.cli.failure`.
    """
    return copy_context().run(_main, args)


def _main(args: Sequence[str] | None) -> int:
    try:
        command = get_command(app)
        code = command.main(args=args, prog_name="burnish", standalone_mode=False)
    except SystemExit as end:  # completion, and a pipe that was closed
        code = end.code
    except BaseException as error:
        return explain(error)
    if code == EXIT_INTERRUPTED:  # typer turns Ctrl-C into this code
        return explain(KeyboardInterrupt())
    return code if isinstance(code, int) else EXIT_OK
