"""Several systems side by side: one measure, one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from burnish.core.budget import Budget
from burnish.core.errors import EnvironmentProblem
from burnish.core.progress import progress
from burnish.taskbench.errors import GraphError
from burnish.taskbench.graph import Graph
from burnish.taskbench.kernel import Kernel
from burnish.taskbench.measures import MEASURES, efficiency, iterations_for, tasks
from burnish.taskbench.metg import Absent, Systems, metg_of, name_of
from burnish.taskbench.records import Measurement, MetgResult
from burnish.taskbench.session import session, usable_cores

RECORDS = 1 << 18
RADIXES = range(10)

#: Measure -> what it says, as ``burnish taskbench list`` shows it.
DESCRIPTIONS = {
    "tasks": "wall-clock, CPU and launch time per empty task",
    "latency": "one task that depends on the one before",
    "startup": "seconds to start the system",
    "memory": "bytes of memory per task",
    "history": "time of the last tenth of the tasks over the first",
    "hiding": "efficiency as outputs grow, with 1 to 4 graphs",
    "imbalance": "efficiency as tasks become unequal",
    "radix": "METG over the number of dependences",
    "scaling": "time per task and efficiency over workers",
    "metg": "minimum effective task granularity",
}


@dataclass(frozen=True)
class Comparison:
    """Results in the order of the systems (and of the graphs within one); absent systems with their reason."""

    measure: str
    results: tuple[Measurement | MetgResult | Absent, ...]

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per result: what varies, and the measured values."""
        return [_row(result) for result in self.results]


def compare(
    systems: Systems,
    graphs: Graph | Sequence[Graph],
    measure: str = "tasks",
    kernel: str | Kernel = "compute_bound",
    budget: Budget | None = None,
    workers: int | None = None,
) -> Comparison:
    """Measure each system on each graph (one after another; METG: all systems in turn) within ``budget`` in all.

    ``kernel`` matters to ``metg`` and ``radix`` only. A system that cannot do it appears with the reason.
    """
    if measure not in DESCRIPTIONS:
        raise GraphError(f"unknown measure '{measure}'", hint=f"write one of {', '.join(DESCRIPTIONS)}")
    each = [graphs] if isinstance(graphs, Graph) else list(graphs)
    budget = (budget or Budget(seconds=60)).start()
    if measure == "radix":
        each = [replace(graph, type="nearest", radix=radix, shape=None) for graph in each for radix in RADIXES]
    results: list[Measurement | MetgResult | Absent] = []
    if measure in ("metg", "radix"):
        for at, graph in enumerate(each):
            share = Budget(seconds=max(1.0, budget.left() / (len(each) - at)), seed=budget.seed)
            results += metg_of(systems, graph, kernel, budget=share, workers=workers)
        return Comparison(measure, tuple(results))
    share_seconds = max(0.5, budget.left() / max(1, len(systems) * len(each)))
    with progress(measure, len(systems)) as meter:
        for system in systems:
            meter.describe(f"{measure}: {name_of(system)}")
            results += _measure_system(system, each, measure, share_seconds, workers)
            meter.advance()
    return Comparison(measure, tuple(results))


def _measure_system(
    system: Any, graphs: Sequence[Graph], measure: str, seconds: float, workers: int | None
) -> list[Measurement | Absent]:
    out: list[Measurement | Absent] = []
    try:
        if measure == "scaling":
            return _scaling(system, graphs, seconds, workers)
        function, needs_records = MEASURES[measure]
        with session(system, workers, RECORDS if needs_records else 0) as opened:
            opened.run([replace(graphs[0], steps=20)], Kernel("empty"))  # warm-up
            for graph in graphs:
                out += function(opened, graph, seconds)
    except EnvironmentProblem as problem:
        out.append(Absent(name_of(system), problem.message))
    return out


def _scaling(system: Any, graphs: Sequence[Graph], seconds: float, workers: int | None) -> list[Measurement | Absent]:
    most = workers or usable_cores()
    counts = sorted({1, *(2**i for i in range(1, most.bit_length()) if 2**i < most), most})
    out: list[Measurement | Absent] = []
    for count in counts:
        with session(system, count) as opened:
            for graph in graphs:
                empty = tasks(opened, graph, seconds / len(counts) / 2)[0]
                kernel = Kernel("compute_bound", iterations_for(opened, graph, 1e-4))
                full = efficiency(opened, [graph], kernel, measure="scaling", **_costs(empty))
                out.append(full)
    return out


def _costs(measurement: Measurement) -> dict[str, Any]:
    return {key: value for key, value in measurement.extra.items() if key.endswith("_us")}


def _row(result: Measurement | MetgResult | Absent) -> dict[str, Any]:
    if isinstance(result, Absent):
        return {"system": result.system, "reason": result.reason}
    if isinstance(result, MetgResult):
        low, high = result.interval
        return {
            "system": result.system, "version": result.version, "graph": result.label, "metg": result.value,
            "low": low, "high": high, "cpu_metg": result.cpu_estimate.value, "reason": result.asked.reason,
        }  # fmt: skip
    values = {key: value for key, value in result.extra.items() if key != "measure"}
    graph = result.graphs[0]
    row: dict[str, Any] = {"system": result.system, "version": result.version, "impl": result.impl}
    row |= {"graph": f"{graph.label} width {graph.width}", "workers": result.workers, "tasks": result.tasks}
    if result.efficiency is not None:
        row |= {"efficiency": result.efficiency, "granularity": result.granularity}
    return row | values
