"""Native array kernels against NumPy: loops called without the GIL on foreign threads, reductions, random blocks."""

from __future__ import annotations

import ctypes
from itertools import pairwise
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from burnish import _native

kernels = _native.array

NUMERIC = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "c8", "c16"]
BINARY = [
    np.add, np.subtract, np.multiply, np.divide, np.floor_divide, np.remainder, np.power, np.minimum, np.maximum, np.fmin,
    np.fmax, np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.logical_and, np.logical_or,
    np.logical_xor, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift, np.arctan2, np.hypot,
    np.copysign,
]  # fmt: skip
UNARY = [
    np.negative, np.positive, np.absolute, np.sqrt, np.square, np.reciprocal, np.exp, np.expm1, np.exp2, np.log, np.log2,
    np.log10, np.log1p, np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.sinh, np.cosh, np.tanh, np.floor,
    np.ceil, np.trunc, np.rint, np.sign, np.isnan, np.isinf, np.isfinite, np.signbit, np.logical_not, np.invert,
    np.conjugate, np.cbrt,
]  # fmt: skip


def resolved(ufunc: np.ufunc, *inputs: np.dtype[Any]) -> tuple[np.dtype[Any], ...] | None:
    try:
        return ufunc.resolve_dtypes((*inputs, *[None] * ufunc.nout))
    except TypeError:
        return None


def numbers(dtypes: tuple[np.dtype[Any], ...]) -> list[int]:
    return [d.num for d in dtypes]


def values(rng: np.random.Generator, dtype: np.dtype[Any], n: int) -> NDArray[Any]:
    """Mixed magnitudes and signs, with the special values of the type."""
    if dtype.kind in "fc":
        x = rng.standard_normal(n) * 10.0 ** rng.integers(-3, 4, n)
        x[: 6 % n] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0][: 6 % n]
        rng.shuffle(x)
        if dtype.kind == "f":
            return x.astype(dtype)
        both = np.empty(n, dtype)
        both.real, both.imag = x, rng.permutation(x)
        return both
    if dtype.kind == "b":
        return rng.random(n) < 0.5
    return rng.integers(0, 256, (n, dtype.itemsize), dtype="u1").view(dtype).ravel()


def assert_same_bits(got: NDArray[Any], expected: NDArray[Any]) -> None:
    """Bitwise, except that a NaN may be any NaN (x86 takes the payload from whichever operand comes first)."""
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)
    if got.dtype.kind == "f":
        numbers = ~np.isnan(got)
        np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(expected)[numbers])


def all_cases() -> list[tuple[np.ufunc, tuple[np.dtype[Any], ...]]]:
    cases = []
    for ufunc in UNARY + BINARY:
        for char in NUMERIC:
            inputs = (np.dtype(char),) * ufunc.nin
            dtypes = resolved(ufunc, *inputs)
            if dtypes and all(d.kind in "biufc" and d.char not in "eg" for d in dtypes):
                cases.append((ufunc, dtypes))
    return cases


