"""What a measurement says of itself: one JSON line each, and the estimate with its evidence."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from burnish.core.evidence import Evidence
from burnish.taskbench.estimate import Estimate, Mode, Sample
from burnish.taskbench.graph import Graph
from burnish.taskbench.kernel import Kernel
from burnish.taskbench.session import usable_cores


@dataclass(frozen=True)
class Measurement:
    """A system on some graphs with one kernel; times in seconds, one entry per repetition."""

    system: str
    version: str
    impl: str
    graphs: tuple[Graph, ...]
    kernel: Kernel
    workers: int
    elapsed: tuple[float, ...]
    cpu: tuple[float, ...]
    tasks: int
    dependences: int
    validated: bool
    load: float
    peaks: tuple[tuple[float, float], ...] = ()
    efficiency: float | None = None
    granularity: float | None = None
    launched: float | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    def json_line(self) -> str:
        """The measurement as one line of JSON."""
        data = asdict(self)
        data["kernel"].pop("ledger")
        data |= data.pop("extra")
        return json.dumps(data, default=str)


@dataclass(frozen=True)
class MetgResult:
    """METG of a system: ``estimate`` is of wall-clock time, ``cpu_estimate`` of CPU time; ``mode`` says which was asked.

    ``start_seconds`` is what starting the system took, ``seconds`` what the whole measurement took, ``repeated`` the
    slots that were measured again because the machine was unsteady.
    """

    system: str
    version: str
    graphs: tuple[Graph, ...]
    kernel: Kernel
    threshold: float
    workers: int
    mode: Mode
    estimate: Estimate
    cpu_estimate: Estimate
    samples: tuple[Sample, ...]
    start_seconds: float
    seconds: float
    repeated: int
    load: float

    @property
    def asked(self) -> Estimate:
        """The estimate in the mode that was asked for."""
        return self.cpu_estimate if self.mode == "cpu" else self.estimate

    @property
    def value(self) -> float | None:
        """METG in seconds; None if the threshold was not bracketed (``asked.reason`` says why)."""
        return self.asked.value

    @property
    def interval(self) -> tuple[float | None, float | None]:
        """95 % interval of :attr:`value`."""
        return self.asked.low, self.asked.high

    @property
    def curve(self) -> tuple[Any, ...]:
        """Measured points, iterations ascending."""
        return self.asked.curve

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """What the figure is known by."""
        slots = len(self.samples)
        detail = {"slots": slots, "repeated": self.repeated, "load": self.load, "workers": self.workers}
        method = f"{slots} slots between paired peak slots, bootstrap over repetitions"
        claim = f"METG({self.threshold:.0%}) of {self.system} on {self.label}: {show(self.asked)}"
        checked = f"every input of every task compared, executed tasks counted, in {slots} runs"
        tested = Evidence(f"{self.system} executes {self.label} correctly", "tested", checked)
        measured = Evidence(claim, "measured", method, detail)
        return (measured, tested) if self.kernel.validate else (measured,)

    @property
    def label(self) -> str:
        """The graphs, shortly."""
        return label_of(self.graphs)

    def json_line(self) -> str:
        """The result as one line of JSON, without the single samples."""
        data = {
            "measure": "metg", "system": self.system, "version": self.version, "impl": self.kernel.impl,
            "graphs": [asdict(graph) for graph in self.graphs], "kernel": self.kernel.name,
            "threshold": self.threshold, "workers": self.workers, "mode": self.mode, "metg": self.value,
            "interval": self.interval, "cpu_metg": self.cpu_estimate.value,
            "cpu_interval": (self.cpu_estimate.low, self.cpu_estimate.high), "reason": self.asked.reason,
            "falls": self.asked.falls, "slots": len(self.samples), "repeated": self.repeated,
            "start_seconds": self.start_seconds, "seconds": self.seconds, "load": self.load,
            "validated": self.kernel.validate,
            "curve": [[p.iterations, p.repetitions, p.efficiency, p.granularity] for p in self.curve],
        }  # fmt: skip
        return json.dumps(data)


def label_of(graphs: Sequence[Graph]) -> str:
    """Types and widths, shortly."""
    return " and ".join(f"{graph.label} width {graph.width}" for graph in graphs)


def seconds_text(seconds: float | None) -> str:
    """Three digits and the unit that fits.

    >>> seconds_text(1.234e-5)
    '12.3 us'
    """
    if seconds is None or not math.isfinite(seconds):
        return "-"
    for factor, unit in ((1e9, "ns"), (1e6, "us"), (1e3, "ms")):
        if abs(seconds) * factor < 999.5:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"


def show(estimate: Estimate) -> str:
    """Value and interval, or the reason why there is none."""
    if estimate.value is None:
        return estimate.reason
    return f"{seconds_text(estimate.value)} [{seconds_text(estimate.low)}, {seconds_text(estimate.high)}]"


def load_average() -> float:
    """Processes that wanted to run in the last minute, on average."""
    return os.getloadavg()[0]


def warnings(workers: int, load: float) -> list[str]:
    """What makes wall-clock figures doubtful here."""
    cores, out = usable_cores(), []
    if workers > cores:
        out.append(f"{workers} workers on {cores} cores: oversubscribed")
    if load > 0.7 * cores:
        out.append(f"load average {load:.1f} on {cores} cores: wall-clock figures are doubtful, see CPU time")
    return out
