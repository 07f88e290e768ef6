"""From measured points to the minimum effective task granularity (METG), with an interval.

METG(e) is the smallest average task duration at which a system still reaches the fraction e of peak (Slaughter et al.,
SC 2020). Here: efficiency and granularity of each iteration count are interquartile means over repetitions; the two
counts that bracket e are interpolated (log granularity over efficiency); the interval is a bootstrap over repetitions,
widened by Student's factor for their small number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

Mode = Literal["wall", "cpu"]
Floats = npt.NDArray[np.float64]

# Two-sided 95 % quantiles of Student's t for 1..30 degrees of freedom, and of the normal distribution.
_STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_NORMAL = 1.960


@dataclass(frozen=True)
class Sample:
    """One measured slot: a run between two peak slots.

    ``elapsed`` and ``cpu`` in seconds, ``work`` in the kernel's unit, ``peaks`` the rates (work per second) of ``cores``
    plain threads before and after, ``kernel_cpu`` the CPU seconds of one kernel in those slots.
    """

    iterations: int
    steps: int
    tasks: int
    cores: int
    elapsed: float
    cpu: float
    work: float
    peaks: tuple[float, float]
    kernel_cpu: float

    @property
    def unsteady(self) -> float:
        """Relative difference of the two peaks."""
        return abs(self.peaks[0] - self.peaks[1]) / max(self.peaks)

    def efficiency(self, mode: Mode = "wall") -> float:
        """Fraction of peak; in mode ``cpu`` the kernel's share of the CPU time."""
        if mode == "cpu":
            return self.kernel_cpu * self.tasks / self.cpu
        return self.work / self.elapsed / (sum(self.peaks) / 2)

    def granularity(self, mode: Mode = "wall") -> float:
        """Core seconds per task; in mode ``cpu`` CPU seconds per task."""
        return self.cpu / self.tasks if mode == "cpu" else self.elapsed * self.cores / self.tasks


@dataclass(frozen=True)
class Point:
    """All repetitions of one iteration count."""

    iterations: int
    repetitions: int
    efficiency: float
    granularity: float
    error: float  # standard error of the efficiency; infinite for one repetition


@dataclass(frozen=True)
class Estimate:
    """METG in seconds with its 95 % interval, or why there is none; ``falls`` lists where efficiency is not monotone."""

    value: float | None
    low: float | None
    high: float | None
    curve: tuple[Point, ...]
    falls: tuple[str, ...]
    reason: str = ""

    @property
    def half_width(self) -> float:
        """Relative half width of the interval; infinite without one."""
        if self.value is None or self.low is None or self.high is None:
            return math.inf
        return max(self.high / self.value, self.value / self.low) - 1


def midmean(values: Floats, axis: int = -1) -> Floats:
    """Mean of the middle half: outliers on either side do not count. The median for fewer than four values."""
    ordered = np.sort(values, axis=axis)
    n = ordered.shape[axis]
    cut = (n - 1) // 2 if n < 4 else n // 4
    middle = ordered.take(range(cut, n - cut), axis=axis)
    return np.asarray(middle.mean(axis=axis))


def bracket(points: Sequence[tuple[int, float]], threshold: float) -> tuple[int, int] | None:
    """The last iteration count below the threshold and the next one, which is above."""
    below = [n for n, efficiency in points if efficiency < threshold]
    above = [n for n, efficiency in points if efficiency >= threshold and (not below or n > max(below))]
    return (max(below), min(above)) if below and above else None


def interpolate(low: tuple[float, float], high: tuple[float, float], threshold: float) -> float:
    """Granularity at the threshold between two (efficiency, granularity), on a straight line in log granularity."""
    share = (threshold - low[0]) / (high[0] - low[0]) if high[0] > low[0] else 1.0
    return math.exp(math.log(low[1]) + share * (math.log(high[1]) - math.log(low[1])))


