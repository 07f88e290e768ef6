"""How long an anytime computation may go on."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from burnish.core.errors import BurnishError


@dataclass
class Budget:
    """Limits in wall-clock seconds and in steps, and the seed of everything random.

    The clock starts at the first call of :meth:`spent` or :meth:`left`. ``None`` means no limit.
    """

    seconds: float | None = None
    steps: int | None = None
    seed: int = 0
    _start: float | None = field(default=None, repr=False, compare=False)
    _steps: int = field(default=0, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.seconds is not None and not self.seconds > 0:
            raise BurnishError(f"budget of {self.seconds} seconds must be positive")
        if self.steps is not None and self.steps <= 0:
            raise BurnishError(f"budget of {self.steps} steps must be positive")

    def start(self) -> Budget:
        """Start the clock now (idempotent)."""
        if self._start is None:
            self._start = time.monotonic()
        return self

    def elapsed(self) -> float:
        """Seconds since the start."""
        self.start()
        assert self._start is not None
        return time.monotonic() - self._start

    def left(self) -> float:
        """Seconds left; infinite without a time limit."""
        return float("inf") if self.seconds is None else self.seconds - self.elapsed()

    def step(self, n: int = 1) -> None:
        """Count ``n`` steps of work."""
        self._steps += n

    def spent(self) -> bool:
        """True once a limit is reached."""
        return self.left() <= 0 or (self.steps is not None and self._steps >= self.steps)


def parse_duration(text: str) -> float:
    """Seconds from ``90``, ``90s``, ``10m``, ``1.5h``.

    >>> parse_duration("10m")
    600.0
    """
    units = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
    number, unit = text.strip(), "s"
    for suffix in ("ms", "s", "m", "h"):
        if number.endswith(suffix):
            number, unit = number[: -len(suffix)], suffix
            break
    try:
        value = float(number)
    except ValueError:
        raise BurnishError(f"'{text}' is not a duration; write 90, 90s, 10m or 1.5h") from None
    if not value > 0:
        raise BurnishError(f"duration '{text}' must be positive")
    return value * units[unit]
