"""Check mode: finds what it promises, names it, and changes no result. Its errors' texts are in test_errors.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish import runtime as rt
from burnish.runtime import Read, ReadWrite, Reduce, Write, each, signalling, task
from burnish.runtime.check import _first_change, _guarded_copy
from burnish.runtime.errors import PrivilegeError, RaceError, RuntimeProblem, UninitializedError

FLOATS = ["f2", "f4", "f8", "c8", "c16"]
INTEGERS = ["i4", "u4", "i8", "u8", "M8[s]"]


@pytest.fixture
def checking() -> Iterator[None]:
    with rt.start(check=True, workers=2):
        yield


# ---- signalling values ----
@pytest.mark.parametrize("dtype", FLOATS)
@given(mark=st.integers(1, signalling.MARKS))
def test_filled_floats_are_nan_and_carry_their_mark(dtype: str, mark: int) -> None:
    a = np.zeros((3, 4), dtype)
    assert signalling.fill(a, mark)
    assert np.isnan(a).all()
    assert signalling.unwritten(a, mark).all()
    assert (signalling.marks(a, quiet_only=False) == mark).all()
    assert not signalling.marks(a, quiet_only=True).any()
    b = a.copy()  # copies stay signalling
    assert signalling.unwritten(b, mark).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("operation", [lambda a: a + 1, lambda a: 2 * a, lambda a: a * a, lambda a: -(a - 1)])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_arithmetic_makes_them_quiet_and_keeps_the_mark(dtype: str, operation: Any) -> None:
    a = np.zeros(9, dtype)
    signalling.fill(a, 13)
    b = operation(a)
    assert (signalling.marks(b, quiet_only=True) == 13).all()
    assert not signalling.unwritten(b, 13).any()


@pytest.mark.parametrize(("narrow", "wide"), [("f4", "f8"), ("f8", "f4"), ("f2", "f8"), ("f8", "f2"), ("f4", "c16")])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_conversion_keeps_the_mark(narrow: str, wide: str) -> None:
    a = np.zeros(5, narrow)
    signalling.fill(a, 21)
    assert (signalling.marks(a.astype(wide), quiet_only=True) == 21).all()


@given(values=st.lists(st.floats(allow_nan=False), max_size=20))
def test_ordinary_floats_have_no_mark(values: list[float]) -> None:
    """Including infinities and the NaNs that NumPy makes."""
    with np.errstate(all="ignore"):
        a = np.array([*values, np.nan, -np.nan, np.inf, -np.inf]) * np.array(1.0)
        a = np.concatenate([a, np.zeros(1) / 0, np.sqrt([-1.0]), np.array([np.inf]) - np.inf])
        for dtype in FLOATS:
            b = a.astype(dtype)
            assert not signalling.marks(b, quiet_only=False).any()
            assert not any(signalling.unwritten(b, mark).any() for mark in (1, 31))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_filled_integers_are_extreme_and_carry_their_mark(dtype: str) -> None:
    a = np.zeros(7, dtype)
    assert signalling.fill(a, 5)
    assert signalling.unwritten(a, 5).all() and not signalling.unwritten(a, 6).any()
    assert (signalling.marks(a, quiet_only=False) == 5).all()
    if a.dtype.kind in "iu":
        assert abs(int(a[0])) > np.iinfo(a.dtype).max * 0.99
    a[2] = a.dtype.type(0, "s") if a.dtype.kind == "M" else 0
    assert signalling.unwritten(a, 5).tolist() == [i != 2 for i in range(7)]


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "?"])
def test_small_types_are_left_alone(dtype: str) -> None:
    a = np.ones(7, dtype)
    assert not signalling.fill(a, 5) and a.all()


# ---- guarded copies ----
@given(st.data())
def test_guarded_copies_look_like_the_original(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.integers(1, 6)) for _ in range(data.draw(st.integers(1, 3))))
    whole = np.random.default_rng(0).random((8, 8, 8)[: len(shape)])
    start = tuple(data.draw(st.integers(0, 8 - n)) for n in shape)
    a = whole[tuple(slice(s, s + n) for s, n in zip(start, shape, strict=True))]
    copy = _guarded_copy(a)
    assert copy.strides == a.strides and copy.ctypes.data % 64 == a.ctypes.data % 64
    assert not copy.flags.writeable and not np.shares_memory(copy, whole)
    assert (copy == a).all() and _first_change(copy, a) is None
    at = tuple(data.draw(st.integers(0, n - 1)) for n in shape)
    copy.flags.writeable = True
    copy[at] = -1.0
    assert _first_change(copy, a) == at


# ---- what is found ----
def test_a_pointer_write_leaves_the_data_and_other_readers_alone(checking: None) -> None:
    import ctypes

    @task
    def rude(x: Read) -> float:
        ctypes.c_double.from_address(x.ctypes.data).value = 99.0
        return float(x[0])

    @task
    def polite(x: Read) -> float:
        return float(x[0])

    u = rt.region(8, "f8", fill=1.0)
    futures = [polite(u), rude(u), polite(u)]
    assert futures[0].get() == 1.0
    with pytest.raises(PrivilegeError, match=r"wrote to 'x'\[0\]"):
        futures[1].get()
    assert futures[2].get() == 1.0
    assert (u.numpy() == 1).all()


def test_a_pointer_write_into_a_field_of_a_sparse_region(checking: None) -> None:
    import ctypes

    @task
    def rude(p: Read["a"] | ReadWrite["b"]):
        ctypes.c_int64.from_address(p.a.ctypes.data + 8 * (3 * 2 + 1)).value = 5

    u = rt.region(16, {"a": ("i8", 2), "b": "f8"})
    odd = rt.by_sets(u, [np.arange(1, 16, 2)])
    rude(odd[0])
    with pytest.raises(PrivilegeError, match=r"wrote to 'p.a'\[3, 1\], declared Read"):
        rt.fence()


@pytest.mark.parametrize("dtype", [*FLOATS, "i4", "u8"])
def test_unwritten_points_are_counted_as_points(dtype: str, checking: None) -> None:
    @task
    def half(x: Write):
        x[: x.shape[0] // 2, :, 0] = 1
        x[:, 0] = 1

    half(rt.region((6, 4), np.dtype((dtype, 2)), name="u"))
    with pytest.raises(UninitializedError, match="18 of 24 points of 'x' were never written"):
        rt.fence()


def test_copies_of_unwritten_integers_are_found(checking: None) -> None:
    @task
    def copy(x: Write, y: Write):
        y[:] = x
        x[:] = 0

    copy(rt.region(8, "i8"), rt.region(8, "i8"))
    with pytest.raises(UninitializedError, match="'x' was read before being written: 8 points of 'y' come from it"):
        rt.fence()


def test_unwritten_points_in_a_reduction_are_found(checking: None) -> None:
    @task
    def add(x: Write, total: Reduce["+"]):
        total += x.sum()
        x[:] = 0

    add(rt.region(8, "f8"), rt.region(1, "f8"))
    with pytest.raises(UninitializedError, match="1 points of 'total' come from it"):
        rt.fence()


def test_written_arguments_are_fine_whatever_is_written(checking: None) -> None:
    @task
    def write(x: Write, k: float):
        x[:] = k

    u = rt.region(8, "f8")
    for value in (0.0, np.nan, np.inf, -1.0):
        write(u, value)
        rt.fence()
    assert (u.numpy() == -1).all()


def test_numba_bodies_are_guarded(checking: None) -> None:
    @task(kernel="numba")
    def smooth(out: Write, a: Read, n: int) -> float:
        for i in range(n):
            out[i] = 2 * a[i]
        return out[0]

    u, v = rt.region(8, "f8"), rt.region(8, "f8", fill=3.0)
    assert smooth(u, v, 8).get() == 6.0
    assert (u.numpy() == 6).all()
    smooth(u, v, 5)
    with pytest.raises(UninitializedError, match="3 of 8 points of 'out' were never written"):
        rt.fence()
    smooth(u, v, 9)
    with pytest.raises(IndexError):
        rt.fence()


# ---- races ----
def test_what_the_runtime_does_is_no_race(checking: None) -> None:
    @task
    def add(x: ReadWrite, k: float):
        x += k

    a = np.zeros(8)
    u = rt.attach(a)
    p = rt.block(u, 2)
    for _ in range(3):
        add.map(2, p[each], 1.0)
        with u.host("rw") as inside:
            inside[0] += 1
        u.fill(2.0)
    assert u.detach() is a
    a[:] = 7.0  # ours again
    rt.fence()


def test_a_race_is_found_at_the_next_host_access_and_once(checking: None) -> None:
    a = np.zeros(8)
    window = a[:]
    u = rt.attach(a)
    window[1] = 1.0
    with pytest.raises(RaceError, match="array 'a' attached as region 'u'"):
        u.numpy()
    assert u.numpy()[1] == 1.0


def test_checking_needs_bodies_in_this_process() -> None:
    with pytest.raises(RuntimeProblem, match="check=True runs all bodies in this process"):
        rt.start(check=True, executor="processes")


# ---- results are the same ----
@task
def mix(out: Write, a: Read, b: ReadWrite, k: float) -> float:
    out[:] = np.sqrt(np.abs(a)) * k
    b += np.cumsum(out.sum(axis=0))[-1] / (1 + np.abs(b))
    return float(np.dot(out.ravel(), b.ravel()) + a.mean())


@task
def spread(ids, values: Read, total: Reduce["+"]):
    rt.scatter_add(ids, rt.gather(ids, values), total)


@task(kernel="numba")
def relax(x: ReadWrite, y: Read) -> float:
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = 0.5 * x[i, j] + y[i, j] / 3.0
            s += x[i, j]
    return s


def _program(seed: int) -> list[bytes]:
    rng = np.random.default_rng(seed)
    grids = [rt.region((12, 10), "f8") for _ in range(3)]
    for grid in grids:
        with grid.host("w") as a:
            a[:] = rng.standard_normal(a.shape)
    parts = [rt.block(grid, (3, 2)) for grid in grids]
    line, total = rt.region(60, "f8"), rt.region(60, "f8")
    with line.host("w") as a:
        a[:] = rng.standard_normal(60)
    pieces = rt.by_color(line, rng.integers(0, 4, 60))
    values = []
    for step in range(6):
        order = rng.permutation(3)
        a, b, c = (parts[i] for i in order)
        values += mix.map((3, 2), a[each], b[each], c[each], float(step)).get()
        values.append(relax.map((3, 2), b[each], c[each]).reduce("+").get())
        for color in range(4):
            ids = pieces[color].ispace.linear_points()
            spread(rng.choice(ids, 5), pieces[color], total)
    return [np.array(values).tobytes(), *(r.numpy().tobytes() for r in (*grids, line, total))]


@pytest.mark.parametrize("seed", range(3))
def test_results_are_bitwise_the_same(seed: int) -> None:
    results = []
    for settings in ({}, {"check": True}, {"check": True, "executor": "serial"}):
        with rt.start(**{"executor": "threads", "workers": 3, **settings}):
            results.append(_program(seed))
    assert results[0] == results[1] == results[2]
