"""Transient simulation of a circuit: nodes joined by wires of ten RLC segments, as tasks over pieces of the graph.

    burnish run examples/circuit.py --pieces 8 --loops 20 --steps 50 --workers 2
    burnish run examples/circuit.py ../shared/data/runtime/circuit_8x128.npz

Each loop is three index launches: ``currents`` integrates the wires of a piece with the end voltages held fixed,
``distribute`` adds the charge that flowed into the nodes of this piece and, as a reduction, into those of others,
``update`` turns charge into voltage. Which nodes of other pieces a piece touches is computed from the wires.

An input file holds node_cap, leakage, voltage0 (float64, one per node; farad, 1, volt), in_node, out_node (int,
one per wire), resistance, inductance, wire_cap (float64, one per wire; ohm, henry, farad).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from burnish import runtime as rt
from burnish.core.errors import BurnishError
from burnish.runtime import Read, ReadWrite, Reduce, each, task

SEGMENTS = 10
NODE_ARRAYS = {"cap": "node_cap", "leak": "leakage", "voltage": "voltage0"}
WIRE_ARRAYS = {"in_": "in_node", "out": "out_node", "R": "resistance", "L": "inductance", "C": "wire_cap"}


@task
def currents(
    w: Read["in_", "out", "R", "L", "C"] | ReadWrite["I", "U"],
    mine: Read["voltage"],
    theirs: Read["voltage"],
    dt: float,
    steps: int,
):
    """Implicit-explicit steps of the segment currents I and inner voltages U from their values at the loop's start."""
    voltage = np.empty((len(w.in_), SEGMENTS + 1))
    voltage[:, 0] = rt.gather(w.in_, mine.voltage, theirs.voltage)
    voltage[:, 1:-1] = w.U
    voltage[:, -1] = rt.gather(w.out, mine.voltage, theirs.voltage)
    inertia, resistance, per_farad = w.L[:, None] / dt, w.R[:, None], dt / w.C[:, None]
    start_current, start_inner, current = w.I.copy(), w.U.copy(), w.I
    for _ in range(steps):
        current[:] = (voltage[:, 1:] - voltage[:, :-1] - inertia * (current - start_current)) / resistance
        voltage[:, 1:-1] = start_inner + per_farad * (current[:, :-1] - current[:, 1:])
    w.U[:] = voltage[:, 1:-1]


@task
def distribute(
    w: Read["in_", "out", "I"],
    mine: Reduce["+", "charge"],
    theirs: Reduce["+", "charge"],
    dt: float,
):
    rt.scatter_add(w.in_, -dt * w.I[:, 0], mine.charge, theirs.charge)
    rt.scatter_add(w.out, dt * w.I[:, -1], mine.charge, theirs.charge)


@task
def update(mine: Read["cap", "leak"] | ReadWrite["voltage", "charge"]):
    mine.voltage += mine.charge / mine.cap
    mine.voltage *= 1.0 - mine.leak
    mine.charge[:] = 0.0


class Circuit:
    """Regions and partitions of one circuit cut into ``pieces`` contiguous ranges of nodes."""

    def __init__(self, inputs: dict[str, np.ndarray], pieces: int) -> None:
        n_nodes, n_wires = len(inputs["voltage0"]), len(inputs["in_node"])
        node_fields = {"cap": "f8", "leak": "f8", "voltage": "f8", "charge": "f8"}
        wire_fields = {
            "in_": "i8",
            "out": "i8",
            "R": "f8",
            "L": "f8",
            "C": "f8",
            "I": ("f8", SEGMENTS),
            "U": ("f8", SEGMENTS - 1),
        }
        self.nodes = rt.region(n_nodes, node_fields, name="nodes", fill=0.0)
        self.wires = rt.region(n_wires, wire_fields, name="wires", fill=0)
        for region, arrays in ((self.nodes, NODE_ARRAYS), (self.wires, WIRE_ARRAYS)):
            for field, source in arrays.items():
                with region.host("w", field=field) as a:
                    a[:] = inputs[source]
        piece_of_node = np.arange(n_nodes) * pieces // n_nodes
        self.pieces = pieces
        self.owned = rt.block(self.nodes, pieces)
        self.pw = rt.by_color(self.wires, piece_of_node[inputs["in_node"]], pieces)
        touched = rt.image(self.pw, "in_", self.nodes) | rt.image(self.pw, "out", self.nodes)
        self.ghost = touched - self.owned

    def loop(self, steps: int, dt: float) -> None:
        """Launch one outer loop."""
        pw, owned, ghost = self.pw, self.owned, self.ghost
        currents.map(self.pieces, pw[each], owned[each], ghost[each], dt, steps)
        distribute.map(self.pieces, pw[each], owned[each], ghost[each], dt)
        update.map(self.pieces, owned[each])

    def sums(self) -> dict[str, float]:
        """Figures by which two runs can be compared; waits for the launches before."""
        voltage, current, inner = self.nodes.numpy("voltage"), self.wires.numpy("I"), self.wires.numpy("U")
        return {
            "sum_v": float(voltage.sum()),
            "sum_abs_v": float(np.abs(voltage).sum()),
            "v0": float(voltage[0]),
            "v_last": float(voltage[-1]),
            "l2_current": float(np.sqrt((current**2).sum())),
            "sum_seg_v": float(inner.sum()),
        }


