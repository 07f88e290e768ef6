"""Graphs against published hashes, an independent construction, and their own mirror."""

from __future__ import annotations

import hashlib
import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burnish.taskbench import Graph, GraphError, _native
from burnish.taskbench.graph import PERIODIC, TYPES, parse_type
from burnish.taskbench.plan import plan_of


def _from_arguments(text: str) -> Graph:
    values = dict(re.findall(r"-(\w+) (\S+)", text))
    return Graph(
        int(values["steps"]), int(values["width"]), values["type"], int(values.get("radix", 3)),
        int(values.get("period", 3)), float(values.get("fraction", 0.25)),
    )  # fmt: skip


def test_published_edges(shared_data: Callable[[str], Path]) -> None:
    cases = json.loads((shared_data("taskbench") / "graphs.json").read_text())
    assert len(cases) == 176
    for case in cases:
        graph = _from_arguments(case["args"])
        counts = graph.counts()
        assert (counts.tasks, counts.dependencies) == (case["tasks"], case["dependencies"]), case["args"]
        assert hashlib.sha256(graph.listing().encode()).hexdigest() == case["edges_sha256"], case["args"]


def test_published_listings(shared_data: Callable[[str], Path]) -> None:
    for name, listing in json.loads((shared_data("taskbench") / "small.json").read_text()).items():
        if name in PERIODIC:
            graph = Graph(10, 7, name, 2, 3, 0.25)
        else:
            graph = Graph(9, 4, name)
        assert graph.listing() == listing, name


def _siphash24(data: bytes, key: bytes) -> int:
    """The reference algorithm, word by word, in plain integers."""
    mask = (1 << 64) - 1
    k0, k1 = (int.from_bytes(key[i : i + 8], "little") for i in (0, 8))
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def left(x: int, n: int) -> int:
        return (x << n | x >> (64 - n)) & mask

    def half(a: int, b: int, n: int, m: int) -> None:
        v[a] = (v[a] + v[b]) & mask
        v[b] = left(v[b], n) ^ v[a]
        v[a] = left(v[a], m)

    def rounds(n: int) -> None:
        for _ in range(n):
            half(0, 1, 13, 32)
            half(2, 3, 16, 0)
            half(0, 3, 21, 0)
            half(2, 1, 17, 32)

    padded = data + bytes(-(len(data) + 1) % 8) + bytes([len(data) & 0xFF])
    for i in range(0, len(padded), 8):
        word = int.from_bytes(padded[i : i + 8], "little")
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


KEY = bytes(range(1, 16)) + b"\0"


def test_siphash_vector_of_its_authors() -> None:
    key = int.from_bytes(bytes(range(8)), "little"), int.from_bytes(bytes(range(8, 16)), "little")
    assert _native.siphash24(bytes(range(15)), *key) == 0xA129CA6149BE45E5


@given(st.binary(max_size=70), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_siphash_twin(data: bytes, k0: int, k1: int) -> None:
    assert _native.siphash24(data, k0, k1) == _siphash24(data, k0.to_bytes(8, "little") + k1.to_bytes(8, "little"))


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6))
def test_uniform_twin(values: list[int]) -> None:
    data = np.array(values, "<i8").tobytes()
    assert _native.uniform(*values) == _siphash24(data, KEY) / 2**64


def _grid(shape: tuple[int, ...], p: int) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(p, shape))


