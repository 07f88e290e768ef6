"""Values: plain for JSON, short for people."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish.report.values import is_number, plain, short

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(anything)
def test_plain_values_survive_strict_json(value: object) -> None:
    made = plain(value)
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    assert plain(made) == made


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_stay_exact(value: float) -> None:
    assert plain(np.float64(value)) == value and type(plain(np.float64(value))) is float


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int32(3), 3),
        (np.bool_(True), True),
        (np.arange(4).reshape(2, 2), [[0, 1], [2, 3]]),
        (np.array(2.5), 2.5),
        ((1, {2}), [1, [2]]),
        ({1: None}, {"1": None}),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (Path("a/b"), "a/b"),
    ],
)
def test_plain(value: object, expected: object) -> None:
    assert plain(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "–"),
        (True, "yes"),
        (np.bool_(False), "no"),
        (1234567, "1,234,567"),
        (0.0, "0"),
        (3.14159265, "3.142"),
        (0.00123456, "0.001235"),
        (12345.678, "12,346"),
        (1.5e12, "1.500e+12"),
        (-2.5e-7, "-2.500e-07"),
        (math.nan, "nan"),
        ([1, 2.5, "x"], "1, 2.5, x"),
        ("a\x1b[31mb", "a\ufffd[31mb"),
    ],
)
def test_short(value: object, expected: str) -> None:
    assert short(value) == expected


@given(st.floats(-1e300, 1e300))
def test_short_numbers_are_within_four_digits(value: float) -> None:
    """Oracle: reading the text back."""
    assert float(short(value).replace(",", "")) == pytest.approx(value, rel=5.1e-4, abs=0)


def test_numbers_are_told_from_truth_values() -> None:
    assert is_number(np.float32(1)) and is_number(3) and not is_number(True) and not is_number("3")
