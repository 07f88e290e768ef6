"""How long an anytime computation may go on."""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass, field

from burnish.core.errors import BurnishError


@dataclass
class Budget:
    """Limits in wall-clock seconds and in steps, and the seed of everything random.

    ``None`` means no limit. The clock starts with :meth:`start` or with the first question about time.

    Raises :class:`BurnishError` for a limit that is not positive and finite.
    """

    seconds: float | None = None
    steps: int | None = None
    seed: int = 0
    _start: float | None = field(default=None, init=False, repr=False, compare=False)
    _steps: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.seconds is not None and not 0 < self.seconds < math.inf:
            raise BurnishError(f"a budget of {self.seconds} seconds is not a positive, finite time")
        if self.steps is not None and self.steps <= 0:
            raise BurnishError(f"a budget of {self.steps} steps is not positive")

    def start(self) -> Budget:
        """Start the clock now, unless it runs already."""
        if self._start is None:
            self._start = time.monotonic()
        return self

    def elapsed(self) -> float:
        """Seconds since the start."""
        self.start()
        assert self._start is not None
        return time.monotonic() - self._start

    def left(self) -> float:
        """Seconds left, negative once overdrawn; infinite without a time limit."""
        return math.inf if self.seconds is None else self.seconds - self.elapsed()

    def step(self, n: int = 1) -> None:
        """Count ``n`` steps of work."""
        self._steps += n

    @property
    def steps_done(self) -> int:
        """Steps counted so far."""
        return self._steps

    def spent(self) -> bool:
        """True once a limit is reached."""
        return self.left() <= 0 or (self.steps is not None and self._steps >= self.steps)


_UNITS = {"ms": 1e-3, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*(ms|s|m|h|)\s*", re.ASCII)


def parse_duration(text: str) -> float:
    """Seconds from ``90``, ``90s``, ``250ms``, ``10m`` or ``1.5h``.

    Raises :class:`BurnishError` for anything else, zero included.

    >>> parse_duration("10m")
    600.0
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise BurnishError(f"'{text}' is not a duration", hint="write 90, 90s, 250ms, 10m or 1.5h")
    seconds = float(match[1]) * _UNITS[match[2]]
    if not 0 < seconds < math.inf:
        raise BurnishError(f"duration '{text}' is not a positive, finite time")
    return seconds