def _expected(graph: Graph, t: int, p: int, exists: set[int]) -> set[int]:
    """Dependences of the types that are ours, from what they are meant to be."""
    if graph.type in ("stencil_2d", "stencil_3d"):
        assert graph.shape is not None
        own = _grid(graph.shape, p)
        return {q for q in exists if sum(abs(a - b) for a, b in zip(own, _grid(graph.shape, q), strict=True)) <= 1}
    if graph.type == "random_spread":
        spread = Graph(graph.steps, graph.width, "spread", graph.radix, graph.period)
        dset = t % graph.period
        key = [(q, _native.uniform(graph.index, graph.radix, dset, q, p)) for q in spread.inputs(t, p)]
        return {q for q, u in key if q == p or u < graph.fraction}
    if graph.type == "sweep_2d":
        assert graph.shape is not None
        waves = sum(graph.shape) - 1
        cell = _sweep_cell(graph.shape, t, p)
        if t % waves == 0:  # a sweep begins where the last one ended
            return {q for q in exists if _sweep_cell(graph.shape, t - 1, q) == cell}
        step = -1 if t // waves % 2 == 0 else 1
        wanted = {(cell[0] + step, cell[1]), (cell[0], cell[1] + step)}
        return {q for q in exists if _sweep_cell(graph.shape, t - 1, q) in wanted}
    return _expected_vcycle(graph, t, p, exists)


def _sweep_cell(shape: tuple[int, ...], t: int, p: int) -> tuple[int, int]:
    waves = sum(shape) - 1
    diagonal = t % waves if t // waves % 2 == 0 else waves - 1 - t % waves
    return (p, diagonal - p) if shape[0] <= shape[1] else (diagonal - p, p)


def _expected_vcycle(graph: Graph, t: int, p: int, exists: set[int]) -> set[int]:
    """Two points touch if the cells of the finest level that they stand for, with one cell of halo, do."""
    sizes = [graph.width]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // 2))
    levels = [*range(len(sizes)), *reversed(range(len(sizes)))]
    now, before = levels[t % len(levels)], levels[(t - 1) % len(levels)]
    if now > before:
        return exists & {2 * p - 1, 2 * p, 2 * p + 1, 2 * p + 2}
    centre = p if now == before else p // 2
    return exists & {centre - 1, centre, centre + 1}


@pytest.mark.parametrize(
    "graph",
    [
        Graph(5, 12, "stencil_2d", shape=(3, 4)),
        Graph(5, 24, "stencil_3d", shape=(2, 3, 4)),
        Graph(40, 4, "sweep_2d", shape=(4, 6)),
        Graph(40, 4, "sweep_2d", shape=(6, 4)),
        Graph(30, 13, "vcycle"),
        Graph(30, 16, "vcycle"),
        Graph(9, 20, "random_spread", radix=4, period=5, fraction=0.5),
    ],
    ids=lambda graph: f"{graph.type}-{graph.shape}",
)
def test_our_own_types(graph: Graph) -> None:
    for t in range(1, graph.steps):
        exists = set(graph.points(t - 1))
        for p in graph.points(t):
            assert set(graph.inputs(t, p)) == _expected(graph, t, p, exists), (t, p)


def test_sweep_visits_every_cell_once_per_sweep() -> None:
    shape = (4, 7)
    graph = Graph(2 * (sum(shape) - 1), 4, "sweep_2d", shape=shape)
    for sweep in range(2):
        steps = range(sweep * (sum(shape) - 1), (sweep + 1) * (sum(shape) - 1))
        cells = [_sweep_cell(shape, t, p) for t in steps for p in graph.points(t)]
        assert sorted(cells) == [(i, j) for i in range(shape[0]) for j in range(shape[1])]


