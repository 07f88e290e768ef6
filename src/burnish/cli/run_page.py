"""The page of ``burnish run``: what ran where and when, what was traced, what it cost."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from burnish.report import Report
from burnish.report.plots import PALETTE, figure, legend
from burnish.runtime.recording import ANALYSED, CAPTURED, REPLAYED, SEPARATOR, Recording

_MOST_SPANS = 1500
_MOST_NODES = 300


def page(title: str, run: Recording) -> Report:
    """All tables and pictures of a run."""
    report = Report(f"burnish run {title}")
    _summary(report, run)
    _tasks(report, run)
    _traces(report, run)
    if run.timeline:
        report.figure(draw_timeline(run), "Timeline", "One row per worker; 0 is the launching thread.")
        report.figure(draw_parallelism(run), "Parallelism", "Bodies running at the same time.")
    if run.edges:
        report.figure(
            draw_graph(run), "Task graph", f"The last {_MOST_NODES} tasks at most; edges point to successors."
        )
    return report


def _summary(report: Report, run: Recording) -> None:
    c = run.counters
    rows: list[tuple[str, Any]] = [
        ("launches", c.get("launches", 0)),
        ("tasks (points of launches, folds)", c.get("tasks", 0)),
        ("dependence edges found", c.get("edges", 0)),
        ("duplicate edges removed", c.get("edges_removed", 0)),
        ("launches replayed from a trace", f"{c.get('replayed', 0)} ({run.coverage:.1%})"),
        ("traces captured", c.get("captures", 0)),
        ("folds of reductions", c.get("folds", 0)),
    ]
    if c.get("launches") and c.get("launch_ns"):
        rows.append(("mean cost of a launch", f"{c['launch_ns'] / c['launches'] / 1000:.2f} us"))
    if run.timeline:
        path = run.critical_path()
        rows.append(("time in bodies", f"{run.work:.4f} s"))
        if path:
            rows.append(("critical path", f"{path:.4f} s (average parallelism {run.work / path:.1f})"))
    report.table(("what", "value"), rows, title="Run")


def _tasks(report: Report, run: Recording) -> None:
    rows = []
    for t in run.tasks:
        mean = f"{t.seconds / t.runs * 1e6:.1f}" if t.runs else "-"
        rows.append((t.name, t.launches, t.points, mean, f"{t.seconds:.4f}"))
    report.table(("task", "launches", "tasks", "mean us", "total s"), rows, title="Tasks")


def _traces(report: Report, run: Recording) -> None:
    known = sorted(run.traces, key=lambda t: -t.replays * t.length)
    if not known:
        return
    report.section("Traces")
    rows = [
        (t.name or t.id, t.length, t.replays, f"{t.reliability:.2f}", t.edges, f"{t.bytes / 1024:.1f}")
        for t in known[:12]
    ]
    report.table(("trace", "ops", "replays", "reliability", "edges", "KiB"), rows, title="What repeats")
    for t in known[:3]:
        report.table(("source line", "tasks"), _lines(t.lines, t.tasks), title=f"Trace {t.name or t.id}: one replay")
    if run.strip:
        report.figure(
            draw_strip(run), "Ops in program order", "One color per trace; grey: analysed, black: a blocking read."
        )
        report.figure(draw_coverage(run), "Coverage", "Share of the last 100 ops that were replayed.")
    ended = run.why_replays_ended()
    if ended:
        report.table(("why a stretch of replayed ops ended", "times"), ended.most_common(), title="Ends of replays")


def _lines(lines: tuple[str, ...], tasks: tuple[str, ...]) -> list[tuple[str, str]]:
    """Launch sites of a trace in order of first use, each with what it launches."""
    seen: dict[str, Counter[str]] = {}
    for line, task in zip(lines, tasks, strict=False):
        seen.setdefault(line, Counter())[task] += 1
    return [
        (line, ", ".join(f"{n} x {name}" if n > 1 else name for name, n in names.items()))
        for line, names in seen.items()
    ]


def draw_timeline(run: Recording) -> Any:
    fig, [ax] = figure(height=1.2 + 0.5 * (1 + max(s.worker for s in run.timeline)))
    names = [n for n, _ in Counter(s.task for s in run.timeline).most_common(len(PALETTE))]
    for name, color in zip(names, PALETTE, strict=False):
        spans = [s for s in run.timeline[-_MOST_SPANS:] if s.task == name]
        for worker in {s.worker for s in spans}:
            bars = [(s.start, max(s.end - s.start, 1e-7)) for s in spans if s.worker == worker]
            ax.broken_barh(
                bars,
                (worker - 0.4, 0.8),
                facecolors=color,
                label=name if worker == min(s.worker for s in spans) else None,
            )
    ax.set(xlabel="seconds", ylabel="worker", yticks=sorted({s.worker for s in run.timeline}))
    legend(ax)
    return fig


def draw_parallelism(run: Recording) -> Any:
    fig, [ax] = figure(height=2.4)
    times = np.array([s.start for s in run.timeline] + [s.end for s in run.timeline])
    change = np.concatenate([np.ones(len(run.timeline)), -np.ones(len(run.timeline))])
    order = np.lexsort((change, times))
    ax.step(times[order], np.cumsum(change[order]), where="post")
    ax.set(xlabel="seconds", ylabel="bodies running")
    return fig


def draw_strip(run: Recording) -> Any:
    fig, [ax] = figure(height=1.6)
    kinds = np.array([k for k, _ in run.strip])
    traces = np.array([t for _, t in run.strip])
    position = np.arange(len(kinds))
    for kind, color in ((ANALYSED, "#808080"), (SEPARATOR, "#000000")):
        ax.vlines(position[kinds == kind], 0, 1, colors=color, linewidth=0.8)
    ids = [i for i, _ in Counter(traces[(kinds == REPLAYED) | (kinds == CAPTURED)].tolist()).most_common()]
    for n, trace in enumerate(ids):
        color = PALETTE[n % len(PALETTE)]
        ax.vlines(position[(kinds == REPLAYED) & (traces == trace)], 0, 1, colors=color, linewidth=0.8)
        ax.vlines(position[(kinds == CAPTURED) & (traces == trace)], 0, 0.5, colors=color, linewidth=0.8)
    ax.set(xlabel="op", yticks=[], xlim=(0, max(1, len(kinds))))
    return fig


def draw_coverage(run: Recording) -> Any:
    fig, [ax] = figure(height=2.2)
    covered = np.array([k == REPLAYED for k, _ in run.strip], dtype=float)
    window = min(100, len(covered))
    ax.plot(np.arange(len(covered) - window + 1) + window, np.convolve(covered, np.ones(window) / window, "valid"))
    ax.set(xlabel="op", ylabel="coverage", ylim=(-0.02, 1.02))
    return fig


def draw_graph(run: Recording) -> Any:
    """Layers by depth; nodes coloured by task."""
    last = sorted(s.seq for s in run.timeline)[-_MOST_NODES:]
    keep = set(last)
    name = {s.seq: s.task for s in run.timeline if s.seq in keep}
    edges = [(a, b) for a, b in set(run.edges) if a in keep and b in keep]
    depth = dict.fromkeys(last, 0)
    for _ in range(len(last)):
        moved = False
        for a, b in edges:
            if depth[b] <= depth[a] and depth[a] < len(last):
                depth[b], moved = depth[a] + 1, True
        if not moved:
            break
    place: dict[int, tuple[float, float]] = {}
    filled: Counter[int] = Counter()
    for seq in last:
        place[seq] = (depth[seq], filled[depth[seq]])
        filled[depth[seq]] += 1
    fig, [ax] = figure(height=4.0)
    for a, b in edges:
        ax.plot(*zip(place[a], place[b], strict=True), color="#808080", linewidth=0.5, linestyle="-", zorder=1)
    for n, task in enumerate(dict.fromkeys(name.values())):
        xy = np.array([place[s] for s in last if name[s] == task])
        ax.scatter(xy[:, 0], xy[:, 1], s=26, color=PALETTE[n % len(PALETTE)], label=task, zorder=2)
    ax.set(xlabel="depth", yticks=[])
    ax.grid(False)
    legend(ax)
    return fig
