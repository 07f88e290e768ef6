"""Evidence: four strengths, nothing else; a record that survives JSON."""

import json

import pytest

from burnish.core.errors import BurnishError
from burnish.core.evidence import STRENGTHS, Evidence


def test_strengths_are_those_of_the_design() -> None:
    assert STRENGTHS == ("proved", "checked", "tested", "measured")


def test_text_starts_with_the_strength() -> None:
    assert str(Evidence("a == b", "tested", "200 random programs")) == "tested: a == b (200 random programs)"


def test_unknown_strength_is_refused() -> None:
    with pytest.raises(BurnishError, match="'certain' is not one of proved, checked, tested, measured"):
        Evidence("a", "certain", "b")  # type: ignore[arg-type]


def test_hashable_although_it_holds_a_mapping() -> None:
    assert len({Evidence("a", "proved", "z3", {"n": 1}), Evidence("a", "proved", "z3", {"n": 1})}) == 1


def test_round_trip_through_json() -> None:
    evidence = Evidence("a == b", "checked", "all 16 cases", {"cases": 16, "seed": 0})
    assert Evidence.from_dict(json.loads(json.dumps(evidence.as_dict()))) == evidence


@pytest.mark.parametrize("record", [{}, {"claim": "a"}, {"claim": "a", "strength": "sure", "method": "m"}])
def test_bad_records_are_one_clear_error(record: dict[str, str]) -> None:
    with pytest.raises(BurnishError):
        Evidence.from_dict(record)
