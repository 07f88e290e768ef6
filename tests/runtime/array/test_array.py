"""bn against NumPy: random programs on every executor, and what the random programs do not reach."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import burnish.runtime.array as bn
from burnish import runtime as rt
from burnish.runtime.array import _native

from .programs import Recorder, programs

RESOURCES: list[dict[str, Any]] = [
    {"executor": "serial"},
    {"executor": "threads", "workers": 1, "trace": False},
    {"executor": "threads", "workers": 2},
    {"executor": "threads", "workers": 4, "chaos": 7},
]


@contextmanager
def started(**resources: Any) -> Iterator[None]:
    rt.start(**resources)
    try:
        yield
    finally:
        rt.stop()


def same(ours: Any, numpys: Any, context: str = "") -> None:
    x, y = np.asarray(ours), np.asarray(numpys)
    assert x.dtype == y.dtype, context
    assert x.shape == y.shape, context
    np.testing.assert_array_equal(x, y, err_msg=context)
    if x.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(x), np.signbit(y), err_msg=context)


def run_on_bn(program: Recorder) -> list[Any]:
    arrays: list[Any] = [bn.array(x) for x in program.starts]
    for statement in program.statements:
        statement(bn, arrays)
    return [np.asarray(x) for x in arrays]


@pytest.mark.parametrize("resources", RESOURCES, ids=str)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(program=programs())
def test_random_programs_equal_numpy(resources: dict[str, Any], program: Recorder) -> None:
    with np.errstate(all="ignore"), started(**resources):
        results = run_on_bn(program)
    for ours, numpys in zip(results, program.arrays, strict=True):
        same(ours, numpys, "\n".join(program.texts))


@pytest.mark.nightly
@settings(max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))
@given(program=programs(length=25), seed=st.integers(1, 1 << 30))
def test_random_programs_equal_numpy_under_chaos(program: Recorder, seed: int) -> None:
    with np.errstate(all="ignore"), started(executor="threads", workers=4, chaos=seed):
        results = run_on_bn(program)
    for ours, numpys in zip(results, program.arrays, strict=True):
        same(ours, numpys, "\n".join(program.texts))


LARGE = [(300, 301), (40_000,), (5, 20_000), (33, 65, 33), (2, 3, 4, 5000)]


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("shape", LARGE, ids=str)
def test_chunked_operations_equal_numpy(shape: tuple[int, ...], workers: int) -> None:
    x = np.random.default_rng(0).normal(size=shape)
    with started(executor="threads", workers=workers, chaos=3):
        a = bn.array(x)
        same(a * 2 + a, x * 2 + x)
        same(bn.exp(a), np.exp(x))
        same(a[::-1] - a.T.T[::2, ...][:1], x[::-1] - x[::2][:1])
        same(a.reshape(-1)[::3] * a.ravel()[::3], x.reshape(-1)[::3] * x.ravel()[::3])
        b, y = a.copy(), x.copy()
        b[1:] += b[:-1]
        y[1:] += y[:-1]
        b.T[...] *= 0.5
        y.T[...] *= 0.5
        b.reshape(-1)[1::2] = 3
        y.reshape(-1)[1::2] = 3
        same(b, y)
        same(bn.roll(a, 7, 0), np.roll(x, 7, 0))
        same(a.astype("f4"), x.astype("f4"))


@pytest.mark.parametrize(
    "shape", [(), (5,), (3000,), (70, 90), (3, 4, 5), (40_001,), (300, 301), (7, 20_000), (2, 70, 500)], ids=str
)
def test_reductions(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    axes: list[Any] = [None, *range(len(shape)), *([(0, -1)] if len(shape) > 1 else [])]
    for x in (rng.normal(size=shape), rng.integers(-9, 9, shape).astype("i4"), rng.random(shape) < 0.9):
        x = np.asarray(x)
        results = []
        for workers in (1, 4):
            with started(executor="threads", workers=workers, chaos=5):
                a = bn.array(x)
                results.append(
                    [
                        np.asarray(getattr(bn, f)(a, axis=d))
                        for f in ("sum", "min", "max", "any", "all", "mean")
                        for d in axes
                    ]
                )
        for one, four in zip(*results, strict=True):
            assert one.tobytes() == four.tobytes() and one.shape == four.shape  # the tree does not depend on workers
        expected = [getattr(np, f)(x, axis=d) for f in ("sum", "min", "max", "any", "all", "mean") for d in axes]
        for ours, numpys in zip(results[0], expected, strict=True):
            assert ours.dtype == numpys.dtype
            if x.dtype.kind == "f":
                np.testing.assert_allclose(ours, numpys, rtol=1e-12, atol=1e-12)
            else:
                np.testing.assert_allclose(ours, numpys, rtol=1e-14)
    with started(executor="serial"):
        a = bn.ones((2, 3))
        assert bn.sum(a, axis=1, keepdims=True).shape == (2, 1)
        assert a.sum(keepdims=True).shape == (1, 1)
        assert float(bn.zeros(0).sum()) == 0.0
        with pytest.raises(ValueError, match="no identity"):
            bn.zeros(0).max()


def test_whole_array_operations_and_products() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(30, 40)), rng.normal(size=(40, 50))
    with started(executor="threads", workers=3, chaos=11):
        a, b = bn.array(x), bn.array(y)
        for f in ("argmin", "argmax", "cumsum", "sort", "argsort"):
            for axis in (0, 1):
                same(
                    getattr(bn, f)(a, axis=axis),
                    getattr(np, f)(x, axis=axis, **({"kind": "stable"} if f == "argsort" else {})),
                )
            if f in ("argmin", "argmax", "cumsum"):
                same(getattr(bn, f)(a), getattr(np, f)(x))
        same(bn.take(a, [3, 1, 1], 0), np.take(x, [3, 1, 1], 0))
        same(a[[3, 1]], x[[3, 1]])
        c, z = a.T[2:], x.copy().T[2:]
        c = c.copy()
        z = z.copy()
        c.put([1, 5], [7.0])
        z.put([1, 5], [7.0])
        same(c, z)
        np.testing.assert_allclose(np.asarray(a @ b), x @ y, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(np.asarray(b.T @ a.T), y.T @ x.T, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(np.asarray(a @ b[:, 3]), x @ y[:, 3], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(np.asarray(a[0] @ b), x[0] @ y, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(float(bn.dot(a[0], b[:, 0])), x[0] @ y[:, 0], rtol=1e-12)
        np.testing.assert_allclose(np.asarray(bn.einsum("ij,jk->ki", a, b)), np.einsum("ij,jk->ki", x, y), rtol=1e-12)
        stacked = bn.stack([a, a + 1])
        np.testing.assert_allclose(np.asarray(stacked @ b), np.stack([x, x + 1]) @ y, rtol=1e-12, atol=1e-12)
        same(stacked, np.stack([x, x + 1]))
        same(bn.concatenate([a, b.T[:, :40]], axis=0), np.concatenate([x, y.T[:, :40]]))
        same(bn.concatenate([a, a.astype("i4")], axis=1), np.concatenate([x, x.astype("i4")], axis=1))
        for order in (None, 1, 2, np.inf):
            np.testing.assert_allclose(float(bn.linalg.norm(a[0], order)), np.linalg.norm(x[0], order), rtol=1e-13)
        np.testing.assert_allclose(float(bn.linalg.norm(a)), np.linalg.norm(x), rtol=1e-13)
        same(bn.clip(a, -0.5, 0.5), np.clip(x, -0.5, 0.5))
        same(a.clip(None, 0.25), x.clip(None, 0.25))
        d, w = a.copy(), x.copy()
        d[d > 0] = -1.0
        w[w > 0] = -1.0
        same(d, w)
        mask = x < 0
        d[bn.array(mask)] = np.arange(mask.sum(), dtype=float)
        w[mask] = np.arange(mask.sum(), dtype=float)
        same(d, w)


@pytest.mark.parametrize("n", [700, 1300])
def test_matrix_products_do_not_depend_on_workers(n: int) -> None:
    x = np.random.default_rng(3).random((n, 300))
    results = []
    for workers in (1, 4):
        with started(executor="threads", workers=workers):
            a = bn.array(x)
            results.append((np.asarray(a @ a[0]), np.asarray(a @ a[:256].T)))
    for one, four in zip(*results, strict=True):
        assert one.tobytes() == four.tobytes()


def test_random_numbers_depend_on_neither_chunks_nor_workers() -> None:
    def draw() -> list[np.ndarray[Any, Any]]:
        rng = bn.random.default_rng(42)
        return [
            np.asarray(x)
            for x in (
                rng.random((300, 301)),
                rng.normal(2.0, 3.0, 5000),
                rng.integers(-5, 900, (7, 9000)),
                rng.random(),
            )
        ]

    drawn = []
    for resources in RESOURCES:
        with started(**resources):
            drawn.append(draw())
    for other in drawn[1:]:
        for x, y in zip(drawn[0], other, strict=True):
            assert x.tobytes() == y.tobytes()
    key = np.random.SeedSequence(42).generate_state(2, np.uint64)
    block = np.random.Generator(np.random.Philox(key=key, counter=[0, 0, 1, 0])).random(1024)
    np.testing.assert_array_equal(drawn[0][0].ravel()[1024:2048], block)
    assert abs(float(drawn[0][1].mean()) - 2.0) < 0.3
    assert drawn[0][2].min() == -5 and drawn[0][2].max() == 899


def test_temporaries_are_reused_safely_under_chaos() -> None:
    x = np.random.default_rng(4).normal(size=(50, 50))
    expected = x
    for _ in range(300):
        expected = 0.5 * (expected + expected[::-1]) - 0.25 * expected.T * 0.1 + 0.01
    for seed in (1, 2, 3):
        with started(executor="threads", workers=4, chaos=seed):
            before = _native.pool_counters()["made"]
            a = bn.array(x)
            for _ in range(300):
                a = 0.5 * (a + a[::-1]) - 0.25 * a.T * 0.1 + 0.01
            same(a, expected)
            assert _native.pool_counters()["made"] - before < 600  # of 1800 temporaries


def test_a_long_loop_keeps_its_memory() -> None:
    with started(executor="threads", workers=2):
        a = bn.zeros((64, 64))
        for k in range(4000):
            a = a * 0.5 + 1.0
            if k == 1000:
                float(a[0, 0])
                early = _native.pool_counters()["live_bytes"]
        float(a[0, 0])
        assert _native.pool_counters()["live_bytes"] <= early + (1 << 20)


def test_a_failed_operation_reports_and_leaves_the_rest_usable() -> None:
    rt.start(executor="threads", workers=2)
    a = bn.arange(5.0)
    bad = bn.take(a, bn.array([99]))
    with pytest.raises(IndexError, match="out of bounds"):
        float((bad + 1)[0])
    same(a + 1, np.arange(5.0) + 1)
    rt.stop()


def test_results_outlive_the_context() -> None:
    with started(executor="threads", workers=2):
        a = bn.arange(5) * 2
    same(a, np.arange(5) * 2)
    with started(executor="threads", workers=2):
        same(a + a, np.arange(5) * 4)


def test_scalars_are_values() -> None:
    with started(executor="threads", workers=2):
        a = bn.arange(3.0)
        x = a[1]
        a[1] = 7.0
        assert float(x) == 1.0
        total = a.sum()
        other = total
        total += 1
        assert float(other) == 9.0 and float(total) == 10.0
        assert int(bn.argmax(a)) == 1
        assert [10, 20, 30][bn.argmax(a)] == 20
        assert bool(a[1] > 6) and not bool(a[0])
        assert [float(v) for v in a] == [0.0, 7.0, 2.0]
        assert len(a) == 3
        assert a.tolist() == [0.0, 7.0, 2.0]
        assert repr(bn.arange(3)) == repr(np.arange(3))
        assert str(a[1]) == "7.0"
        with pytest.raises(ValueError, match="ambiguous"):
            bool(a)
        with pytest.raises(TypeError):
            x[...] = 3  # as NumPy's scalars


def test_numpy_arrays_mix_in_on_either_side() -> None:
    with started(executor="serial"):
        a = bn.arange(3.0)
        for result in (np.ones(3) + a, a + np.ones(3), np.float64(1.0) + a):
            assert _native.is_array(result)
            same(result, np.arange(3.0) + 1)
        same([1, 2, 3] * a, [1, 2, 3] * np.arange(3.0))


@pytest.mark.parametrize(
    ("use", "text"),
    [
        (lambda: bn.fft.fft, "bn.fft.fft is not available; wrap it: @bn.opaque def f(x): return np.fft.fft(x)"),
        (lambda: bn.interp, "bn.interp is not available; wrap it: @bn.opaque def f(x): return np.interp(x)"),
        (lambda: bn.ones(3).std(), "bn.ndarray.std is not available; wrap it: @bn.opaque def f(x): return x.std(...)"),
        (
            lambda: bn.where(bn.ones(3)),
            "bn.where(condition) is not available; wrap it: @bn.opaque def f(x): return np.where(x)",
        ),
    ],
)
def test_what_is_missing_says_how_to_get_it(use: Any, text: str) -> None:
    with started(executor="serial"), pytest.raises(NotImplementedError) as raised:
        use()
    assert str(raised.value) == text


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError):
        bn.no_such_function  # noqa: B018


@pytest.mark.parametrize("resources", RESOURCES, ids=str)
def test_opaque_functions(resources: dict[str, Any]) -> None:
    @bn.opaque
    def transform(x: Any) -> Any:
        return np.fft.fft(x)

    @bn.opaque(like=0)
    def smooth(x: Any, w: float) -> Any:
        return np.convolve(x, [w, 1 - 2 * w, w], "same")

    @bn.opaque(shape=lambda a, b: (a[0] + b[0],))
    def merged(a: Any, b: Any) -> Any:
        return np.sort(np.concatenate([a, b]))

    with started(**resources):
        a = bn.arange(9.0)
        same(transform(a[::2]), np.fft.fft(np.arange(9.0)[::2]))
        same(smooth(a * 2, 0.25), np.convolve(np.arange(9.0) * 2, [0.25, 0.5, 0.25], "same"))
        same(merged(a, a[:3]), np.sort(np.concatenate([np.arange(9.0), np.arange(3.0)])))


def test_errors_are_numpys() -> None:
    with started(executor="serial"):
        a = bn.arange(6)
        with pytest.raises(ValueError, match=r"could not be broadcast together with shapes \(6,\) \(5,\)"):
            a + bn.arange(5)
        with pytest.raises(TypeError, match="Cannot cast ufunc 'divide' output"):
            a /= 2
        with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 6"):
            a[9]
        with pytest.raises(ValueError, match="cannot reshape array of size 6"):
            a.reshape(4, 2)
        with pytest.raises(NotImplementedError, match="float16"):
            bn.zeros(3, "f2")
