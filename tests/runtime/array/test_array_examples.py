"""The array examples: the same functions on bn and on NumPy, on every executor, traced and not."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import burnish.runtime.array as bn
from burnish import runtime as rt
from burnish.runtime.array import _native

from ..test_examples import example, started

RESOURCES: list[dict[str, Any]] = [
    {"executor": "serial"},
    {"executor": "threads", "workers": 2, "trace": False},
    {"executor": "threads", "workers": 2},
    {"executor": "threads", "workers": 4, "chaos": 13},
]
each_way = pytest.mark.parametrize("resources", RESOURCES, ids=str)
cfd, cg, jacobi, water = example("cfd"), example("cg"), example("jacobi"), example("shallow_water")


def on_numpy(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "bn", np)


def flow(steps: int, n: int) -> list[Any]:
    channel = cfd.Channel(nx=n, ny=n + 1, dt=1e-3, sweeps=4)
    return list(cfd.simulate(channel, cfd.disturbed(channel), steps))


@each_way
def test_channel_flow_is_numpys_bit_for_bit(resources: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with started(**resources):
        ours = [np.asarray(x) for x in flow(25, 20)]
    on_numpy(cfd, monkeypatch)
    for mine, numpys in zip(ours, flow(25, 20), strict=True):
        assert mine.tobytes() == numpys.tobytes()


@each_way
def test_shallow_water_is_numpys_bit_for_bit(resources: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with started(**resources):
        ours = [np.asarray(x) for x in water.simulate(water.drop(24), 15, 1 / 24, 0.3 / 24)]
    on_numpy(water, monkeypatch)
    for mine, numpys in zip(ours, water.simulate(water.drop(24), 15, 1 / 24, 0.3 / 24), strict=True):
        assert mine.tobytes() == numpys.tobytes()


@each_way
def test_solvers_follow_numpy(resources: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    b, matrix = rng.random((30, 30)), rng.random((60, 60))
    d = 1.25 * matrix.sum(axis=1)
    with started(**resources):
        x = np.asarray(cg.solve(bn.array(b), 1e-10, 500)[0])
        y = np.asarray(jacobi.iterate(bn.array(matrix), bn.array(d), bn.array(b.ravel()[:60]), 40))
    on_numpy(cg, monkeypatch)
    on_numpy(jacobi, monkeypatch)
    np.testing.assert_allclose(x, cg.solve(b, 1e-10, 500)[0], rtol=1e-7)
    np.testing.assert_allclose(y, jacobi.iterate(matrix, d, b.ravel()[:60], 40), rtol=1e-12)


def test_large_flow_in_blocks_is_numpys_bit_for_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    with started(executor="threads", workers=3, chaos=5):
        ours = [np.asarray(x) for x in flow(2, 200)]
    on_numpy(cfd, monkeypatch)
    for mine, numpys in zip(ours, flow(2, 200), strict=True):
        assert mine.tobytes() == numpys.tobytes()


def test_a_time_step_is_one_trace_and_its_memory_is_reused() -> None:
    channel = cfd.Channel(nx=20, ny=21, dt=1e-3, sweeps=4)
    rt.start(executor="threads", workers=2, trace=True)
    start = cfd.disturbed(channel)
    cfd.simulate(channel, start, 1)
    before = rt.stats()["launches"]
    cfd.simulate(channel, start, 1)
    per_step = rt.stats()["launches"] - before - 1  # the copy of p
    cfd.simulate(channel, start, 150)
    rt.fence()
    made = _native.pool_counters()["made"]
    early = rt.stats()
    cfd.simulate(channel, start, 100)
    rt.fence()
    late = rt.stats()
    longest = max(rt.traces(), key=lambda t: t["length"] * t["replays"])
    rt.stop()
    assert longest["length"] % per_step == 0 and longest["replays"] * longest["length"] > 200 * per_step
    assert late["replayed"] - early["replayed"] >= 0.95 * (late["launches"] - early["launches"])
    assert _native.pool_counters()["made"] - made < 2 * per_step
