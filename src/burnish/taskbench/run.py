"""One validated execution of some graphs on some systems, and what is printed of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from burnish.core.errors import EnvironmentProblem
from burnish.core.evidence import Evidence
from burnish.report import Report
from burnish.taskbench import original, plots
from burnish.taskbench._native import Int64s
from burnish.taskbench.graph import Graph
from burnish.taskbench.kernel import Kernel
from burnish.taskbench.measures import record
from burnish.taskbench.metg import Absent
from burnish.taskbench.records import Measurement, label_of, seconds_text, warnings
from burnish.taskbench.session import session

TIMELINE_TASKS = 20_000


@dataclass(frozen=True)
class Request:
    """What ``burnish taskbench run`` was asked; ``pictures`` adds the graph and timelines to the report."""

    systems: Sequence[str]
    graphs: tuple[Graph, ...]
    kernel: Kernel
    workers: int | None = None
    nodes: int = 0
    verbose: int = 0
    format: str = "text"
    pictures: bool = False


def print_runs(request: Request) -> tuple[Report | None, str, bool]:
    """Run; the report, text that replaces it on standard output, and whether every system was absent.

    Raises the system's own error if only one was asked for and it is not here.
    """
    results: list[Measurement | Absent] = []
    timelines: dict[str, Int64s] = {}
    for name in request.systems:
        try:
            results.append(_run(name, request, timelines))
        except EnvironmentProblem as problem:
            if len(request.systems) == 1:
                raise
            results.append(Absent(name, problem.message))
    report = _report(request, results, timelines)
    measured = [result for result in results if isinstance(result, Measurement)]
    return report, _text(request, measured), not measured


def _run(name: str, request: Request, timelines: dict[str, Int64s]) -> Measurement:
    tasks = sum(graph.counts().tasks for graph in request.graphs)
    for graph in request.graphs:
        request.kernel.check(graph)
    with session(name, request.workers, tasks if request.pictures and tasks <= TIMELINE_TASKS else 0) as opened:
        run = opened.run(request.graphs, request.kernel)
        if opened.ledger.capacity:
            timelines[name] = opened.records()
        return record(opened, request.graphs, request.kernel, [run], measure="run", start_seconds=opened.start_seconds)


def _text(request: Request, results: Sequence[Measurement]) -> str:
    if request.format == "json":
        return "".join(result.json_line() + "\n" for result in results)
    if request.format != "original":
        return ""
    kernels = [request.kernel] * len(request.graphs)
    return "".join(
        original.configuration(request.graphs, kernels, request.verbose)
        + original.report(request.graphs, kernels, result.elapsed[0], request.nodes)
        for result in results
    )


def _report(request: Request, results: Sequence[Measurement | Absent], timelines: dict[str, Int64s]) -> Report:
    counts = [graph.counts(request.nodes) for graph in request.graphs]
    tasks, dependences = sum(c.tasks for c in counts), sum(c.dependencies for c in counts)
    report = Report(f"taskbench: {label_of(request.graphs)}")
    text = f"{tasks} tasks, {dependences} dependencies, kernel {request.kernel.name} ({request.kernel.impl})"
    if request.nodes:
        text += f"; on {request.nodes} nodes {sum(c.nonlocal_ for c in counts)} of them between nodes"
    report.text(text + ".")
    rows = []
    for result in results:
        if isinstance(result, Absent):
            rows.append((result.system, result.reason, "", "", "", ""))
            continue
        each, cpu = result.elapsed[0] / result.tasks, result.cpu[0] / result.tasks
        checked = "yes" if result.validated else "no"
        rows.append(
            (
                result.system,
                result.version,
                seconds_text(result.elapsed[0]),
                seconds_text(each),
                seconds_text(cpu),
                checked,
            )
        )
    report.table(["system", "version", "elapsed", "per task", "CPU per task", "validated"], rows)
    measured = [result for result in results if isinstance(result, Measurement)]
    for remark in warnings(measured[0].workers, measured[0].load) if measured else []:
        report.text(remark)
    if request.pictures:
        for graph in request.graphs:
            if graph.counts().tasks <= plots.LARGEST_PICTURE // 4:
                report.figure(plots.graph_picture(graph), f"The graph {graph.label}")
        if timelines:
            report.figure(
                plots.timelines(timelines), "Timelines", "A bar per task, coloured by step; a lane per thread."
            )
    if request.kernel.validate:
        claim = "every task ran once, on the outputs that the graph asks for"
        how = f"{dependences} inputs compared word by word, tasks counted by an atomic counter"
        report.evidence(*[Evidence(f"{r.system}: {claim}", "tested", how) for r in measured])
    return report
