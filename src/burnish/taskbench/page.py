"""Results as reports: for the terminal, as JSON, as one page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from burnish.report import Report
from burnish.taskbench import plots
from burnish.taskbench.compare import DESCRIPTIONS, Comparison
from burnish.taskbench.metg import Absent
from burnish.taskbench.records import Measurement, MetgResult, seconds_text, show, warnings

#: Measure -> what its picture has on the horizontal axis, and what tells the lines of one system apart.
_OVER = {"hiding": ("output", "concurrent"), "imbalance": ("imbalance", None), "scaling": ("workers", None)}
_COSTS = {
    "tasks": ("cpu_us", "CPU time per task (us)"),
    "latency": ("latency_us", "latency (us)"),
    "memory": ("bytes_per_task", "memory per task (bytes)"),
    "startup": ("start_seconds", "start-up (s)"),
    "history": ("last_over_first", "last tenth over first tenth"),
}


def metg_report(results: Sequence[MetgResult | Absent]) -> Report:
    """METG table, efficiency curves, bars, evidence."""
    measured = [result for result in results if isinstance(result, MetgResult)]
    threshold = measured[0].threshold if measured else 0.5
    report = Report(f"METG({threshold:.0%}): how small tasks may be")
    report.table(*_metg_table(results))
    for remark in _remarks(measured):
        report.text(remark)
    if measured:
        _metg_figures(report, measured)
        report.evidence(*[item for result in measured for item in result.evidence])
    return report


def _metg_table(results: Sequence[MetgResult | Absent]) -> tuple[list[str], list[tuple[Any, ...]]]:
    columns = ["system", "version", "graph", "METG", "CPU time METG", "start-up", "slots", "load"]
    rows: list[tuple[Any, ...]] = []
    for result in results:
        if isinstance(result, Absent):
            rows.append((result.system, "", "", result.reason, "", "", "", ""))
        else:
            rows.append((
                result.system, result.version, result.label, show(result.estimate), show(result.cpu_estimate),
                seconds_text(result.start_seconds), len(result.samples), round(result.load, 1),
            ))  # fmt: skip
    return columns, rows


def _remarks(results: Sequence[MetgResult]) -> list[str]:
    out = [f"{result.system}, {result.label}: {fall}" for result in results for fall in result.asked.falls]
    if results:
        out += warnings(results[0].workers, max(result.load for result in results))
        first = results[0]
        out.append(
            f"{first.workers} workers, kernel {first.kernel.name} ({first.kernel.impl}), "
            + ("every input validated." if first.kernel.validate else "inputs not validated.")
        )
    return out


def _metg_figures(report: Report, results: Sequence[MetgResult]) -> None:
    labels = list(dict.fromkeys(result.label for result in results))
    for label in labels:
        own = [result for result in results if result.label == label]
        caption = "Diamonds: METG, with 95 % intervals; horizontal line: the threshold."
        report.figure(plots.efficiency(own), f"Efficiency over granularity, {label}", caption)
    if any(result.value for result in results):
        report.figure(plots.metg_bars(results), "METG per pattern", "Lower is better; log scale.")
    if len(labels) > 2 and all(result.graphs[0].type == "nearest" for result in results):
        report.figure(plots.metg_over_radix(results), "METG over radix", "Cost of more dependences per task.")


def comparison_report(comparison: Comparison) -> Report:
    """One table; a picture where there is something to see."""
    report = Report(f"taskbench: {DESCRIPTIONS[comparison.measure]}")
    rows = comparison.rows()
    columns = list(dict.fromkeys(key for row in rows for key in row if key != "reason"))
    columns += ["reason"] if any(row.get("reason") for row in rows) else []
    report.table(columns, [[row.get(column, "") for column in columns] for row in rows])
    metgs = [result for result in comparison.results if isinstance(result, MetgResult)]
    if metgs:
        _metg_figures(report, metgs)
    measured = [result for result in comparison.results if isinstance(result, Measurement)]
    if measured:
        for remark in warnings(measured[0].workers, max(result.load for result in measured)):
            report.text(remark)
        _picture(report, comparison.measure, measured)
    return report


def _picture(report: Report, measure: str, results: Sequence[Measurement]) -> None:
    if measure in _OVER:
        x, series = _OVER[measure]
        report.figure(plots.over(results, x, series=series), DESCRIPTIONS[measure])
    elif measure in _COSTS:
        key, label = _COSTS[measure]
        report.figure(plots.cost_bars(results, key, label), DESCRIPTIONS[measure], "Lower is better; log scale.")
