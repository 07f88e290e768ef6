"""What a context did, for other tools: its task graph and its timeline."""

from __future__ import annotations

import json
import os
from typing import Any

from burnish._native import runtime as _rt
from burnish.core.errors import require
from burnish.core.io import write_atomic
from burnish.runtime.context import current_settings
from burnish.runtime.errors import RuntimeProblem
from burnish.runtime.recording import record, source_line

KINDS = ("task", "fold", "host", "native")  # as in native/runtime/record.hpp


def graph(last: int = 10_000) -> Any:
    """The dependence graph of the ``last`` executions as a ``networkx.DiGraph``; needs ``start(record_edges=True)``.

    Nodes are sequence numbers in program order, with the attributes ``kind`` (``"task"``, ``"fold"``: a reduction
    buffer added to its region, ``"host"``: an access by the program, ``"native"``), ``task`` (name), ``color``
    (row-major, None for a single launch) and ``site`` (``file:line`` of the launch). An edge means "must come before".

    Raises RuntimeProblem if edges are not recorded, MissingExtraError without networkx.
    """
    if not current_settings().record_edges:
        raise RuntimeProblem("graph() needs recorded edges: call start(record_edges=True) before the first launch")
    networkx = require("networkx", needed_by="burnish.runtime.graph", extra="graph")
    _rt.settle()
    made = networkx.DiGraph()
    for seq, kind, task, point, site in _rt.node_log(last):
        made.add_node(
            seq,
            kind=KINDS[kind],
            task=task or KINDS[kind],
            color=point if point >= 0 else None,
            site=source_line(site),
        )
    made.add_edges_from((a, b) for a, b in _rt.edge_log() if a in made and b in made)
    return made


def profile(path: str | os.PathLike[str]) -> None:
    """Write the timeline as Chrome trace JSON (Perfetto, chrome://tracing); needs ``start(profile=True)``.

    One row per worker; worker 0 is the launching thread. Times in microseconds since the first execution. Raises
    RuntimeProblem if times are not kept.
    """
    if not current_settings().profile:
        raise RuntimeProblem("profile() needs kept times: call start(profile=True) before the first launch")
    _rt.settle()
    spans = record().timeline
    workers = sorted({s.worker for s in spans})
    events: list[dict[str, Any]] = [
        {
            "ph": "M",
            "name": "thread_name",
            "pid": 1,
            "tid": w,
            "args": {"name": f"worker {w}" if w else "worker 0 (launches)"},
        }
        for w in workers
    ]
    for s in spans:
        events.append(
            {
                "ph": "X",
                "name": s.task,
                "cat": "fold" if s.task == "fold" else "task",
                "pid": 1,
                "tid": s.worker,
                "ts": s.start * 1e6,
                "dur": (s.end - s.start) * 1e6,
                "args": {"seq": s.seq} | ({"color": s.point} if s.point >= 0 else {}),
            }
        )
    write_atomic(path, json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}))
