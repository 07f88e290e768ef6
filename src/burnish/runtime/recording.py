"""What a context recorded about itself: timeline, op stream, traces, edges."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from burnish._native import runtime as _rt
from burnish.runtime.errors import line_of, short_path

ANALYSED, CAPTURED, REPLAYED, SEPARATOR = range(4)  # kinds in the op strip


@dataclass(frozen=True)
class TaskRow:
    """One task's share of a run; times in seconds, ``launches`` counts calls, ``points`` tasks."""

    id: int
    name: str
    launches: int
    points: int
    runs: int
    seconds: float


@dataclass(frozen=True)
class Span:
    """One execution: start and end in seconds since the first one."""

    seq: int
    task: str
    point: int
    worker: int
    start: float
    end: float


@dataclass(frozen=True)
class TraceRow:
    """One trace: its ops' task names and source lines, how often it was replayed, the size of its templates."""

    id: int
    name: str
    length: int
    replays: int
    reliability: float
    bytes: int
    edges: int
    edges_recorded: int
    tasks: tuple[str, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Recording:
    """Everything recorded; timeline, strip and edges only with ``profile`` or ``record_edges``."""

    counters: dict[str, Any] = field(default_factory=dict)
    tasks: tuple[TaskRow, ...] = ()
    traces: tuple[TraceRow, ...] = ()
    timeline: tuple[Span, ...] = ()
    strip: tuple[tuple[int, int], ...] = ()  # per op: kind, trace id
    edges: tuple[tuple[int, int], ...] = ()  # sequence numbers of predecessor and successor

    @property
    def coverage(self) -> float:
        """Share of launches that were replayed."""
        launches = self.counters.get("launches", 0)
        return float(self.counters.get("replayed", 0) / launches) if launches else 0.0

    @property
    def work(self) -> float:
        """Seconds spent in bodies, all workers together."""
        return sum(span.end - span.start for span in self.timeline)

    def critical_path(self) -> float:
        """Seconds of the longest chain of dependent bodies (needs edges and timeline)."""
        duration = {span.seq: span.end - span.start for span in self.timeline}
        preds: dict[int, list[int]] = defaultdict(list)
        for a, b in self.edges:
            preds[b].append(a)
        # Program order is not quite topological: a fold comes after the launch that caused it was numbered.
        finish: dict[int, float] = {}
        for span in sorted(self.timeline, key=lambda s: s.start):
            before = max((finish.get(p, 0.0) for p in preds[span.seq]), default=0.0)
            finish[span.seq] = before + duration[span.seq]
        return max(finish.values(), default=0.0)

    def why_replays_ended(self) -> Counter[str]:
        """What came next where a stretch of replayed ops ended."""
        reasons: Counter[str] = Counter()
        for (kind, trace), (after, other) in zip(self.strip, self.strip[1:], strict=False):
            if kind != REPLAYED:
                continue
            if after == SEPARATOR:
                reasons["the program read a result (get, host, fence)"] += 1
            elif after == REPLAYED and other != trace:
                reasons["another trace followed"] += 1
            elif after in (ANALYSED, CAPTURED):
                reasons["an op came that the trace does not have"] += 1
        return reasons


def source_line(site: tuple[CodeType, int] | None) -> str:
    """``file:line`` of a launch site."""
    return f"{short_path(site[0].co_filename)}:{line_of(*site)}" if site else "?"


def record() -> Recording:
    """A snapshot of the running context."""
    events = _rt.timeline()
    origin = min((e[4] for e in events), default=0)
    names = {row[0]: row[1] for row in _rt.task_table()}
    return Recording(
        counters=_rt.counters(),
        tasks=tuple(
            TaskRow(number, name, launches, points, runs, nanoseconds / 1e9)
            for number, name, launches, points, runs, nanoseconds in _rt.task_table()
        ),
        traces=tuple(
            TraceRow(
                t["id"], t["name"], t["length"], t["replays"], t["reliability"], t["bytes"], t["edges"],
                t["edges_recorded"], tuple(t["tasks"]), tuple(source_line(s) for s in t["sites"]),
            )
            for t in _rt.traces()
        ),
        timeline=tuple(
            Span(seq, names.get(task, "fold"), point, worker, (start - origin) / 1e9, (end - origin) / 1e9)
            for seq, task, point, worker, start, end in events
        ),
        strip=tuple(_rt.trace_strip()),
        edges=tuple(_rt.edge_log()),
    )  # fmt: skip
