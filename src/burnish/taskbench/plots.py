"""The pictures of taskbench; each function returns a matplotlib figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from burnish.report.plots import INK, LINES, PALETTE, figure, legend
from burnish.taskbench._native import Int64s
from burnish.taskbench.graph import Graph
from burnish.taskbench.records import Measurement, MetgResult

LARGEST_PICTURE = 2000  # tasks of a graph that is drawn


def _style(number: int) -> dict[str, object]:
    return {"color": PALETTE[number % len(PALETTE)], "linestyle": LINES[number % len(LINES)]}


def efficiency(results: Sequence[MetgResult]) -> Figure:
    """Efficiency over granularity (us, log) with the threshold and each METG with its interval."""
    made, [axes] = figure()
    for number, result in enumerate(results):
        style = _style(number)
        points = sorted(result.curve, key=lambda point: point.granularity)
        x, y = [p.granularity * 1e6 for p in points], [p.efficiency for p in points]
        axes.plot(x, y, marker="o", markersize=3, label=f"{result.system}, {result.label}", **style)  # type: ignore[arg-type]
        _mark(axes, result, str(style["color"]))
    if results:
        axes.axhline(results[0].threshold, color=INK[0], linewidth=0.8)
    axes.set(xscale="log", xlabel="task granularity (us)", ylabel="efficiency", ylim=(0, None))
    legend(axes)
    return made


def _mark(axes: Axes, result: MetgResult, color: str) -> None:
    low, high = result.interval
    if result.value is None:
        return
    axes.plot([result.value * 1e6], [result.threshold], marker="D", color=color, linestyle="none")
    if low is not None and high is not None:
        axes.plot([low * 1e6, high * 1e6], [result.threshold] * 2, color=color, linewidth=3, alpha=0.5, linestyle="-")


def metg_bars(results: Sequence[MetgResult]) -> Figure:
    """METG (us, log) of every system, grouped by pattern, with intervals."""
    patterns = list(dict.fromkeys(result.label for result in results))
    systems = list(dict.fromkeys(result.system for result in results))
    made, [axes] = figure()
    thickness = 0.8 / len(systems)
    for result in results:
        if result.value is None:
            continue
        number = systems.index(result.system)
        at = patterns.index(result.label) + (number - (len(systems) - 1) / 2) * thickness
        low, high = (value or result.value for value in result.interval)
        error = [[(result.value - low) * 1e6], [(high - result.value) * 1e6]]
        axes.bar(at, result.value * 1e6, thickness, color=PALETTE[number % len(PALETTE)], yerr=error, capsize=2)
    for number, system in enumerate(systems):
        axes.bar([0], [0], color=PALETTE[number % len(PALETTE)], label=system)
    axes.set(yscale="log", ylabel="METG (us)")
    axes.set_xticks(range(len(patterns)), patterns)
    legend(axes)
    return made


def metg_over_radix(results: Sequence[MetgResult]) -> Figure:
    """METG (us, log) over the radix of ``nearest``, one line per system."""
    made, [axes] = figure()
    for number, system in enumerate(dict.fromkeys(result.system for result in results)):
        own = [(r.graphs[0].radix, r.value * 1e6) for r in results if r.system == system and r.value is not None]
        if own:
            axes.plot(*zip(*own, strict=True), marker="o", markersize=3, label=system, **_style(number))  # type: ignore[arg-type]
    axes.set(yscale="log", xlabel="radix (dependences per task)", ylabel="METG (us)")
    legend(axes)
    return made


def over(results: Sequence[Measurement], x: str, y: str = "efficiency", series: str | None = None) -> Figure:
    """``y`` over ``x``, one line per system (and per value of ``series``)."""
    made, [axes] = figure()
    lines: dict[str, list[tuple[float, float]]] = {}
    for result in results:
        values = result.extra | {"efficiency": result.efficiency, "workers": result.workers}
        if values.get(y) is None:
            continue
        label = result.system + (f", {series} {values[series]}" if series else "")
        lines.setdefault(label, []).append((values[x], values[y]))
    for number, (label, points) in enumerate(lines.items()):
        axes.plot(*zip(*points, strict=True), marker="o", markersize=3, label=label, **_style(number))  # type: ignore[arg-type]
    axes.set(xlabel=x.replace("_", " "), ylabel=y.replace("_", " "), ylim=(0, None))
    if x == "output":
        axes.set(xscale="log", xlabel="output per task (bytes)")
    legend(axes)
    return made


def cost_bars(results: Sequence[Measurement], key: str, label: str) -> Figure:
    """One horizontal bar per system, log scale."""
    made, [axes] = figure(height=0.8 + 0.3 * len(results))
    rows = [(r.system, r.extra[key]) for r in results if r.extra.get(key)]
    rows.sort(key=lambda row: -row[1])
    axes.barh([name for name, _ in rows], [value for _, value in rows], color=PALETTE[0])
    for at, (_, value) in enumerate(rows):
        axes.text(value, at, f" {value:.3g}", va="center", fontsize=8)
    axes.set(xscale="log", xlabel=label)
    axes.margins(x=0.2)
    return made


def graph_picture(graph: Graph) -> Figure:
    """The task graph: points from left to right, steps from top to bottom, a line per dependence."""
    made, [axes] = figure(width=min(12.0, 1.5 + 0.45 * graph.width), height=min(16.0, 0.8 + 0.45 * graph.steps))
    for t in range(graph.steps):
        for p in graph.points(t):
            for q in graph.inputs(t, p):
                axes.plot([q, p], [t - 1, t], color=PALETTE[0], linewidth=0.7, linestyle="-", zorder=1)
        points = list(graph.points(t))
        axes.scatter(points, [t] * len(points), s=40, color=PALETTE[1], zorder=2)
    axes.set(xlabel="point", ylabel="step", title=f"{graph.label}, {graph.counts().dependencies} dependences")
    axes.invert_yaxis()
    axes.grid(False)
    axes.locator_params(integer=True)
    return made


def timelines(runs: Mapping[str, Int64s]) -> Figure:
    """One strip per system: a lane per thread, a bar per task, coloured by step; ``runs`` holds ledger records."""
    made, all_axes = figure(height=0.6 + 1.3 * len(runs), rows=len(runs))
    for axes, (system, records) in zip(all_axes, runs.items(), strict=True):
        start, end, step = records[:, 0], records[:, 1], records[:, 2]
        threads = records[:, 4] >> 32
        origin = start.min() if len(start) else 0
        for lane, thread in enumerate(np.unique(threads)):
            own = threads == thread
            bars = np.column_stack([(start[own] - origin) / 1e3, np.maximum(1, end[own] - start[own]) / 1e3])
            colors = [PALETTE[int(t) % len(PALETTE)] for t in step[own]]
            axes.broken_barh(bars.tolist(), (lane - 0.4, 0.8), facecolors=colors)
        axes.set_title(system, loc="left")
        axes.set_yticks([])
        axes.set_ylabel("threads")
    all_axes[-1].set_xlabel("time (us)")
    return made
