"""What a result is known by, never claimed above its strength."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Strength = Literal["proved", "checked", "tested", "measured"]


@dataclass(frozen=True)
class Evidence:
    """One claim and how it is known.

    ``proved``: a decision procedure or exact arithmetic said so, re-checkable. ``checked``: verified on every case of
    a finite set. ``tested``: on n random or given cases. ``measured``: a figure, with how it was taken.
    """

    claim: str
    strength: Strength
    method: str
    detail: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.strength}: {self.claim} ({self.method})"
