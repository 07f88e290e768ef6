"""``burnish tour``: every system on a real input, one page of pictures and evidence at the end.

A system adds itself with one small file in this folder, ``<system>.py``, that defines

* ``TITLE: str``: the heading of its section;
* ``ORDER: int``: where it stands in the tour (small comes first);
* ``def stop(report: Report, settings: TourSettings) -> str``: does the work, fills its own ``report`` (text, tables,
  figures, evidence; sections within are fine) and returns one line for the terminal that says what came out.

A stop imports its system inside ``stop``, uses ``settings.workers`` and ``settings.seed``, writes files only into
``settings.folder``, and takes at most ``settings.seconds``. It raises if anything is not as it should be: the tour then
reports it, runs the other stops, and ends with exit code 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from burnish.cli import options
from burnish.cli.output import remark, working
from burnish.cli.tour._frame import Outcome, TourSettings, find_stops, make_page, run_stops
from burnish.core.errors import EXIT_INTERRUPTED, EXIT_NO, EXIT_OK, EnvironmentProblem
from burnish.core.io import check_writable
from burnish.core.machine import usable_cores

__all__ = ["TourSettings", "command"]

_SECONDS = 90.0  # of the whole tour on two cores


def command(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="PATH", help="Where to write the page.")] = Path(
        "out/tour.html"
    ),
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="SYSTEM", help="Only this stop; repeatable.")
    ] = None,
    workers: options.Workers = None,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Run every system on a real input; write one page of pictures."""
    stops = find_stops(__name__, only)
    if not stops:
        raise EnvironmentProblem("this installation has no system to show", hint="the tour grows with each system")
    check_writable(out)
    settings = TourSettings(workers or usable_cores(), seed, _SECONDS / len(stops), out.parent / "tour")
    with working(quiet):
        outcomes = run_stops(stops, settings, tell=lambda outcome: remark(_line(outcome), quiet))
    page = make_page(outcomes)
    page.to_html(out)
    remark("The page:", quiet)
    typer.echo(page.to_json() if json else out.resolve())
    if any(outcome.result == "interrupted" for outcome in outcomes):
        return EXIT_INTERRUPTED
    return EXIT_NO if any(outcome.result == "failed" for outcome in outcomes) else EXIT_OK


def _line(outcome: Outcome) -> str:
    return f"{outcome.result:>7}  {outcome.title} ({outcome.seconds:.1f} s): {outcome.summary}"