class CallInfo(ctypes.Structure):
    """The head of NumPy's ufunc_call_info (see numpy.ufunc._get_strided_loop)."""

    _fields_ = [
        ("strided_loop", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("auxdata", ctypes.c_void_p),
        ("requires_pyapi", ctypes.c_byte),
        ("no_floatingpoint_errors", ctypes.c_byte),
    ]


def test_numpy_says_that_numeric_loops_need_no_interpreter() -> None:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    for ufunc, dtypes in all_cases():
        _, capsule = ufunc._resolve_dtypes_and_context(dtypes)
        ufunc._get_strided_loop(capsule)
        info = CallInfo.from_address(pointer(capsule, b"numpy_1.24_ufunc_call_info"))
        assert not info.requires_pyapi, (ufunc, dtypes)
        assert kernels.has_loop(ufunc, numbers(dtypes)), (ufunc, dtypes)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("n", [1, 3, 1000])
@pytest.mark.parametrize("step", [1, 3])
def test_every_loop_equals_the_ufunc(n: int, step: int) -> None:
    rng = np.random.default_rng(n)
    for ufunc, dtypes in all_cases():
        inputs = [values(rng, d, n * step)[::step] for d in dtypes[: ufunc.nin]]
        if ufunc.__name__ == "power" and dtypes[0].kind in "iu":
            inputs[1] = np.abs(inputs[1] % 5).astype(dtypes[1])  # NumPy refuses negative integer powers
        expected = ufunc(*inputs)
        got = np.empty_like(expected)
        kernels.apply(ufunc, numbers(dtypes), [*inputs, got])
        assert_same_bits(got, expected)


@st.composite
def strided_views(draw: st.DrawFn, shape: tuple[int, ...], dtype: str = "f8") -> NDArray[Any]:
    """An array of the given shape with random axis order, steps, directions and broadcast axes."""
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, 2, -1, 0])) for _ in shape]
    stored = [1 if s == 0 else n * abs(s) for n, s in zip(shape, steps, strict=True)]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    base = values(rng, np.dtype(dtype), max(1, int(np.prod(stored))))[: int(np.prod(stored))]
    base = base.reshape([stored[k] for k in order]).transpose(np.argsort(order))
    view = base[tuple(slice(None, None, s or 1) for s in steps)]
    return np.broadcast_to(view, shape)


SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=7)


@given(st.data(), SHAPES)
@settings(max_examples=200, deadline=None)
def test_strided_broadcast_operands(data: st.DataObject, shape: tuple[int, ...]) -> None:
    a, b = data.draw(strided_views(shape)), data.draw(strided_views(shape))
    got = np.empty(shape)
    with np.errstate(all="ignore"):
        expected = np.multiply(a, b, out=np.empty(shape))
    kernels.apply(np.multiply, numbers((a.dtype,) * 3), [a, b, got])
    assert_same_bits(got, expected)


@given(st.data(), SHAPES, st.sampled_from(NUMERIC), st.sampled_from(NUMERIC))
@settings(max_examples=200, deadline=None)
def test_operands_of_other_types_are_converted(data: st.DataObject, shape: tuple[int, ...], one: str, two: str) -> None:
    a, b = data.draw(strided_views(shape, one)), data.draw(strided_views(shape, two))
    dtypes = resolved(np.add, a.dtype, b.dtype)
    assert dtypes is not None
    got = np.empty(shape, dtypes[2])
    kernels.apply(np.add, numbers(dtypes), [a, b, got])
    with np.errstate(all="ignore"):
        assert_same_bits(got, np.asarray(a + b).reshape(shape))


@pytest.mark.filterwarnings("ignore")
@given(st.data(), SHAPES, st.sampled_from(NUMERIC), st.sampled_from(NUMERIC))
@settings(max_examples=200, deadline=None)
def test_copy_converts_like_astype(data: st.DataObject, shape: tuple[int, ...], one: str, two: str) -> None:
    a = data.draw(strided_views(shape, one))
    if np.dtype(one).kind in "fc" and np.dtype(two).kind in "iu":
        a = np.where(np.isfinite(a) & (np.abs(a) < 100), np.abs(a), 1).astype(one)  # C leaves the others undefined
    got = np.empty(shape, two)
    kernels.copy(a, got)
    assert_same_bits(got, a.astype(two))


def tree(ufunc: np.ufunc, x: NDArray[Any], leaf: int) -> Any:
    """The documented tree over axis 0, slowly: leaves of a fixed length, then the leaf results in the same way."""
    if len(x) <= leaf:
        if x.ndim == 1:  # NumPy's own loop over a contiguous run, started with the first element
            return ufunc.reduce(np.ascontiguousarray(x[1:]), initial=x[0]) if len(x) > 1 else x[0]
        total = x[0].copy()
        for row in x[1:]:
            total = ufunc(total, row)
        return total
    return tree(ufunc, np.array([tree(ufunc, x[k : k + leaf], leaf) for k in range(0, len(x), leaf)]), leaf)


LEAF_ELEMENTS, LEAF_ROWS = 2048, 64


