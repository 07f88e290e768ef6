"""The oracles themselves against closed forms and published values; the task programs are then compared with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from .oracles import arrays, circuit, pennant, stencil


@pytest.mark.parametrize("radius", [1, 2, 3])
def test_star_stencil_of_a_plane_is_its_slope(radius: int) -> None:
    np.testing.assert_allclose(stencil.star_stencil(31, 9, radius), stencil.closed_form(31, 9, radius), rtol=1e-12)


def test_circuit_reproduces_the_expected_sums(shared_data: Callable[[str], Path]) -> None:
    data = shared_data("runtime")
    expected = json.loads((data / "circuit_8x128.expected.json").read_text())
    with np.load(data / "circuit_8x128.npz") as arrays_of_file:
        inputs = dict(arrays_of_file)
    for setting in [key for key in expected if key.startswith("loops")]:
        loops, steps = (int(part.split("=")[1]) for part in setting.split(","))
        assert circuit.simulate(inputs, loops, steps).sums() == pytest.approx(expected[setting], rel=1e-10), setting


@pytest.mark.parametrize(
    ("problem", "sizes", "time", "dt", "energy"),
    [
        ("nohsmall", (40, 61, 158), 0.017660280069527665, 0.002242204910553066, 0.0007643981934361493),
        ("sedovsmall", (81, 100, 324), 0.02855932073615866, 0.0025884890438696417, 0.029826483529526705),
        ("leblanc", (900, 1001, 3600), 0.25958682112, 0.05159780351999999, 0.1489565958707521),
    ],
)
def test_pennant_reproduces_the_reference_fields(
    shared_data: Callable[[str], Path], problem: str, sizes: tuple[int, int, int], time: float, dt: float, energy: float
) -> None:
    base = shared_data("runtime") / "pennant"
    hydro = pennant.run(pennant.read_deck(base / f"{problem}.pnt"))
    assert (len(hydro.n), len(hydro.P), len(hydro.z)) == sizes
    assert (hydro.time, hydro.dt, hydro.zetot.sum()) == pytest.approx((time, dt, energy), rel=1e-13)
    for name, reference in pennant.read_fields(base / f"{problem}.xy.std").items():
        np.testing.assert_allclose(getattr(hydro, name), reference, rtol=1e-8, atol=1e-17, err_msg=name)


def test_pennant_conserves_energy() -> None:
    """Compatible differencing: internal plus kinetic energy is constant up to the zero-work walls."""
    deck = pennant.Deck(lists={"meshparams": [4, 30, 0.2, 1.0], "bcx": [0.0, 0.2], "bcy": [0.0, 1.0]})
    deck.lists["subregion"] = [0.0, 0.2, 0.5, 1.0]
    deck.scalars |= {"gamma": 1.4, "einit": 2.5, "rinitsub": 0.125, "einitsub": 2.0, "dtinit": 1e-3, "q1": 0.1}
    hydro = pennant.Hydro(deck)
    start = hydro.zetot.sum()
    for _ in range(100):
        hydro.step()
    corner = hydro.zm[hydro.z] * (hydro.smf + hydro.smf[hydro.s3]) / 2
    mass = np.bincount(hydro.p1, corner, len(hydro.P))
    kinetic = (mass * np.abs(hydro.u) ** 2).sum() / 2
    assert kinetic > 0.01 * start
    assert hydro.zetot.sum() + kinetic == pytest.approx(start, rel=0.02)


def test_channel_flow_tends_to_poiseuille() -> None:
    start = arrays.Flow(*np.zeros((3, 9, 4)))
    flow = arrays.channel_flow(start, 800, height=1.0, length=0.5, nu=0.1, dt=0.03, iterations=2)
    np.testing.assert_allclose(flow.u, np.repeat(arrays.poiseuille(9, 1.0, 0.1, 1.0)[:, None], 4, axis=1), atol=1e-8)
    np.testing.assert_allclose(flow.v, 0.0, atol=1e-12)


def test_conjugate_gradients_and_jacobi_solve() -> None:
    matrix = arrays.laplacian_matrix(6)
    b = np.random.default_rng(0).random(36)
    exact = np.linalg.solve(matrix, b)
    np.testing.assert_allclose(arrays.conjugate_gradients(matrix, b, 30), exact, rtol=1e-10)
    np.testing.assert_allclose(arrays.jacobi(matrix, b, 400), exact, rtol=1e-10)


def test_shallow_water_conserves_and_waves_travel_at_their_speed() -> None:
    n, dx, dt, eps = 64, 1 / 64, 0.004, 1e-6
    x = (np.arange(n) + 0.5) * dx
    wave = np.repeat((eps * np.sin(2 * np.pi * x))[:, None], n, axis=1)
    right_going = arrays.Water(1 + wave, wave.copy(), np.zeros((n, n)))
    end = arrays.shallow_water(right_going, 100, dx, dt)
    assert end.h.sum() == pytest.approx(right_going.h.sum(), rel=1e-13)
    phase = np.angle(np.fft.fft(end.h[:, 0] - 1)[1] / np.fft.fft(wave[:, 0])[1])
    assert phase == pytest.approx(-2 * np.pi * 100 * dt, rel=1e-2)
