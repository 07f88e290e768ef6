"""Long loops in constant space: atoms, user lists, records and memory do not grow with the number of iterations."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil
import pytest

from burnish import runtime as rt
from burnish._native import runtime as _rt
from burnish.runtime import Read, ReadWrite, Reduce, Write, each, task

ITERATIONS = [2000, pytest.param(100_000, marks=pytest.mark.slow)]
MEGABYTE = 1 << 20


@task
def copy_sum(out: Write, near: Read) -> None:
    out[...] = near[...].sum()


@task
def touch(x: ReadWrite) -> None:
    x += 1


@task
def look(x: Read) -> None:
    x.sum()


@task
def add_one(x: Reduce["+"]) -> None:
    x += 1


@task
def currents(w: ReadWrite["current"], mine: Read["voltage"], theirs: Read["voltage"]) -> None:
    w.current += mine.voltage.sum() + theirs.voltage.sum()


@task
def distribute(w: Read["current"], mine: Reduce["+", "charge"], theirs: Reduce["+", "charge"]) -> None:
    mine.charge += w.current.sum()
    theirs.charge += 1


@task
def update(mine: ReadWrite["voltage", "charge"]) -> None:
    mine.voltage += 0.001 * mine.charge
    mine.charge *= 0


@pytest.fixture(params=["threads", "serial"])
def executor(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@dataclass(frozen=True)
class Sample:
    atoms: int
    entries: int
    longest: int
    record_bytes: int
    rss: int


def sample(*regions: Any) -> Sample:
    stats = [_rt.atom_stats(r) for r in regions]
    return Sample(
        sum(s["atoms"] for s in stats),
        sum(s["entries"] for s in stats),
        max(s["longest_list"] for s in stats),
        rt.stats()["record_bytes"],
        psutil.Process().memory_info().rss,
    )


def samples(iterations: int, regions: tuple[Any, ...], step: Callable[[int], None]) -> Iterator[Sample]:
    """Samples of a loop: one fifth to warm up, then ten equal stretches."""
    for k in range(iterations):
        step(k)
        if k >= iterations // 5 and k % (iterations // 10) == 0:
            gc.collect()
            yield sample(*regions)


def assert_flat(taken: list[Sample], atoms: int, longest: int, megabytes: float = 8) -> None:
    """No sample exceeds the bounds, and the later ones are no larger than the early ones."""
    assert max(s.atoms for s in taken) <= atoms
    assert max(s.longest for s in taken) <= longest
    early, late = taken[: len(taken) // 2], taken[len(taken) // 2 :]
    assert max(s.entries for s in late) <= max(s.entries for s in early)
    assert max(s.record_bytes for s in late) <= max(s.record_bytes for s in early)
    assert min(s.rss for s in late) - min(s.rss for s in early) < megabytes * MEGABYTE


def start(executor: str, trace: bool, **options: Any) -> None:
    rt.start(executor=executor, workers=2, trace=trace, window=1024, **options)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def stopped() -> Iterator[None]:
    yield
    rt.stop()


@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize("trace", [False, True])
def test_stencil(executor: str, trace: bool, iterations: int) -> None:
    start(executor, trace)
    u, v = rt.region(64, "f8"), rt.region(64, "f8")
    blocks, halos = (rt.block(u, 4), rt.block(v, 4)), (rt.ghost(rt.block(u, 4), 1), rt.ghost(rt.block(v, 4), 1))

    def step(k: int) -> None:
        copy_sum.map(4, blocks[k % 2][each], halos[1 - k % 2][each])

    assert_flat(list(samples(iterations, (u, v), step)), atoms=2 * 10, longest=64)


@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize("trace", [False, True])
def test_circuit(executor: str, trace: bool, iterations: int) -> None:
    rng = np.random.default_rng(7)
    pieces, n = 4, 40
    start(executor, trace)
    nodes = rt.region(n, {"voltage": "f8", "charge": "f8"})
    wires = rt.region(60, {"current": "f8"})
    owned = rt.by_color(nodes, np.arange(n) * pieces // n)
    w = rt.block(wires, pieces)
    ends = [rt.image(w, rng.integers(0, n, 60), nodes) for _ in range(2)]
    ghost = (ends[0] | ends[1]) - owned

    def step(k: int) -> None:
        currents.map(pieces, w[each], owned[each], ghost[each])
        distribute.map(pieces, w[each], owned[each], ghost[each])
        update.map(pieces, owned[each])

    assert_flat(list(samples(iterations, (nodes, wires), step)), atoms=n + pieces, longest=64)


@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize("trace", [False, True])
def test_alternating_partitions(executor: str, trace: bool, iterations: int) -> None:
    """Atoms are at most the common refinement of the partitions in use."""
    start(executor, trace)
    u = rt.region(60, "f8")
    parts = [rt.block(u, k) for k in (4, 6, 5)]
    cuts = {c * 60 // k for k in (4, 6, 5) for c in range(k)}

    def step(k: int) -> None:
        part = parts[k % 3]
        touch.map(part.colors[0], part[each])
        if k % 7 == 0:
            look(u)

    assert_flat(list(samples(iterations, (u,), step)), atoms=len(cuts), longest=64)


def test_new_partitions_replace_old_ones() -> None:
    """Cuts of partitions that are no longer used heal: without that, every new one would leave its own behind."""
    rng = np.random.default_rng(3)
    start("threads", False)
    u = rt.region(400, "f8")
    most = 0
    for _ in range(60):
        part = rt.by_color(u, rng.integers(0, 5, 400).cumsum() % 5)
        for _ in range(5):
            touch.map(5, part[each])
        most = max(most, _rt.atom_stats(u)["atoms"])
    assert most <= 25 + 5  # two partitions overlap while one takes over
    assert rt.stats()["merges"] > 0
    np.testing.assert_array_equal(u.numpy(), 300.0)


def test_new_partitions_heal_beside_a_busy_field() -> None:
    """The same while another field of the same region is always in use, by blocks of its own."""
    rng = np.random.default_rng(4)
    start("threads", False)
    u = rt.region(400, {"a": "f8", "b": "f8"})
    blocks = rt.block(u, 4)

    @task
    def touch_a(x: ReadWrite["a"]) -> None:
        x.a += 1

    @task
    def touch_b(x: ReadWrite["b"]) -> None:
        x.b += 1

    most = 0
    for _ in range(60):
        part = rt.by_color(u, rng.integers(0, 5, 400).cumsum() % 5)
        for _ in range(5):
            touch_b.map(4, blocks[each])
            touch_a.map(5, part[each])
        most = max(most, _rt.atom_stats(u)["atoms"])
    assert most <= 4 * (25 + 5)
    np.testing.assert_array_equal(u.numpy("a"), 300.0)
    np.testing.assert_array_equal(u.numpy("b"), 300.0)


@pytest.mark.parametrize("iterations", [5000])
def test_reductions_without_a_reader(executor: str, iterations: int) -> None:
    start(executor, False)
    u = rt.region(8, "f8")
    taken = list(samples(iterations, (u,), lambda k: add_one(u)))
    assert max(s.longest for s in taken) <= 1024
    np.testing.assert_array_equal(u.numpy(), float(iterations))


def test_window_holds_for_every_number_of_tasks() -> None:
    """Launches in flight stay within the window, however many tasks a launch has."""
    rt.start(workers=1, trace=False, window=64)
    u = rt.region(8, "f8")
    part = rt.block(u, 2)
    touch(u)
    for _ in range(500):
        touch.map(2, part[each])
        counters = rt.stats()
        assert counters["tasks"] - counters["completed"] <= 64 + 64 + 2


def test_regions_that_come_and_go(executor: str) -> None:
    """Memory of dropped regions is used again: read or not, with reductions left open, or never used."""
    start(executor, False)
    taken = []
    for k in range(3000):
        u = rt.region(20_000, "f8", fill=1.0)
        if k % 4 == 1:
            touch(u)
        elif k % 4 == 2:
            add_one(u)
        elif k % 4 == 3:
            add_one(u)
            copy_sum(u[:1], u[1:])
        if k % 100 == 0 and k >= 500:
            taken.append(psutil.Process().memory_info().rss)
    assert min(taken[-5:]) - min(taken[:5]) < 20 * MEGABYTE  # 480 MB went by


def test_futures_without_get(executor: str) -> None:
    @task
    def value(x: Read) -> float:
        return float(x[0])

    start(executor, False)
    u = rt.region(8, "f8")
    part = rt.block(u, 4)
    taken = []
    for k in range(3000):
        value.map(4, part[each]).reduce("+").map(lambda v: v + k)
        if k % 100 == 0 and k >= 500:
            taken.append(psutil.Process().memory_info().rss)
    assert min(taken[-5:]) - min(taken[:5]) < 8 * MEGABYTE
