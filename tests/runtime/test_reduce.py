"""Reduction kernels against NumPy's ufuncs, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burnish import _native

reduce = _native.reduce
isp = _native.ispace

UFUNCS = {
    "+": np.add,
    "*": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
}
BOOL_AND_INTEGERS = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
FLOATS = ["f2", "f4", "f8"]
COMPLEX = ["c8", "c16"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, -np.nan, 6e-8, -6e-8, 65504.0, 1e-5, 65519.0, 3.4e38, 1e300]


def raw(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)


def type_args(array: np.ndarray, inner: int = 1) -> tuple[int, int, int]:
    return array.dtype.num, array.dtype.itemsize, inner


def random_values(dtype: str, n: int, random: np.random.Generator) -> np.ndarray:
    """Random bit patterns mixed with the values at which implementations differ."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return random.random(n) < 0.5
    bits = np.frombuffer(random.bytes(n * kind.itemsize), dtype=kind).copy()
    if kind.kind in "iu":
        info = np.iinfo(kind)
        ends = np.array([info.min, info.max, 0, 1, info.max - 1], dtype=kind)
        return np.where(random.random(n) < 0.3, random.choice(ends, n), bits)
    real = bits.view(f"f{kind.itemsize // 2}") if kind.kind == "c" else bits
    with np.errstate(over="ignore"):
        special = np.array(SPECIAL).astype(real.dtype)
    moderate = random.normal(size=real.size).astype(real.dtype)
    pick = random.integers(0, 3, real.size)
    real[...] = np.choose(pick, [real, random.choice(special, real.size), moderate])
    quiet(real)
    return real.view(kind)


def quiet(real: np.ndarray) -> None:
    """Makes signalling NaNs quiet: whether an operation does so depends on the compiler, in NumPy too."""
    with np.errstate(invalid="ignore"):
        real[np.isnan(real)] += real.dtype.type(0)


def native_fold(op: str, dst: np.ndarray, src: np.ndarray) -> np.ndarray:
    out = dst.copy()
    reduce.fold(op, *type_args(dst), raw(out), raw(src))
    return out


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.array_equal(raw(a), raw(b)))


def complex_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The unfused product, from NumPy's real operations."""
    out = np.empty_like(a)
    out.real = a.real * b.real - a.imag * b.imag
    out.imag = a.real * b.imag + a.imag * b.real
    return out


