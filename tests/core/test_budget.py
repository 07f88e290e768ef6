"""Budgets end; durations parse."""

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish.core.budget import Budget, parse_duration
from burnish.core.errors import BurnishError


def test_without_limits_never_spent() -> None:
    budget = Budget()
    budget.step(10**9)
    assert not budget.spent() and budget.left() == math.inf


@given(st.integers(1, 50), st.lists(st.integers(1, 20), max_size=10))
def test_spent_exactly_when_the_steps_are_done(limit: int, steps: list[int]) -> None:
    budget = Budget(steps=limit)
    for n in steps:
        budget.step(n)
    assert budget.steps_done == sum(steps)
    assert budget.spent() == (sum(steps) >= limit)


def test_time_runs_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    budget = Budget(seconds=10)
    now[0] = 500.0  # made early, started late: waiting costs nothing
    assert budget.start() is budget and budget.left() == 10
    now[0] = 504.0
    assert budget.start().elapsed() == 4 and budget.left() == 6 and not budget.spent()
    now[0] = 511.0
    assert budget.left() == -1 and budget.spent()


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf])
def test_bad_seconds(seconds: float) -> None:
    with pytest.raises(BurnishError):
        Budget(seconds=seconds)


@pytest.mark.parametrize("steps", [0, -3])
def test_bad_steps(steps: int) -> None:
    with pytest.raises(BurnishError):
        Budget(steps=steps)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("250ms", 0.25), ("10m", 600), ("1.5h", 5400), (".5s", 0.5), (" 3 m ", 180), ("2.", 2)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds, rel=1e-12)


@given(st.integers(1, 10**6), st.sampled_from([("ms", 1000), ("s", 1), ("m", 1 / 60), ("h", 1 / 3600)]))
def test_units_are_multiples(number: int, unit: tuple[str, float]) -> None:
    assert parse_duration(f"{number}{unit[0]}") == pytest.approx(number / unit[1], rel=1e-12)


@pytest.mark.parametrize("text", ["", "s", "ten", "10 minutes", "-5", "nan", "inf", "1e400", "0", "0ms", "1h30m", "٣s"])
def test_other_text_is_one_clear_error(text: str) -> None:
    with pytest.raises(BurnishError) as caught:
        parse_duration(text)
    assert "\n" not in str(caught.value) and f"'{text}'" in str(caught.value)


@given(st.text(max_size=12))
def test_any_text_parses_or_is_refused(text: str) -> None:
    with contextlib.suppress(BurnishError):
        assert 0 < parse_duration(text) < math.inf
