"""Options that have the same name and meaning everywhere; use them as annotations of a command's parameters.

def command(seed: options.Seed = 0, html: options.Html = None, quiet: options.Quiet = False) -> int | None: ...
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from burnish.cli.failure import show_tracebacks
from burnish.core.budget import parse_duration

Out = Annotated[Path | None, typer.Option("--out", "-o", metavar="PATH", help="Write the result to this file.")]

Seconds = Annotated[
    float | None,
    typer.Option("--budget", metavar="TIME", parser=parse_duration, help="Stop after this time: 90, 90s, 10m or 1.5h."),
]
"""``--budget``; the command gets seconds."""

Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Seed of everything random; same seed, same result.")]

Workers = Annotated[
    int | None, typer.Option("--workers", metavar="N", min=1, help="Parallel workers; by default one per usable core.")
]

Engine = Annotated[Literal["local", "ray"], typer.Option("--engine", help="Where to run: this machine, or Ray.")]

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]

Html = Annotated[Path | None, typer.Option("--html", metavar="PATH", help="Also write the report as one HTML page.")]

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no remarks on standard error.")]

Check = Annotated[bool, typer.Option("--check", help="Derive the evidence again from what was saved.")]

Debug = Annotated[
    bool,
    typer.Option(
        "--debug",
        callback=show_tracebacks,
        expose_value=False,
        help="Show the traceback of an error (also: BURNISH_DEBUG=1).",
    ),
]
"""``--debug``; every command has it without asking."""