def expected_fold(op: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        if op == "*" and a.dtype.kind == "c":
            return complex_product(a, b)
        return UFUNCS[op](a, b)


@pytest.mark.parametrize("n", [0, 1, 7, 4096])
@pytest.mark.parametrize("op", UFUNCS)
@pytest.mark.parametrize("dtype", BOOL_AND_INTEGERS)
def test_fold_of_integers(dtype: str, op: str, n: int) -> None:
    random = np.random.default_rng(n)
    a, b = random_values(dtype, n, random), random_values(dtype, n, random)
    assert same_bits(native_fold(op, a, b), expected_fold(op, a, b))


@pytest.mark.parametrize("n", [1, 7, 20_000])
@pytest.mark.parametrize("op", ["+", "*", "min", "max"])
@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
def test_fold_of_floats(dtype: str, op: str, n: int) -> None:
    random = np.random.default_rng(n)
    a, b = random_values(dtype, n, random), random_values(dtype, n, random)
    mine, theirs = native_fold(op, a, b), expected_fold(op, a, b)
    if op in ("+", "*"):
        # Which payload a NaN result carries is not defined by IEEE 754: compare that it is one.
        real = f"f{a.dtype.itemsize // 2}" if a.dtype.kind == "c" else dtype
        x, y = mine.view(real), theirs.view(real)
        assert np.array_equal(np.isnan(x), np.isnan(y))
        assert same_bits(x[~np.isnan(x)], y[~np.isnan(y)])
    else:
        assert same_bits(mine, theirs)


@pytest.mark.parametrize("op", ["+", "*", "min", "max"])
def test_fold_of_every_half_with_a_few(op: str) -> None:
    """All 65536 halves on one side: covers every conversion and its rounding."""
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    quiet(every)
    for value in [0.0, -0.0, 1.0, -1.0, 3.0, 1 / 3, 6e-8, 1000.0, 65504.0, np.inf, -np.inf, np.nan, 2**-14, 0.49976]:
        other = np.full_like(every, value)
        for a, b in ((every, other), (other, every)):
            mine, theirs = native_fold(op, a, b), expected_fold(op, a, b)
            assert np.array_equal(np.isnan(mine), np.isnan(theirs))
            numbers = ~np.isnan(mine)
            assert same_bits(mine[numbers], theirs[numbers])


def test_complex_product_is_numpys_up_to_fusing() -> None:
    random = np.random.default_rng(5)
    a, b = (random.normal(size=2000).view("c16") for _ in range(2))
    np.testing.assert_allclose(native_fold("*", a, b), a * b, rtol=4e-16, atol=4e-16)


@pytest.mark.parametrize("dtype", BOOL_AND_INTEGERS + FLOATS + COMPLEX)
@pytest.mark.parametrize("op", UFUNCS)
def test_identity_changes_no_bit(dtype: str, op: str) -> None:
    values = random_values(dtype, 5000, np.random.default_rng(0))
    if op in "&|" and dtype in FLOATS + COMPLEX:
        return
    if op == "*" and dtype in COMPLEX:  # (a + bi)(1 + 0i) turns -0 into 0 and inf into NaN, in NumPy as well
        values = values[np.isfinite(values) & (values.real != 0) & (values.imag != 0)]
    identity = np.empty_like(values)
    reduce.fill_identity(op, *type_args(values), raw(identity))
    assert same_bits(native_fold(op, values, identity), values)
    assert np.array_equal(native_fold(op, identity, values), values, equal_nan=dtype not in BOOL_AND_INTEGERS)


def test_operators_that_numpy_does_not_define_are_refused() -> None:
    for dtype in BOOL_AND_INTEGERS + FLOATS + COMPLEX + ["M8[s]", "g", "O", "S3"]:
        array = np.zeros(2, dtype=dtype)
        for op, ufunc in UFUNCS.items():
            num, size, _ = type_args(array)
            if dtype in BOOL_AND_INTEGERS + FLOATS + COMPLEX:
                try:
                    ufunc(array, array)
                    defined = True
                except TypeError:
                    defined = False
            else:
                defined = False  # not a number of fixed size
            assert reduce.defined(op, num, size) == defined
    with pytest.raises(ValueError, match="not defined on NumPy type number 12"):
        reduce.fold("&", 12, 8, 1, np.zeros(8, np.uint8), np.zeros(8, np.uint8))
    with pytest.raises(ValueError, match="no reduction is called 'xor'"):
        reduce.defined("xor", 7, 8)


@st.composite
def subset_runs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A whole, a part of it (linear positions of both), and the native runs between them."""
    n = draw(st.integers(1, 60))
    whole = np.array(sorted(draw(st.sets(st.integers(0, n - 1)))), dtype=np.int64)
    part = np.array([x for x in whole if draw(st.booleans())], dtype=np.int64)
    spaces = [isp.points([0], [n], v) for v in (whole, part)]
    return whole, part, isp.runs(*spaces)


def pattern(shape: tuple[int, ...], dtype: Any, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)


@settings(deadline=None, max_examples=100)
@given(subset_runs(), st.sampled_from(["i1", "i2", "f4", "f8", "c16", "u1"]), st.sampled_from([1, 3]))
def test_gather_scatter_and_fold_by_runs(case: tuple[np.ndarray, ...], dtype: str, inner: int) -> None:
    whole, part, runs = case
    root = pattern((60, inner), dtype, 1)
    packed = pattern((whole.size, inner), dtype, 2)
    where = np.searchsorted(whole, part)
    point_bytes = root.itemsize * inner

    gathered = packed.copy()
    reduce.gather_runs(raw(gathered), raw(root), runs, point_bytes)
    expected = packed.copy()
    expected[where] = root[part]
    assert same_bits(gathered, expected)

    scattered = root.copy()
    reduce.scatter_runs(raw(scattered), raw(packed), runs, point_bytes)
    expected = root.copy()
    expected[part] = packed[where]
    assert same_bits(scattered, expected)

    folded = root.copy()
    reduce.fold_runs("+", *type_args(root, inner), raw(folded), raw(packed), runs)
    expected = root.copy()
    expected[part] += packed[where]
    assert same_bits(folded, expected)


def test_long_runs_are_copied_whole() -> None:
    root = pattern((5000,), "f8", 3)
    runs = np.array([[0, 100, 4000], [4000, 4500, 1]], dtype=np.int64)
    packed = np.zeros(4001)
    reduce.gather_runs(raw(packed), raw(root), runs, 8)
    assert same_bits(packed, np.append(root[100:4100], root[4500]))
    back = np.zeros(5000)
    reduce.scatter_runs(raw(back), raw(packed), runs, 8)
    assert np.array_equal(np.flatnonzero(back), np.flatnonzero(np.where(np.isin(np.arange(5000), np.append(np.arange(100, 4100), 4500)), root, 0)))  # fmt: skip


def test_runs_outside_the_arrays_are_refused() -> None:
    for run in ([0, 0, 3], [1, 0, 2], [-1, 0, 1], [0, 3, 2]):
        with pytest.raises(IndexError, match="leaves its array"):
            reduce.gather_runs(np.zeros(16, np.uint8), np.zeros(32, np.uint8), np.array([run]), 8)
