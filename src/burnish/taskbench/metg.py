"""METG of one system or of several in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from burnish.core.budget import Budget
from burnish.core.errors import EXIT_BUDGET, EXIT_ENVIRONMENT, BudgetExhausted, EnvironmentProblem
from burnish.core.progress import progress
from burnish.taskbench.errors import Unsupported
from burnish.taskbench.estimate import Mode, estimate
from burnish.taskbench.graph import Graph
from burnish.taskbench.kernel import Kernel
from burnish.taskbench.records import MetgResult, load_average
from burnish.taskbench.search import Search
from burnish.taskbench.session import Session, session, usable_cores
from burnish.taskbench.slots import Slots
from burnish.taskbench.systems import System

Systems = Sequence[str | System]
Graphs = Graph | Sequence[Graph]


@dataclass(frozen=True)
class Absent:
    """A system that could not be measured, and why; ``exit_code`` says whether it or the time was missing."""

    system: str
    reason: str
    exit_code: int = EXIT_ENVIRONMENT


@dataclass
class _Candidate:
    session: Session
    slots: Slots
    search: Search
    seconds: float = 0.0
    done: bool = False


def metg(
    system: str | System,
    graph: Graphs,
    kernel: str | Kernel = "compute_bound",
    threshold: float = 0.5,
    budget: Budget | None = None,
    workers: int | None = None,
    mode: Mode = "wall",
) -> MetgResult:
    """Minimum effective task granularity of ``system`` on ``graph`` (several graphs run at the same time).

    ``graph.steps`` is the least number of steps of a run; the default budget is 60 seconds.
    Raises EnvironmentProblem if the system is not here or cannot do it, BudgetExhausted if time was too short.
    """
    result = metg_of([system], graph, kernel, threshold, budget, workers, mode)[0]
    if isinstance(result, Absent):
        kind = BudgetExhausted if result.exit_code == EXIT_BUDGET else EnvironmentProblem
        raise kind(f"{result.system}: {result.reason}")
    return result


def metg_of(
    systems: Systems,
    graph: Graphs,
    kernel: str | Kernel = "compute_bound",
    threshold: float = 0.5,
    budget: Budget | None = None,
    workers: int | None = None,
    mode: Mode = "wall",
) -> list[MetgResult | Absent]:
    """METG of several systems, measured in turn slot by slot, so that a busy minute hits all of them.

    The budget is for all systems together. A system that is not here, or cannot do it, is :class:`Absent`.
    """
    graphs = (graph,) if isinstance(graph, Graph) else tuple(graph)
    kernel = Kernel(kernel) if isinstance(kernel, str) else kernel
    budget, load = budget or Budget(seconds=60), load_average()
    with ExitStack() as stack, progress("METG") as meter:
        entries: list[_Candidate | Absent] = []
        for system in systems:
            meter.describe(f"starting {name_of(system)}")
            entries.append(_enter(stack, system, graphs, kernel, threshold, budget.seed, workers, mode))
        _round_robin(entries, budget.start(), meter.describe)
        return [
            entry if isinstance(entry, Absent) else _result(entry, graphs, kernel, threshold, mode, load)
            for entry in entries
        ]


def name_of(system: str | System) -> str:
    return system if isinstance(system, str) else system.name


def _enter(
    stack: ExitStack, system: str | System, graphs: tuple[Graph, ...], kernel: Kernel, threshold: float, seed: int,
    workers: int | None, mode: Mode,
) -> _Candidate | Absent:  # fmt: skip
    try:
        opened = stack.enter_context(session(system, workers or usable_cores()))
        return _Candidate(opened, Slots(opened, graphs, kernel), Search(threshold, mode, seed=seed))
    except EnvironmentProblem as problem:
        return Absent(name_of(system), problem.message)


def _round_robin(entries: list[_Candidate | Absent], budget: Budget, describe: Callable[[str], None]) -> None:
    while not budget.spent():
        busy = False
        for at, entry in enumerate(entries):
            if isinstance(entry, Absent) or entry.done or budget.spent():
                continue
            iterations = entry.search.propose()
            if iterations is None:
                entry.done = True
                continue
            busy = True
            describe(f"{entry.session.system.name}: n={iterations}")
            start = time.perf_counter()
            try:
                entry.search.add(entry.slots.sample(iterations))
            except Unsupported as problem:
                entries[at] = Absent(entry.session.system.name, problem.message)
            entry.seconds += time.perf_counter() - start
        if not busy:
            return


def _result(
    entry: _Candidate, graphs: tuple[Graph, ...], kernel: Kernel, threshold: float, mode: Mode, load: float
) -> MetgResult | Absent:
    samples, seed = tuple(entry.search.samples), entry.search.seed
    if not samples:
        name = entry.session.system.name
        return Absent(name, "the budget ended before its first measurement", EXIT_BUDGET)
    return MetgResult(
        entry.session.system.name, entry.session.version, graphs, replace(kernel, ledger=None), threshold,
        entry.session.workers, mode, estimate(samples, threshold, "wall", seed=seed),
        estimate(samples, threshold, "cpu", seed=seed), samples, entry.session.start_seconds, entry.seconds,
        entry.slots.repeated, load,
    )  # fmt: skip
