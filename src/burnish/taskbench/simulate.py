"""Systems that exist only as a cost model: what the estimator must find on them is known.

Each of ``cores`` cores pays ``overhead`` seconds per task; one more thread launches a task every ``launch`` seconds.
A kernel runs ``iterations * iteration_seconds``. Closed forms: with overhead alone METG(e) = overhead / (1 - e); with
launch alone METG(e) = launch * cores; with both, :meth:`Simulated.metg` solves for it.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np

from burnish.taskbench.estimate import Sample


@dataclass
class Simulated:
    """``noise`` is the standard deviation of the log of every measured time; with probability ``stall_probability`` a
    slot takes ``1 + stall`` times as long. Random numbers follow from ``seed``."""

    overhead: float = 0.0
    launch: float = 0.0
    cores: int = 2
    iteration_seconds: float = 4e-9
    noise: float = 0.0
    stall_probability: float = 0.0
    stall: float = 0.5
    tasks: int = 400
    seed: int = 0
    _random: np.random.Generator = field(init=False, repr=False)
    _known: dict[float, float] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)

    def elapsed(self, kernel_seconds: float) -> float:
        """Makespan of ``tasks`` independent tasks: the launcher hands them out in order, a free core takes the next."""
        if kernel_seconds in self._known:
            return self._known[kernel_seconds]
        free = [0.0] * self.cores
        for task in range(self.tasks):
            heapq.heapreplace(free, max(free[0], (task + 1) * self.launch) + kernel_seconds + self.overhead)
        self._known[kernel_seconds] = max(free)
        return max(free)

    def sample(self, iterations: int) -> Sample:
        """What measuring a slot would give: between two peak slots, everything with its own noise."""
        kernel = iterations * self.iteration_seconds
        work = 128.0 * iterations
        before, after = (self._disturbed() * work * self.cores / kernel for _ in range(2))
        elapsed = self.elapsed(kernel) / self._disturbed()
        cpu = self.tasks * (kernel + self.overhead + self.launch) / np.exp(self._random.normal(0, self.noise))
        return Sample(
            iterations, 1, self.tasks, self.cores, elapsed, float(cpu), work * self.tasks, (before, after), kernel
        )

    def metg(self, threshold: float = 0.5) -> float:
        """The true value, by bisection on the kernel's time."""
        low, high = 1e-9, 1e-1  # seconds of kernel time
        for _ in range(40):
            kernel = (low * high) ** 0.5
            efficient = self.tasks * kernel / self.cores / self.elapsed(kernel) >= threshold
            low, high = (low, kernel) if efficient else (kernel, high)
        return self.elapsed(high) * self.cores / self.tasks

    def _disturbed(self) -> float:
        """Relative speed of a slot."""
        stalled = self._random.random() < self.stall_probability
        return float(np.exp(self._random.normal(0, self.noise)) / (1 + self.stall * stalled))
