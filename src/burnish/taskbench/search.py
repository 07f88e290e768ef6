"""Where to measure next: bounds by doubling, geometric bisection, then repetitions at the two ends of the bracket."""

from __future__ import annotations

import math

from burnish.taskbench.estimate import Estimate, Mode, Sample, bracket, estimate

FIRST = 256
LARGEST = 1 << 40
CLOSE = 1.25  # ratio of the ends of a bracket that is not cut further
LEAST_REPETITIONS = 6


class Search:
    """Proposes iteration counts and takes samples, until the interval is within ``target`` or ``most`` samples exist.

    Several searches can be interleaved; none knows the clock.
    """

    def __init__(
        self, threshold: float = 0.5, mode: Mode = "wall", target: float = 0.10, most: int = 80, seed: int = 0
    ) -> None:
        self.threshold, self.mode, self.target, self.most, self.seed = threshold, mode, target, most, seed
        self.samples: list[Sample] = []

    def add(self, sample: Sample) -> None:
        """Take note of a measured slot."""
        self.samples.append(sample)

    def estimate(self) -> Estimate:
        """What the samples say so far."""
        return estimate(self.samples, self.threshold, self.mode, seed=self.seed)

    def propose(self) -> int | None:
        """The next iteration count to measure; None when done."""
        if not self.samples:
            return FIRST
        if len(self.samples) >= self.most:
            return None
        current = estimate(self.samples, self.threshold, self.mode, resamples=0)
        points = [(point.iterations, point.efficiency) for point in current.curve]
        ends = bracket(points, self.threshold)
        if ends is None:
            return self._outwards(points)
        low, high = ends
        if high > low + 1 and high / low > CLOSE:
            return round(math.sqrt(low * high))
        repetitions = {point.iterations: point.repetitions for point in current.curve}
        end = min(ends, key=lambda n: repetitions[n])
        if repetitions[end] >= LEAST_REPETITIONS and self.estimate().half_width <= self.target:
            return None
        return end

    def _outwards(self, points: list[tuple[int, float]]) -> int | None:
        if points[-1][1] < self.threshold:  # none is above, or the last one is not
            n, efficiency = points[-1]
            factor = (
                4.0 if efficiency <= 0 else 1.5 * (1 - efficiency) / efficiency * self.threshold / (1 - self.threshold)
            )
            larger = math.ceil(n * min(64.0, max(2.0, factor)))
            return larger if larger <= LARGEST else None
        n = points[0][0]
        return max(1, n // 4) if n > 1 else None