@given(
    st.data(), st.lists(st.integers(1, 40), min_size=1, max_size=4), st.sampled_from([np.add, np.minimum, np.multiply])
)
@settings(max_examples=150, deadline=None)
@pytest.mark.filterwarnings("ignore")
def test_reductions_follow_the_tree(data: st.DataObject, sides: list[int], ufunc: np.ufunc) -> None:
    shape = tuple(sides) if np.prod(sides) < 40_000 else (sides[0],)
    a = data.draw(strided_views(shape))
    first = data.draw(st.integers(0, a.ndim - 1))
    last = data.draw(st.integers(first + 1, a.ndim))
    got = np.empty(shape[:first] + shape[last:])
    kernels.reduce(ufunc, a.dtype.num, a, first, last, got)
    outer, length = int(np.prod(shape[:first])), int(np.prod(shape[first:last]))
    flat = a.reshape(outer, length, *([int(np.prod(shape[last:]))] if last < a.ndim else []))
    leaf = LEAF_ROWS if last < a.ndim else LEAF_ELEMENTS
    expected = np.array([tree(ufunc, x, leaf) for x in flat]).reshape(got.shape)
    assert_same_bits(got, expected)


@pytest.mark.parametrize("shape", [(100_000,), (300, 7, 9), (5000, 3)])
def test_leaf_ranges_can_be_done_apart(shape: tuple[int, ...]) -> None:
    a = np.random.default_rng(0).standard_normal(shape)
    last = 1 if shape == (5000, 3) else a.ndim
    rows = shape[last:]
    whole = np.empty(rows)
    kernels.reduce(np.add, a.dtype.num, a, 0, last, whole)
    n = kernels.leaves(np.add, a.dtype.num, a, last)
    for cuts in ([0, n], [0, n // 3, n], [0, 1, n - 1, n]):
        partials = np.empty((n, *rows))
        for begin, end in pairwise(cuts):
            kernels.reduce_leaves(np.add, a.dtype.num, a, last, begin, end, partials[begin:end])
        combined = np.empty(rows)
        kernels.reduce(np.add, a.dtype.num, partials, 0, 1, combined)
        assert_same_bits(combined, whole)
    np.testing.assert_allclose(whole, a.sum(axis=tuple(range(last))), rtol=1e-10)


def test_small_integers_and_booleans_are_summed_in_64_bits() -> None:
    a = np.random.default_rng(0).integers(-100, 100, (50, 60), dtype="i1")
    got = np.empty(60, "i8")
    kernels.reduce(np.add, got.dtype.num, a, 0, 1, got)
    np.testing.assert_array_equal(got, a.sum(axis=0))
    total = np.empty((), "i8")
    kernels.reduce(np.add, got.dtype.num, a.T > 0, 0, 2, total)
    assert total == (a > 0).sum()


KINDS = {"uniform": 0, "normal": 1, "integers": 2}
BLOCK = 1024


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_random_blocks_are_numpys_generator_at_a_counter(key0: int, key1: int, call: int, block: int) -> None:
    n = 2 * BLOCK + 17
    for kind, draw in [
        ("uniform", lambda g, m: g.random(m)),
        ("normal", lambda g, m: g.standard_normal(m)),
        ("integers", lambda g, m: g.integers(-5, 1000, m)),
    ]:
        out = np.empty(n, "i8" if kind == "integers" else "f8")
        kernels.random((key0, key1), call, KINDS[kind], -5, 1004, block * BLOCK, out)
        for start in range(0, n, BLOCK):
            counter = np.array([0, 0, block + start // BLOCK, call], dtype="u8")
            bits = np.random.Philox(key=np.array([key0, key1], dtype="u8"), counter=counter)
            part = out[start : start + BLOCK]
            assert_same_bits(part, draw(np.random.Generator(bits), len(part)))


def test_random_chunks_do_not_matter() -> None:
    whole, parts = np.empty(5 * BLOCK), np.empty(5 * BLOCK)
    kernels.random((1, 2), 3, KINDS["normal"], 0, 0, 0, whole)
    for begin, end in ((0, BLOCK), (BLOCK, 4 * BLOCK), (4 * BLOCK, 5 * BLOCK)):
        kernels.random((1, 2), 3, KINDS["normal"], 0, 0, begin, parts[begin:end])
    assert_same_bits(parts, whole)