def estimate(
    samples: Sequence[Sample], threshold: float = 0.5, mode: Mode = "wall", resamples: int = 200, seed: int = 0
) -> Estimate:
    """METG(threshold) from ``samples`` of one system on one graph; without an interval if ``resamples`` is 0."""
    groups = _groups(samples, mode)
    curve = tuple(_point(n, group) for n, group in groups.items())
    falls = _falls(curve)
    centre = _metg({n: midmean(group) for n, group in groups.items()}, threshold)
    if centre is None:
        return Estimate(None, None, None, curve, falls, _why_not(curve, threshold))
    low, high = _interval(groups, threshold, centre, resamples, seed)
    return Estimate(centre, low, high, curve, falls)


def _groups(samples: Sequence[Sample], mode: Mode) -> dict[int, Floats]:
    """Per iteration count, ascending: rows of efficiencies and of granularities."""
    groups: dict[int, list[tuple[float, float]]] = {}
    for sample in samples:
        groups.setdefault(sample.iterations, []).append((sample.efficiency(mode), sample.granularity(mode)))
    return {n: np.array(groups[n]).T for n in sorted(groups)}


def _point(n: int, group: Floats) -> Point:
    efficiency, granularity = midmean(group)
    count = group.shape[1]
    error = float(group[0].std(ddof=1) / math.sqrt(count)) if count > 1 else math.inf
    return Point(n, count, float(efficiency), float(granularity), error)


def _metg(points: Mapping[int, Floats], threshold: float) -> float | None:
    ends = bracket([(n, float(point[0])) for n, point in points.items()], threshold)
    if ends is None:
        return None
    (e0, g0), (e1, g1) = points[ends[0]], points[ends[1]]
    return interpolate((float(e0), float(g0)), (float(e1), float(g1)), threshold)


def _interval(
    groups: Mapping[int, Floats], threshold: float, centre: float, resamples: int, seed: int
) -> tuple[float | None, float | None]:
    ends = bracket([(n, float(midmean(group)[0])) for n, group in groups.items()], threshold)
    assert ends is not None
    repetitions = min(groups[n].shape[1] for n in ends)
    if repetitions < 2 or resamples == 0:
        return None, None
    random = np.random.default_rng(seed)
    drawn = {n: _resampled(group, resamples, random) for n, group in groups.items()}
    values = [_metg({n: draw[:, i] for n, draw in drawn.items()}, threshold) for i in range(resamples)]
    logs = np.log([value for value in values if value is not None])
    if len(logs) < resamples // 2:
        return None, None
    lower, upper = np.quantile(logs, [0.025, 0.975])
    factor = _STUDENT[min(repetitions - 1, len(_STUDENT)) - 1] / _NORMAL * math.sqrt(repetitions / (repetitions - 1))
    middle = math.log(centre)
    return (
        math.exp(middle + min(0.0, factor * (float(lower) - middle))),
        math.exp(middle + max(0.0, factor * (float(upper) - middle))),
    )


def _resampled(group: Floats, resamples: int, random: np.random.Generator) -> Floats:
    """(2, resamples) interquartile means of repetitions drawn with replacement; pairs stay together."""
    count = group.shape[1]
    if count == 1:
        return np.repeat(group, resamples, axis=1)
    return midmean(group[:, random.integers(count, size=(resamples, count))])


def _falls(curve: Sequence[Point]) -> tuple[str, ...]:
    out = []
    for a, b in pairwise(curve):
        noise = math.hypot(a.error, b.error)
        if math.isfinite(noise) and a.efficiency - b.efficiency > max(0.05, 3 * noise):
            out.append(
                f"efficiency falls from {a.efficiency:.2f} at n={a.iterations} to {b.efficiency:.2f} at n={b.iterations}"
            )
    return tuple(out)


def _why_not(curve: Sequence[Point], threshold: float) -> str:
    if not curve:
        return "nothing was measured"
    if all(point.efficiency >= threshold for point in curve):
        first = curve[0]
        return f"efficiency is {first.efficiency:.2f} even at n={first.iterations} ({first.granularity * 1e6:.3g} us)"
    best = max(curve, key=lambda point: point.efficiency)
    return f"efficiency reaches {best.efficiency:.2f} only (n={best.iterations}, {best.granularity * 1e6:.3g} us)"
