"""The task graph as networkx, the timeline as Chrome trace JSON."""

from __future__ import annotations

import json
from pathlib import Path

import networkx
import pytest

from burnish import runtime as rt
from burnish.runtime import Read, ReadWrite, Reduce, Write, each, task
from burnish.runtime.errors import RuntimeProblem


@task
def put(x: Write, k: float):
    x[:] = k


@task
def add(x: ReadWrite, y: Read):
    x += y.sum()


@task
def count(x: Reduce["+"]):
    x += 1


def test_graph_of_a_small_program() -> None:
    with rt.start(record_edges=True, executor="serial", trace=False):
        u, v = rt.region(8, "f8"), rt.region(8, "f8")
        pu, pv = rt.block(u, 2), rt.block(v, 2)
        put.map(2, pu[each], 1.0)  # 1, 2
        put.map(2, pv[each], 2.0)  # 3, 4
        add.map(2, pu[each], pv[each])  # 5, 6
        add(pu[0], v[0:8])  # 7
        graph = rt.graph()
        last = rt.graph(3)
    assert isinstance(graph, networkx.DiGraph)
    assert [graph.nodes[n]["task"] for n in sorted(graph)] == ["put"] * 4 + ["add"] * 3
    assert [graph.nodes[n]["color"] for n in sorted(graph)] == [0, 1, 0, 1, 0, 1, None]
    assert graph.nodes[7]["site"].startswith("tests") or "test_introspect.py:" in graph.nodes[7]["site"]
    closure = set(networkx.transitive_closure(graph).edges)
    assert closure == {(1, 5), (3, 5), (2, 6), (4, 6), (1, 7), (3, 7), (4, 7), (5, 7)}
    assert sorted(last) == [5, 6, 7] and set(last.edges) == {(5, 7)}


def test_folds_and_host_accesses_are_nodes() -> None:
    with rt.start(record_edges=True, trace=False):
        u = rt.region(8, "f8")
        count(u)
        count(u)
        assert u.numpy()[0] == 2
        graph = rt.graph()
    kinds = [graph.nodes[n]["kind"] for n in networkx.lexicographical_topological_sort(graph)]
    assert kinds == ["task", "task", "fold", "host"]


def test_graph_needs_recorded_edges() -> None:
    with rt.start():
        with pytest.raises(RuntimeProblem, match="start\\(record_edges=True\\)"):
            rt.graph()


@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_profile(tmp_path: Path, executor: str) -> None:
    with rt.start(profile=True, executor=executor, workers=2):
        u, v = rt.region(64, "f8"), rt.region(64, "f8")
        pu = rt.block(u, 4)
        put(v, 1.0)
        for _ in range(5):
            add.map(4, pu[each], v)
            count(u)
        u.numpy()
        rt.profile(tmp_path / "out" / "trace.json")
    trace = json.loads((tmp_path / "out" / "trace.json").read_text())
    spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    names = [e["name"] for e in spans]
    assert {n: names.count(n) for n in set(names)} == {"put": 1, "add": 20, "count": 5, "fold": 5}
    assert min(e["ts"] for e in spans) == 0 and all(e["dur"] >= 0 for e in spans)
    assert sorted(e["args"]["color"] for e in spans if e["name"] == "add") == sorted([0, 1, 2, 3] * 5)
    rows = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M"}
    assert {e["tid"] for e in spans} == set(rows) <= {0, 1}
    # one worker does one thing at a time
    for worker in rows:
        mine = sorted((e["ts"], e["ts"] + e["dur"]) for e in spans if e["tid"] == worker)
        assert all(end <= start + 1e-3 for (_, end), (start, _) in zip(mine, mine[1:], strict=False))


def test_profile_needs_kept_times(tmp_path: Path) -> None:
    with rt.start():
        with pytest.raises(RuntimeProblem, match="start\\(profile=True\\)"):
            rt.profile(tmp_path / "trace.json")
    assert not list(tmp_path.iterdir())