@st.composite
def graphs(draw: st.DrawFn, most: int = 64) -> Graph:
    type_ = draw(st.sampled_from(list(TYPES)))
    width, steps = draw(st.integers(1, most)), draw(st.integers(1, 20))
    radix = draw(st.integers(0, min(width, 9)))
    period = draw(st.integers(1, max(1, -(-width // radix)) if radix else 5))
    return Graph(steps, width, type_, radix, period, draw(st.floats(0, 1)), index=draw(st.integers(0, 3)))


@settings(deadline=None, max_examples=150)
@given(graphs())
def test_dependences_and_reverse_dependences_mirror_each_other(graph: Graph) -> None:
    forward = {(t, p, q) for t in range(graph.steps) for p in graph.points(t) for q in graph.inputs(t, p)}
    backward = {
        (t + 1, p, q)
        for t in range(graph.steps)
        for q in graph.points(t)
        for first, last in graph.reverse_dependencies(t, q)
        for p in range(first, last + 1)
    }
    assert forward == backward
    assert graph.counts().dependencies == len(forward)
    assert all(q in graph.points(t - 1) for t, _, q in forward)
    graph.check()


def test_mirror_over_all_widths() -> None:
    for type_ in TYPES:
        for width in range(1, 65):
            Graph(14 if type_ == "vcycle" else 5, width, type_, radix=min(3, width), period=1).check()


@settings(deadline=None, max_examples=60)
@given(st.lists(graphs(12), min_size=1, max_size=3))
def test_plan_lists_every_task_after_its_inputs(some: list[Graph]) -> None:
    plan = plan_of(some)
    position = {task: i for i, task in enumerate(plan.tasks)}
    assert len(position) == len(plan) == sum(graph.counts().tasks for graph in some)
    for i, (g, t, p) in enumerate(plan.tasks):
        assert [plan.tasks[j] for j in plan.inputs[i]] == [(g, t - 1, q) for q in some[g].inputs(t, p)]
        assert all(j < i for j in plan.inputs[i])
    for g, graph in enumerate(some):
        assert [plan.tasks[i] for i in plan.final[g]] == [
            (g, graph.steps - 1, p) for p in graph.points(graph.steps - 1)
        ]
    assert [i for step in plan.steps for i in step] == list(range(len(plan)))


def test_local_and_nonlocal_dependences_by_hand() -> None:
    # width 4 on 2 nodes: points 0, 1 | 2, 3; of the 10 stencil dependences of a step, 1-2 and 2-1 cross.
    counts = Graph(3, 4, "stencil_1d").counts(nodes=2)
    assert (counts.dependencies, counts.local, counts.nonlocal_) == (20, 16, 4)


def test_pickles_without_its_native_part() -> None:
    graph = Graph(5, 8, "fft")
    graph.counts()
    assert pickle.loads(pickle.dumps(graph)) == graph


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"type": "spread", "radix": 5, "width": 4}, "spread with radix 5 needs width >= 5, got 4"),
        ({"type": "spread", "radix": 4, "width": 8}, "period 3 exceeds ceil(width/radix) = 2"),
        ({"type": "random_nearest", "fraction": 1.5}, "fraction must be in [0, 1], got 1.5"),
        ({"output": 8}, "output must be a multiple of 16 and at least 16 bytes, got 8"),
        ({"output": 24}, "output must be a multiple of 16 and at least 16 bytes, got 24"),
        ({"type": "stencil1d"}, "unknown type 'stencil1d'; did you mean 'stencil_1d'?"),
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"type": "stencil_2d", "shape": (3, 3)}, "shape 3x3 has 9 points, width is 8"),
        ({"type": "sweep_2d", "shape": (3, 9)}, "sweep_2d over 3x9 needs width = its shorter side 3, got 8"),
        ({"type": "fft", "shape": (2, 4)}, "fft has no shape; only stencil_2d, stencil_3d, sweep_2d have"),
        ({"type": "spread", "period": 0}, "spread needs a period of at least 1, got 0"),
    ],
)
def test_bad_graphs_say_what_is_wrong(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(GraphError) as caught:
        Graph(**({"steps": 4, "width": 8} | arguments))  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_radix_zero_has_no_dependences() -> None:
    for type_ in ("nearest", "spread", "random_nearest", "random_spread"):
        assert Graph(5, 4, type_, radix=0).counts().dependencies == 0


@pytest.mark.parametrize("width", [1, 2])
def test_defects_of_narrow_graphs_are_gone(width: int) -> None:
    assert Graph(4, width, "fft").counts().dependencies == 3 * (1 if width == 1 else 4)
    assert Graph(4, width, "stencil_1d_periodic").counts().dependencies == 3 * width * width


def test_type_with_parameters() -> None:
    base = Graph(10, 16)
    assert parse_type("random_nearest:5:2:0.5", base) == Graph(10, 16, "random_nearest", 5, 2, 0.5)
    assert parse_type("spread:5", base).period == 3
    with pytest.raises(GraphError, match="is not a type"):
        parse_type("nearest:x", base)
