"""Transient circuit simulation with ten RLC segments per wire, vectorized over all wires at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
SEGMENTS = 10


@dataclass
class CircuitState:
    """Node voltages (nodes,), wire currents (wires, 10) and inner segment voltages (wires, 9)."""

    voltage: Array
    current: Array
    inner: Array

    def sums(self) -> dict[str, float]:
        """The figures by which runs are compared."""
        return {
            "sum_v": float(self.voltage.sum()),
            "sum_abs_v": float(np.abs(self.voltage).sum()),
            "v0": float(self.voltage[0]),
            "v_last": float(self.voltage[-1]),
            "l2_current": float(np.sqrt((self.current**2).sum())),
            "sum_seg_v": float(self.inner.sum()),
        }


def simulate(circuit: Mapping[str, NDArray[np.generic]], loops: int, steps: int, dt: float = 1e-6) -> CircuitState:
    """Integrate ``loops`` outer loops of ``steps`` inner steps of ``dt`` seconds; all ``in`` charges before all ``out``."""
    cap, leak = circuit["node_cap"], circuit["leakage"]
    start, end = circuit["in_node"], circuit["out_node"]
    inductance, resistance = circuit["inductance"][:, None], circuit["resistance"][:, None]
    wire_cap = circuit["wire_cap"][:, None]
    voltage = np.array(circuit["voltage0"], dtype=float)
    charge = np.zeros_like(voltage)
    current = np.zeros((len(start), SEGMENTS))
    inner = np.zeros((len(start), SEGMENTS - 1))
    for _ in range(loops):
        along = np.concatenate([voltage[start, None], inner, voltage[end, None]], axis=1)
        current0, inner0 = current.copy(), inner.copy()
        for _ in range(steps):
            drop = np.diff(along, axis=1)
            current = (drop - inductance * (current - current0) / dt) / resistance
            along[:, 1:-1] = inner0 + dt * (current[:, :-1] - current[:, 1:]) / wire_cap
        inner = along[:, 1:-1].copy()
        np.add.at(charge, start, -dt * current[:, 0])
        np.add.at(charge, end, dt * current[:, -1])
        voltage = (voltage + charge / cap) * (1.0 - leak)
        charge[:] = 0.0
    return CircuitState(voltage, current, inner)
