"""The estimator on simulated systems, where the answer is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish.taskbench.estimate import Estimate, Sample, bracket, estimate, interpolate, midmean
from burnish.taskbench.search import Search
from burnish.taskbench.simulate import Simulated
from burnish.taskbench.slots import STEADY, TRIES


def _measure(simulated: Simulated, seed: int = 0, most: int = 80, threshold: float = 0.5) -> tuple[Estimate, Search]:
    """What a real measurement does, unsteady slots repeated included."""
    search = Search(threshold, most=most, seed=seed)
    while (iterations := search.propose()) is not None:
        tries = [simulated.sample(iterations)]
        while tries[-1].unsteady > STEADY and len(tries) < TRIES:
            tries.append(simulated.sample(iterations))
        search.add(min(tries, key=lambda sample: sample.unsteady))
    return search.estimate(), search


def _covered(systems: list[Simulated], true: float) -> float:
    hits = 0
    for simulated in systems:
        found, _ = _measure(simulated, seed=simulated.seed)
        assert found.low is not None and found.high is not None
        hits += found.low <= true <= found.high
    return hits / len(systems)


@pytest.mark.parametrize("overhead", [5e-8, 1e-5, 3e-3])
@pytest.mark.parametrize("threshold", [0.5, 0.8])
def test_overhead_on_the_executing_core(overhead: float, threshold: float) -> None:
    # elapsed = N (k + o) / C, so efficiency k / (k + o) is e where k + o = o / (1 - e)
    found, _ = _measure(Simulated(overhead=overhead), threshold=threshold)
    assert found.value == pytest.approx(overhead / (1 - threshold), rel=0.02)
    assert found.falls == ()


@pytest.mark.parametrize("cores", [2, 8])
def test_launch_on_one_serial_thread(cores: int) -> None:
    # elapsed = N max(l, k / C), so every task below the threshold takes l C
    found, _ = _measure(Simulated(launch=2e-5, cores=cores, tasks=4000))
    assert found.value == pytest.approx(2e-5 * cores, rel=0.01)


def test_simulator_agrees_with_its_closed_forms() -> None:
    assert Simulated(overhead=1e-5).metg() == pytest.approx(2e-5, rel=1e-3)
    assert Simulated(launch=1e-5, tasks=4000).metg() == pytest.approx(2e-5, rel=1e-2)


def test_both_together_as_the_simulator_says() -> None:
    simulated = Simulated(overhead=1e-5, launch=8e-6)
    found, _ = _measure(simulated)
    assert found.value == pytest.approx(simulated.metg(), rel=0.02)


def test_interval_holds_the_true_value_in_95_of_100_cases() -> None:
    systems = [Simulated(overhead=1e-5, noise=0.03, seed=seed) for seed in range(200)]
    assert _covered(systems, 2e-5) >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.01, 0.05])
@pytest.mark.parametrize("costs", [{"launch": 1e-5}, {"overhead": 1e-5, "launch": 8e-6}])
def test_interval_holds_the_true_value_for_other_systems(noise: float, costs: dict[str, float]) -> None:
    true = Simulated(**costs).metg()
    assert _covered([Simulated(**costs, noise=noise, seed=seed) for seed in range(200)], true) >= 0.95


def test_random_stalls_do_not_matter() -> None:
    for seed in range(8):
        found, _ = _measure(Simulated(overhead=1e-5, noise=0.02, stall_probability=0.1, seed=seed), seed, most=60)
        assert found.value == pytest.approx(2e-5, rel=0.10)


def test_search_takes_about_a_dozen_points() -> None:
    _, search = _measure(Simulated(overhead=1e-4, noise=0.01))
    assert len({sample.iterations for sample in search.samples}) <= 14
    ends = sorted(search.estimate().curve, key=lambda point: abs(point.efficiency - 0.5))[:2]
    assert all(point.repetitions >= 6 for point in ends)


def test_same_seed_same_result() -> None:
    first, second = (_measure(Simulated(overhead=1e-5, noise=0.05, seed=7), seed=3)[0] for _ in range(2))
    assert first == second


def test_cpu_mode_counts_what_cores_do_not_see() -> None:
    search = Search(mode="cpu")
    simulated = Simulated(overhead=1e-5, launch=5e-6)
    while (iterations := search.propose()) is not None:
        search.add(simulated.sample(iterations))
    assert search.estimate().value == pytest.approx(3e-5, rel=0.02)  # (o + l) twice


def _sample(n: int, efficiency: float, granularity: float) -> Sample:
    return Sample(n, 1, 100, 1, granularity * 100, 1.0, efficiency * granularity * 100, (1.0, 1.0), 1.0)


def test_falling_efficiency_is_reported() -> None:
    samples = [_sample(n, e + d, 1e-6 * n) for n, e in ((1, 0.2), (2, 0.9), (4, 0.6)) for d in (-0.01, 0.01)]
    assert len(estimate(samples).falls) == 1
    assert "falls from 0.90 at n=2 to 0.60 at n=4" in estimate(samples).falls[0]


def test_no_bracket_says_why() -> None:
    assert estimate([]).reason == "nothing was measured"
    assert estimate([_sample(1, 0.7, 3e-6)]).reason == "efficiency is 0.70 even at n=1 (3 us)"
    assert estimate([_sample(9, 0.3, 4e-6)]).reason == "efficiency reaches 0.30 only (n=9, 4 us)"


def test_interpolation_is_linear_in_log_granularity() -> None:
    assert interpolate((0.25, 1e-6), (0.75, 4e-6), 0.5) == pytest.approx(2e-6)


@given(st.lists(st.tuples(st.integers(1, 1000), st.floats(0, 1)), unique_by=lambda p: p[0], max_size=12))
def test_bracket_is_the_last_crossing(points: list[tuple[int, float]]) -> None:
    points.sort()
    ends = bracket(points, 0.5)
    above = [e >= 0.5 for _, e in points]
    crossings = [i for i in range(len(points) - 1) if not above[i] and all(above[i + 1 :])]
    assert ends == ((points[crossings[0]][0], points[crossings[0] + 1][0]) if crossings else None)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.floats(1e7, 1e9))
def test_midmean_ignores_a_quarter_of_outliers(values: list[float], outlier: float) -> None:
    spoiled = np.array(values)
    spoiled[: len(values) // 4] = outlier
    if len(values) >= 4:
        assert midmean(spoiled) <= 1e6
    assert min(values) - 1e-9 <= midmean(np.array(values)) <= max(values) + 1e-9
    assert math.isclose(float(midmean(np.full(5, values[0]))), values[0], abs_tol=1e-9)
