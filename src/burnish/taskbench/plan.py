"""All tasks of some graphs, numbered in the order in which a sequential program launches them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from burnish.taskbench import _native
from burnish.taskbench._native import Int64s
from burnish.taskbench.graph import Graph


@dataclass(frozen=True)
class Plan:
    """Tasks by id: step by step, within a step graph by graph, within a graph point by point.

    ``graph``, ``t``, ``p`` (tasks,) say which task an id is; its inputs are
    ``input_ids[input_starts[id]:input_starts[id + 1]]``. ``final[g]`` are the ids of the last step of graph ``g``.
    A system gets the plan before its clock starts: to know one's own program is no cost of the runtime.
    """

    graph: Int64s
    t: Int64s
    p: Int64s
    input_starts: Int64s
    input_ids: Int64s
    final: tuple[range, ...]

    def __len__(self) -> int:
        return len(self.t)

    @cached_property
    def tasks(self) -> list[tuple[int, int, int]]:
        """(graph, t, p) of every id."""
        return list(zip(self.graph.tolist(), self.t.tolist(), self.p.tolist(), strict=True))

    @cached_property
    def inputs(self) -> list[tuple[int, ...]]:
        """Ids of the inputs of every id, in the order of ``Graph.inputs``."""
        ids, starts = self.input_ids.tolist(), self.input_starts.tolist()
        return [tuple(ids[a:b]) for a, b in pairwise(starts)]

    @cached_property
    def successors(self) -> list[list[int]]:
        """Ids that use the output of every id."""
        out: list[list[int]] = [[] for _ in range(len(self))]
        for task, inputs in enumerate(self.inputs):
            for source in inputs:
                out[source].append(task)
        return out

    @cached_property
    def steps(self) -> list[range]:
        """Ids of every step, all graphs together."""
        cuts = [0, *(np.flatnonzero(np.diff(self.t)) + 1).tolist(), len(self)]
        return [range(a, b) for a, b in pairwise(cuts)]


def plan_of(graphs: Sequence[Graph]) -> Plan:
    """The plan of ``graphs``; the last few are remembered."""
    return _plan(tuple(graphs))


@lru_cache(maxsize=4)
def _plan(graphs: tuple[Graph, ...]) -> Plan:
    firsts = [graph.native.first_ids() for graph in graphs]  # where steps begin, counted within the graph
    steps = max(graph.steps for graph in graphs)
    widths = np.zeros((steps, len(graphs)), np.int64)
    for g, first in enumerate(firsts):
        widths[: len(first) - 1, g] = np.diff(first)
    bases = np.concatenate([[0], widths.ravel().cumsum()])[:-1].reshape(widths.shape)
    total = int(widths.sum())
    plan_graph, plan_t, plan_p, counts = (np.zeros(total, np.int64) for _ in range(4))
    rows = []
    for g, (graph, first) in enumerate(zip(graphs, firsts, strict=True)):
        t = np.repeat(np.arange(graph.steps), np.diff(first))
        within = np.arange(len(t)) - first[t]
        ids = bases[t, g] + within
        offsets = np.array([graph.offset(step) for step in range(graph.steps)])
        plan_graph[ids], plan_t[ids], plan_p[ids] = g, t, within + offsets[t]
        starts, inputs = _native.expand(graph.native)
        counts[ids] = np.diff(starts)
        rows.append((ids, starts, ids[inputs]))
    input_starts = np.concatenate([[0], counts.cumsum()])
    input_ids = np.zeros(int(input_starts[-1]), np.int64)
    for ids, starts, inputs in rows:
        shift = np.repeat(input_starts[ids] - starts[:-1], np.diff(starts))
        input_ids[np.arange(len(inputs)) + shift] = inputs
    final = tuple(
        range(int(bases[graph.steps - 1, g]), int(bases[graph.steps - 1, g]) + int(widths[graph.steps - 1, g]))
        for g, graph in enumerate(graphs)
    )
    return Plan(plan_graph, plan_t, plan_p, input_starts, input_ids, final)
