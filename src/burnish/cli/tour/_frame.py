"""The frame of the tour: finds the stops, runs them, makes the page."""

from __future__ import annotations

import importlib
import pkgutil
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Literal

from burnish.core.errors import BurnishError, MissingExtraError
from burnish.core.progress import track
from burnish.report import Report

Result = Literal["done", "skipped", "failed", "interrupted"]


@dataclass(frozen=True)
class TourSettings:
    """What a stop is given: parallel workers, seed, the seconds it may take, a folder for files of its own."""

    workers: int
    seed: int
    seconds: float
    folder: Path


@dataclass(frozen=True)
class Outcome:
    """What became of a stop; ``summary`` is its own line, or what went wrong."""

    title: str
    result: Result
    seconds: float
    summary: str
    report: Report


def find_stops(package: str, only: Sequence[str] | None = None) -> list[str]:
    """Names of the modules of ``package`` that are stops, those that do not start with an underscore.

    Raises :class:`BurnishError` if ``only`` names a stop that is not there.
    """
    path = importlib.import_module(package).__path__
    names = sorted(info.name for info in pkgutil.iter_modules(path) if not info.name.startswith("_"))
    for name in only or ():
        if name not in names:
            near = get_close_matches(name, names, 1)
            hint = f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(names)}"
            raise BurnishError(f"the tour has no stop '{name}'", hint=hint)
    return [f"{package}.{name}" for name in names if not only or name in only]


def run_stops(stops: Sequence[str], settings: TourSettings, tell: Callable[[Outcome], None]) -> list[Outcome]:
    """Run the stops in their order and ``tell`` of each as it ends. One that fails does not keep the others from
    running; an interruption ends the tour with what there is."""
    ready: list[tuple[int, str, ModuleType]] = []
    outcomes: list[Outcome] = []

    def note(outcome: Outcome) -> None:
        outcomes.append(outcome)
        tell(outcome)

    for name in stops:
        try:
            module = importlib.import_module(name)
            ready.append((module.ORDER, name, module))
        except Exception as error:
            note(_failure(name.rpartition(".")[2], error, 0.0, Report(name.rpartition(".")[2])))
    ready.sort(key=lambda entry: entry[:2])
    for _, _, module in track(ready, "burnish tour"):
        note(_run(module, settings))
        if outcomes[-1].result == "interrupted":
            break
    return outcomes


def _run(module: ModuleType, settings: TourSettings) -> Outcome:
    report = Report(module.TITLE)
    start = time.monotonic()
    try:
        summary = module.stop(report, settings)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        return _failure(module.TITLE, error, time.monotonic() - start, report)
    return Outcome(module.TITLE, "done", time.monotonic() - start, summary, report)


def _failure(title: str, error: BaseException, seconds: float, report: Report) -> Outcome:
    """An outcome for a stop that raised: skipped if only an extra is missing, interrupted by Ctrl-C, else failed."""
    if isinstance(error, KeyboardInterrupt):
        return Outcome(title, "interrupted", seconds, "interrupted", report)
    summary = str(error) if isinstance(error, BurnishError) else f"{type(error).__name__}: {error}"
    if isinstance(error, MissingExtraError):
        return Outcome(title, "skipped", seconds, summary, report)
    trace = "".join(traceback.format_exception(error))
    report.text("**This stop failed.**\n\n" + "".join(f"    {line}\n" for line in trace.splitlines()))
    return Outcome(title, "failed", seconds, summary.partition("\n")[0], report)


def make_page(outcomes: Sequence[Outcome]) -> Report:
    """One report: what became of each stop, then the stops' own reports as sections."""
    page = Report("burnish tour")
    page.text("Every system on a real input. *Evidence* says how a result is known, never above its strength.")
    page.table(
        ["system", "result", "time / s", "in short"],
        [(o.title, o.result, round(o.seconds, 2), o.summary) for o in outcomes],
    )
    for outcome in outcomes:
        if outcome.report.blocks:
            page.include(outcome.report)
    return page
