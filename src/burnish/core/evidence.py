"""What a result is known by, never claimed above its strength."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from burnish.core.errors import BurnishError

Strength = Literal["proved", "checked", "tested", "measured"]
STRENGTHS: tuple[Strength, ...] = get_args(Strength)


@dataclass(frozen=True)
class Evidence:
    """One claim and how it is known.

    ``strength`` is one of

    * ``proved``: a decision procedure or exact arithmetic said so; re-checkable.
    * ``checked``: verified on every case of a finite set.
    * ``tested``: on n random or given cases (say how many in ``method``).
    * ``measured``: a figure, with how it was taken.

    ``method`` says in a few words how; ``detail`` holds what is needed to do it again (counts, seeds, files, digests)
    as values that JSON can hold.
    """

    claim: str
    strength: Strength
    method: str
    detail: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.strength not in STRENGTHS:
            raise BurnishError(f"evidence strength '{self.strength}' is not one of {', '.join(STRENGTHS)}")

    def __str__(self) -> str:
        return f"{self.strength}: {self.claim} ({self.method})"

    def as_dict(self) -> dict[str, Any]:
        """The four fields as a plain dictionary, for JSON."""
        return {"claim": self.claim, "strength": self.strength, "method": self.method, "detail": dict(self.detail)}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Evidence:
        """The inverse of :meth:`as_dict`; raises :class:`BurnishError` for a record that is no evidence."""
        try:
            return cls(record["claim"], record["strength"], record["method"], dict(record.get("detail", {})))
        except (KeyError, TypeError, ValueError) as error:
            raise BurnishError(f"not an evidence record: {dict(record)!r}") from error