def random_circuit(pieces: int, nodes: int, wires: int, inside: float, seed: int) -> dict[str, np.ndarray]:
    """``pieces`` clusters of ``nodes`` nodes and ``wires`` wires each.

    A share ``inside`` of the wires stays in its cluster; the others end in the next cluster or the next but one.
    """
    rng = np.random.default_rng(seed)
    n_nodes, n_wires = pieces * nodes, pieces * wires
    home = np.repeat(np.arange(pieces), wires)
    away = np.where(rng.random(n_wires) < inside, 0, rng.integers(1, 3, n_wires))
    return {
        "node_cap": rng.uniform(1.0, 2.0, n_nodes),
        "leakage": rng.uniform(0.0, 0.1, n_nodes),
        "voltage0": rng.uniform(-1.0, 1.0, n_nodes),
        "in_node": home * nodes + rng.integers(0, nodes, n_wires),
        "out_node": (home + away) % pieces * nodes + rng.integers(0, nodes, n_wires),
        "resistance": rng.uniform(1.0, 11.0, n_wires),
        "inductance": rng.uniform(1.0, 11.0, n_wires) * 1e-10,
        "wire_cap": rng.uniform(0.01, 0.11, n_wires),
    }


def read_circuit(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file, checked for presence, length and node ids."""
    try:
        with np.load(path) as file:
            inputs = {name: file[name] for name in (*NODE_ARRAYS.values(), *WIRE_ARRAYS.values()) if name in file}
    except (OSError, ValueError) as error:
        raise BurnishError(f"{path}: not a readable .npz file ({error})", hint="write it with numpy.savez") from error
    for arrays in (NODE_ARRAYS, WIRE_ARRAYS):
        lengths = {name: inputs[name].shape if name in inputs else None for name in arrays.values()}
        if len(set(lengths.values())) > 1 or None in lengths.values():
            raise BurnishError(
                f"{path}: {lengths} must all be there, 1-D and of one length", hint="see the head of circuit.py"
            )
    n_nodes = len(inputs["voltage0"])
    for name in ("in_node", "out_node"):
        outside = np.flatnonzero((inputs[name] < 0) | (inputs[name] >= n_nodes))
        if len(outside):
            at = outside[0]
            raise BurnishError(
                f"{path}: {name}[{at}] = {inputs[name][at]} is no node", hint=f"ids are 0..{n_nodes - 1}"
            )
    return inputs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("input", type=Path, nargs="?", help=".npz file (default: a random circuit)")
    parser.add_argument("--pieces", type=int, default=4)
    parser.add_argument("--loops", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100, help="time steps per loop")
    parser.add_argument("--dt", type=float, default=1e-6, help="seconds per step")
    parser.add_argument("--nodes", type=int, default=64, help="nodes per piece of the random circuit")
    parser.add_argument("--wires", type=int, default=256, help="wires per piece of the random circuit")
    parser.add_argument("--inside", type=float, default=0.8, help="share of wires that stay in their piece")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.input:
        inputs = read_circuit(options.input)
    else:
        inputs = random_circuit(options.pieces, options.nodes, options.wires, options.inside, options.seed)
    circuit = Circuit(inputs, options.pieces)
    for _ in range(options.loops):
        circuit.loop(options.steps, options.dt)
    for name, value in circuit.sums().items():
        print(f"{name:12s} {value: .15e}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
