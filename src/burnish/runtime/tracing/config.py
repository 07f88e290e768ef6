"""Settings of automatic tracing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from burnish.core.errors import BurnishError


@dataclass(frozen=True)
class TraceConfig:
    """How repeated launches are recognized.

    algorithm: ``"burnish"``, the published ``"apophenia"`` (recognition only: :func:`simulate`), or ``"off"``.
    mode: ``"eager"`` issues every launch at once; ``"deferred"`` holds launches back while a match is open (simulation).
    history: ops that the finder looks back over. ruler: ops between finder jobs. min_length, max_length: of a trace, in
    ops. deterministic: finder jobs run at once on the launching thread. budget: share of one core for them otherwise.
    parametric: traces match up to renaming of regions. memory: bytes of all templates.

    Raises BurnishError naming the field and its range.
    """

    algorithm: Literal["burnish", "apophenia", "off"] = "burnish"
    mode: Literal["eager", "deferred"] = "eager"
    history: int = 8192
    ruler: int = 64
    min_length: int = 4
    max_length: int | None = None
    deterministic: bool = False
    budget: float = 0.02
    parametric: bool = True
    memory: int = 64 << 20

    def __post_init__(self) -> None:
        for name, allowed in (("algorithm", ("burnish", "apophenia", "off")), ("mode", ("eager", "deferred"))):
            if getattr(self, name) not in allowed:
                raise BurnishError(
                    f"TraceConfig.{name}={getattr(self, name)!r} is none of {', '.join(map(repr, allowed))}"
                )
        self._within("history", 64, 1 << 20)
        self._within("ruler", 8, self.history)
        self._within("min_length", 1, self.history)
        if self.max_length is not None:
            self._within("max_length", self.min_length, 1 << 20)
        self._within("memory", 1 << 16, 1 << 40)
        if not 0 < self.budget <= 1:
            raise BurnishError(f"TraceConfig.budget={self.budget} must be above 0 and at most 1 (share of one core)")
        needed = self.history * 2 * 64
        if needed > self.memory:
            raise BurnishError(
                f"TraceConfig.history={self.history} needs {needed} bytes, more than memory={self.memory}"
            )

    def _within(self, name: str, low: int, high: int) -> None:
        value = getattr(self, name)
        if not isinstance(value, int) or not low <= value <= high:
            raise BurnishError(f"TraceConfig.{name}={value!r} must be an integer from {low} to {high}")
