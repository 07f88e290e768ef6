"""What a person sees when something went wrong: one line on standard error, and an exit code."""

from __future__ import annotations

import errno
import os
import traceback
from contextvars import ContextVar

import typer

from burnish.core import errors
from burnish.core.errors import EXIT_BAD_INPUT, EXIT_INTERNAL, EXIT_INTERRUPTED, BurnishError
from burnish.core.text import printable

_tracebacks: ContextVar[bool] = ContextVar("burnish_tracebacks", default=False)
# A file named by the user that is not there, or not as expected, is bad input even where a command forgot to say so.
_FILE_TROUBLE = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.EEXIST)


def show_tracebacks(value: bool = True) -> None:
    """Have errors of this command show their traceback (the callback of ``--debug``)."""
    if value:
        _tracebacks.set(True)


def explain(error: BaseException) -> int:
    """Print ``error`` for the user and return the exit code."""
    if isinstance(error, (KeyboardInterrupt, typer.Abort)):
        return _say("interrupted", None, EXIT_INTERRUPTED)
    if _tracebacks.get() or os.environ.get("BURNISH_DEBUG", "0") not in ("", "0"):
        traceback.print_exception(error)
    if isinstance(error, BurnishError):
        # The name of a system's own error says something; that of a base class says nothing.
        label = "error" if type(error).__module__ == errors.__name__ else type(error).__name__
        code = _say(label, str(error), error.exit_code)
        for note in getattr(error, "__notes__", ()):
            typer.echo(f"    {printable(note)}", err=True)
        return code
    if isinstance(error, typer.TyperException):
        return _say("error", _usage(error), EXIT_BAD_INPUT)
    if isinstance(error, OSError) and error.filename is not None and error.errno in _FILE_TROUBLE:
        return _say("error", f"{os.fsdecode(error.filename)}: {error.strerror}", EXIT_BAD_INPUT)
    what = ": ".join(part for part in (type(error).__name__, str(error).partition("\n")[0]) if part)
    return _say("internal error", f"{what}; run with --debug for the traceback", EXIT_INTERNAL)


def _say(label: str, message: str | None, code: int) -> int:
    head = typer.style(label, fg="red", bold=True)
    typer.echo(head if message is None else f"{head}: {printable(message)}", err=True)
    return code


def _usage(error: typer.TyperException) -> str:
    """A usage error as one line: the command, what is wrong, what was perhaps meant, where to read on."""
    message = error.format_message().strip().rstrip(".").replace(". Did you mean", "; did you mean")
    message = " ".join(message.split())
    near = getattr(error, "possibilities", None)
    if near:
        message = f"{message.partition(' (Possible')[0]}; did you mean {' or '.join(near)}?"
    message = message[:1].lower() + message[1:]
    context = getattr(error, "ctx", None)
    if context is None:
        return message
    verbs = getattr(context.command, "commands", {})
    if message == "missing command":
        message += f"; choose from {', '.join(verbs)}"
    end = " " if message.endswith("?") else "; "
    return f"{context.command_path}: {message}{end}see {context.command_path} --help"
