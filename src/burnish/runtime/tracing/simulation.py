"""Running the recognizer over a recorded token stream."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from burnish._native import tracing as _tracing
from burnish.runtime.tracing.config import TraceConfig
from burnish.runtime.tracing.stream import TokenStream


@dataclass(frozen=True)
class SimReport:
    """What a recognizer covers of a stream.

    coverage, tail_coverage: share of ops executed by complete replays, of all and of the last quarter. warmup: first
    position from which coverage over the next max(100, n / 20) positions is at least 0.9 (separators count as covered);
    None if there is none. max_deferral: most ops held back at once. trace: per position the covering trace, or -1.
    """

    coverage: float
    tail_coverage: float
    warmup: int | None
    replays: int
    mean_length: float
    distinct: int
    analysed_tokens: int
    max_deferral: int
    trace: npt.NDArray[np.int64] = field(repr=False)


def simulate(stream: TokenStream, config: TraceConfig | None = None) -> SimReport:
    """Recognize and replay ``stream`` with finder jobs run at once; an op counts only inside a complete replay."""
    config = config or TraceConfig()
    native = _tracing.Config()
    native.algorithm = getattr(_tracing.Algorithm, config.algorithm)
    native.mode = getattr(_tracing.Mode, config.mode)
    native.history, native.ruler, native.min_length = config.history, config.ruler, config.min_length
    if config.max_length is not None:
        native.max_length = config.max_length
    native.parametric, native.deterministic = config.parametric and config.algorithm == "burnish", True
    if config.algorithm == "apophenia":  # its own published defaults
        native.history, native.ruler, native.min_length = 1000, 100, 5
    result = _tracing.simulate(stream.signatures, stream.flats, stream.separators, stream.offsets, stream.roots, native)
    raw = np.asarray(result["trace"])
    trace = np.where(raw == _tracing.NONE, -1, raw.astype(np.int64))
    covered = trace >= 0
    ops = stream.separators == 0
    n, tail = len(stream), np.arange(len(stream)) >= len(stream) - len(stream) // 4
    return SimReport(
        coverage=_share(covered, ops),
        tail_coverage=_share(covered, ops & tail),
        warmup=_warmup(covered | ~ops, n),
        replays=int(result["replays"]),
        mean_length=float(covered.sum() / result["replays"]) if result["replays"] else 0.0,
        distinct=int(result["distinct"]),
        analysed_tokens=int(result["analysed_tokens"]),
        max_deferral=int(result["max_deferral"]),
        trace=trace,
    )


def _share(covered: npt.NDArray[np.bool_], among: npt.NDArray[np.bool_]) -> float:
    return float(covered[among].mean()) if among.any() else 0.0


def _warmup(covered: npt.NDArray[np.bool_], n: int) -> int | None:
    window = max(100, n // 20)
    if n < window:
        return None
    sums = np.concatenate([[0], np.cumsum(covered)])
    good = np.flatnonzero(sums[window:] - sums[:-window] >= 0.9 * window)
    return int(good[0]) if good.size else None
