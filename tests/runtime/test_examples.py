"""The task programs in examples/ against closed forms, published fields and the NumPy oracles, on every executor."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from burnish import runtime as rt
from burnish.core.errors import BurnishError

from .oracles import circuit as circuit_oracle
from .oracles import pennant as pennant_oracle
from .oracles import stencil as stencil_oracle

EXAMPLES = Path(__file__).parents[2] / "examples"
RESOURCES: list[dict[str, Any]] = [
    {"executor": "serial"},
    {"executor": "threads", "workers": 1},
    {"executor": "threads", "workers": 4},
]


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@contextmanager
def started(**resources: Any) -> Iterator[None]:
    rt.start(**resources)
    try:
        yield
    finally:
        rt.stop()


stencil, circuit, pennant = example("stencil"), example("circuit"), example("pennant")


@pytest.mark.parametrize("resources", RESOURCES, ids=str)
@pytest.mark.parametrize(("n", "tiles", "radius"), [(40, 1, 2), (41, 3, 2), (13, 4, 2), (30, 2, 3)])
def test_stencil(resources: dict[str, Any], n: int, tiles: int, radius: int) -> None:
    with started(**resources):
        out, worst = stencil.run(n, tiles, 7, radius)
        np.testing.assert_allclose(out.numpy(), stencil_oracle.closed_form(n, 7, radius), rtol=1e-8)
        np.testing.assert_allclose(out.numpy(), stencil_oracle.star_stencil(n, 7, radius), rtol=1e-13)
    assert worst < 1e-8


@pytest.mark.parametrize("pieces", [1, 2, 8])
def test_circuit_reproduces_the_expected_sums(shared_data: Callable[[str], Path], pieces: int) -> None:
    data = shared_data("runtime")
    expected = json.loads((data / "circuit_8x128.expected.json").read_text())["loops=5,steps=100"]
    with started(executor="threads", workers=2):
        program = circuit.Circuit(circuit.read_circuit(data / "circuit_8x128.npz"), pieces)
        for _ in range(5):
            program.loop(100, 1e-6)
        assert program.sums() == pytest.approx(expected, rel=1e-10)


def circuit_state(inputs: dict[str, Any], pieces: int, **resources: Any) -> list[np.ndarray[Any, Any]]:
    with started(**resources):
        program = circuit.Circuit(inputs, pieces)
        for _ in range(4):
            program.loop(20, 1e-6)
        return [program.nodes.numpy("voltage"), program.wires.numpy("I"), program.wires.numpy("U")]


@pytest.mark.parametrize("shuffled", [False, True])
def test_circuit_is_the_same_everywhere(shuffled: bool) -> None:
    """Shuffled wires make the wire pieces sparse."""
    inputs = circuit.random_circuit(5, 20, 60, 0.7, seed=3)
    if shuffled:
        order = np.random.default_rng(0).permutation(300)
        inputs |= {name: inputs[name][order] for name in circuit.WIRE_ARRAYS.values()}
    reference, *others = [circuit_state(inputs, 5, **resources) for resources in RESOURCES]
    oracle = circuit_oracle.simulate(inputs, 4, 20)
    for got, expected in zip(reference, (oracle.voltage, oracle.current, oracle.inner), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-15)
    for other in others:
        for got, expected in zip(other, reference, strict=True):
            np.testing.assert_array_equal(got, expected)


def pennant_fields(deck: Any, pieces: int, **resources: Any) -> dict[str, np.ndarray[Any, Any]]:
    with started(**resources):
        hydro = pennant.Hydro(deck, pieces)
        hydro.run()
        fields: dict[str, np.ndarray[Any, Any]] = hydro.fields()
        return fields


@pytest.mark.parametrize("problem", ["nohsmall", "sedovsmall", "leblanc"])
def test_pennant_reproduces_the_reference_fields_bitwise_on_every_executor(
    shared_data: Callable[[str], Path], problem: str
) -> None:
    base = shared_data("runtime") / "pennant"
    deck = pennant.read_deck(base / f"{problem}.pnt")
    expected = pennant_oracle.read_fields(base / f"{problem}.xy.std")
    for pieces in (1, 4, 7):
        reference, *others = [pennant_fields(deck, pieces, **resources) for resources in RESOURCES]
        for name, field in expected.items():
            small = np.abs(field) < 1e-9
            error = np.abs(reference[name] - field) / np.where(small, 1.0, np.abs(field))
            assert error.max() < 1e-8, (pieces, name)
            for other in others:
                np.testing.assert_array_equal(other[name], reference[name])


def test_pennant_with_more_pieces_than_zones_follows_the_oracle() -> None:
    deck = pennant.Deck(
        meshtype="pie", meshparams=(3.0, 4.0), uinitradial=-1.0, bcx=(0.0,), bcy=(0.0,), dtinit=1e-3, cstop=8
    )
    oracle_deck = pennant_oracle.Deck(meshtype="pie", lists={"meshparams": [3.0, 4.0], "bcx": [0.0], "bcy": [0.0]})
    oracle_deck.scalars |= {"uinitradial": -1.0, "dtinit": 1e-3}
    oracle = pennant_oracle.run(oracle_deck, cycles=8)
    fields = pennant_fields(deck, 20, executor="threads", workers=2)
    for name in ("zr", "ze", "zp"):
        np.testing.assert_allclose(fields[name], getattr(oracle, name), rtol=1e-10, atol=1e-15)


def test_sod_shock_tube_has_the_exact_plateaus() -> None:
    """Between contact and shock the exact solution has p = 0.30313, density 0.26557 (Toro 2009, test 1)."""
    deck = dataclasses.replace(pennant.SOD, cstop=10_000, tstop=0.2)
    fields = pennant_fields(deck, 3, executor="threads", workers=2)
    column = {name: values.reshape(100, 4)[:, 0] for name, values in fields.items()}
    plateau = np.abs(column["zr"] - 0.26557) < 0.02
    assert plateau.sum() >= 8
    assert np.median(column["zp"][plateau]) == pytest.approx(0.30313, rel=0.02)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cstop 10\nmeshparam 3\n", "2:1: unknown key 'meshparam'; known: meshtype"),
        ("meshparams 3 3\n gamma 5/3\n", "2:2: 'gamma' needs numbers, got '5/3'"),
        ("meshparams 3\nsubregion 0 1\n", "2:1: 'subregion' takes 4 to 4 values, got 2"),
        ("meshtype hex\nmeshparams 3\n", ": meshtype 'hex' is not available; use rect or pie"),
        ("cstop 10\n", ": no positive 'meshparams'; add a line: meshparams NZX NZY LENX LENY"),
    ],
)
def test_pennant_input_errors_name_the_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.pnt"
    path.write_text(text)
    with pytest.raises(BurnishError) as raised:
        pennant.read_deck(path)
    assert str(raised.value).splitlines()[0].startswith(f"{path}:" + message.removeprefix(":"))


def test_circuit_input_errors(tmp_path: Path) -> None:
    inputs = circuit.random_circuit(2, 4, 6, 0.5, seed=0)
    path = tmp_path / "bad.npz"
    np.savez(path, **(inputs | {"out_node": inputs["out_node"] + 5}))
    with pytest.raises(BurnishError, match=r"out_node\[\d+\] = \d+ is no node; ids are 0..7"):
        circuit.read_circuit(path)
    path.write_bytes(b"not a zip file")
    with pytest.raises(BurnishError, match=r"not a readable \.npz file"):
        circuit.read_circuit(path)
