"""Bodies without Python: compiled by Numba, or given as function pointers. The oracle is the same body in Python."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numba
import numpy as np
import pytest

from burnish import runtime as rt
from burnish.runtime import Read, ReadWrite, Reduce, Write, each, native_task, task
from burnish.runtime.errors import TaskSignatureError
from burnish.runtime.numba_body import _entries


@pytest.fixture(autouse=True, params=["serial", "threads"])
def _context(request: pytest.FixtureRequest) -> Iterator[None]:
    with rt.start(executor=request.param, workers=3, chaos=5):
        yield


def filled(shape: Any, dtype: str = "f8", seed: int = 0) -> rt.Region:
    region = rt.region(shape, dtype)
    rng = np.random.default_rng(seed)
    with region.host("w") as a:
        a[...] = rng.standard_normal(a.shape) if a.dtype.kind == "f" else rng.integers(0, 99, a.shape)
    return region


# ---- bodies, each as a Numba task and as a Python task ----
def axpy(y: ReadWrite, x: Read, a: float) -> float:
    s = 0.0
    for i in range(y.shape[0]):
        y[i] += a * x[i]
        s += y[i]
    return s


def star(out: Write, a: Read, k: int) -> int:
    n, m = a.shape
    for i in range(n):
        for j in range(m):
            up = a[i - 1, j] if i > 0 else 0
            out[i, j] = k * a[i, j] - up
    return n * 1000 + m


def inner(p: ReadWrite["v"] | Read["x", "m"], dt: float):
    for i in range(p.x.shape[0]):
        for d in range(3):
            p.v[i, d] += dt * p.x[i, d] / p.m[i]


def histogram(x: Read, counts: Reduce["+"]):
    for i in range(x.shape[0]):
        counts[int(x[i]) % counts.shape[0]] += 1


def sparse_scale(x: ReadWrite, k: float) -> float:
    s = 0.0
    for i in range(x.index.size):
        x.values[i] = k * x.values[i] + x.index[i]
        s += x.values[i]
    return s


def tag(x: Write, color: int, base: int):
    for i in range(x.shape[0]):
        x[i] = base + color


def both(body: Any) -> tuple[Any, Any]:
    return task(kernel="numba")(body), task(body)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "u2"])
def test_one_field(dtype: str) -> None:
    results = []
    for axpy_task in both(axpy):
        y, x = filled(40, dtype, 1), filled(40, dtype, 2)
        if dtype == "u2":
            y.fill(7)
        future = axpy_task(y, x, 2.0)
        results.append((future.get(), y.numpy().tobytes()))
    if np.dtype(dtype) == np.float64:
        assert results[0] == results[1]
    else:  # Numba computes mixed types in float64, NumPy's scalars in the wider of the two
        assert results[0][0] == pytest.approx(results[1][0], rel=1e-5)


@pytest.mark.parametrize("colors", [(4, 1), (1, 3), (2, 3)])
def test_blocks_of_two_dimensions_are_strided_where_they_must_be(colors: tuple[int, int]) -> None:
    results = []
    for star_task in both(star):
        out, a = rt.region((12, 9), "f8"), filled((12, 9))
        values = star_task.map(colors, rt.block(out, colors)[each], rt.block(a, colors)[each], 3).get()
        results.append((values, out.numpy().tobytes()))
    assert results[0] == results[1]
    contiguous = "C" if colors[1] == 1 else "A"
    assert f"2d, {contiguous})" in str(_entries[task_of(star)][-1].keep[1].signatures[-1][0])


def task_of(body: Any) -> Any:
    return next(info for info in reversed(_entries) if info.fn is body)


def test_fields_with_inner_shapes() -> None:
    results = []
    for move in both(inner):
        p = rt.region(10, {"x": ("f8", 3), "v": ("f8", 3), "m": "f8"}, fill=1.5)
        with p.host("w", "x") as a:
            a[...] = np.arange(30).reshape(10, 3)
        move.map(3, rt.block(p, 3)[each], 0.25)
        results.append(p.numpy("v").tobytes())
    assert results[0] == results[1]


def test_reductions() -> None:
    for count in both(histogram):
        x, counts = filled(50, "i8"), rt.region((7,), "i8")
        count.map(5, rt.block(x, 5)[each], counts)
        assert counts.numpy().tolist() == np.bincount(x.numpy() % 7, minlength=7).tolist()


def test_sparse_fields_and_mixed_densities() -> None:
    results = []
    for scale in both(sparse_scale):
        x = filled(30)
        before = x.numpy()
        parts = rt.by_sets(x, [np.arange(0, 30, 3), np.arange(1, 30, 3)])
        values = scale.map(2, parts[each], 2.0).get()
        results.append(values)
        expected = before.copy()
        for c in (0, 1):
            expected[c::3] = 2.0 * before[c::3] + np.arange(c, 30, 3)
        assert (x.numpy() == expected).all()
    assert results[0] == results[1]


def test_one_launch_may_need_several_variants() -> None:
    """A wrapped ghost is dense in the middle and sparse at the ends."""

    @task(kernel="numba")
    def total(x: Read) -> float:
        return x[0] if x.ndim == 1 else 0.0

    u = filled(16)
    p = rt.ghost(rt.block(u, 4), 1, wrap=True)
    assert [r.dense for r in p] == [False, True, True, False]
    with pytest.raises(TaskSignatureError, match="cannot be compiled by Numba"):  # a named tuple has no ndim
        total.map(4, p[each])
    assert total.map(2, rt.by_sets(u, [rt.Rect((3,), (9,)), rt.Rect((7,), (13,))])[each]).get() == [
        u.numpy()[3],
        u.numpy()[7],
    ]


def test_colors_and_futures_as_numbers() -> None:
    tag_task = task(kernel="numba")(tag)

    @task
    def seven() -> int:
        return 7

    u = rt.region(8, "i8")
    tag_task.map(4, rt.block(u, 4)[each], each, seven())
    assert u.numpy().tolist() == [7, 7, 8, 8, 9, 9, 10, 10]
    grid = rt.region((2, 4), "i8")

    @task(kernel="numba")
    def number(x: Write, color: int):
        x[:] = color

    number.map((2, 2), rt.block(grid, (2, 2))[each], each)
    assert grid.numpy().tolist() == [[0, 0, 1, 1], [2, 2, 3, 3]]


def test_a_future_that_is_no_number_fails_the_task() -> None:
    @task
    def word() -> str:
        return "seven"

    u = rt.region(8, "i8")
    task(kernel="numba")(tag)(u, 0, word())
    with pytest.raises(TypeError):
        u.numpy()


def test_values_of_numba_tasks_feed_others() -> None:
    total = task(kernel="numba")(axpy)
    y, x = rt.region(4, "f8", fill=1.0), rt.region(4, "f8", fill=2.0)
    first = total(y, x, 1.0)
    second = total(y, x, first)
    assert (first.get(), second.get()) == (12.0, 12.0 + 4 * 2 * 12)


def test_exceptions_keep_their_type_message_and_line() -> None:
    @task(kernel="numba")
    def check(x: ReadWrite, limit: int):
        for i in range(x.shape[0]):
            if x[i] > limit:
                raise ValueError("too large", i)
            x[i] += 1

    u = rt.region(8, "i8", name="u")
    with u.host("w") as a:
        a[:] = np.arange(8)
    p = rt.block(u, 2)
    check.map(2, p[each], 5)
    with pytest.raises(ValueError, match=r"\('too large', 2\)") as caught:
        rt.fence()
    assert "raised at" in caught.value.__notes__[0] and "in check" in caught.value.__notes__[0]
    assert "in task 'check', color 1, launched at" in caught.value.__notes__[1]
    with p[0].host() as a:
        assert a.tolist() == [1, 2, 3, 4]  # not downstream of the failure


def test_division_by_zero_follows_numpy() -> None:
    @task(kernel="numba")
    def divide(x: ReadWrite):
        for i in range(x.shape[0]):
            x[i] = 1.0 / x[i]

    u = rt.region(3, "f8")
    divide(u)
    assert np.isinf(u.numpy()).all()


def test_floating_point_is_neither_fused_nor_reordered() -> None:
    def chain(x: ReadWrite, y: Read, n: int) -> float:
        s = 0.0
        for _ in range(n):
            for i in range(x.shape[0]):
                x[i] = x[i] * y[i] + 0.1
                s += x[i]
        return s

    results = []
    for chain_task in both(chain):
        x, y = filled(33, seed=3), filled(33, seed=4)
        results.append((chain_task(x, y, 5).get(), x.numpy().tobytes()))
    assert results[0] == results[1]


def test_source_shows_the_entry_after_compilation() -> None:
    made = task(kernel="numba")(tag)
    assert "compiled at the first launch" in made.source and "def tag(" in made.source
    made(rt.region(4, "i8"), 1, 2)
    rt.fence()
    assert "def entry(call):" in made.source and "view0(array[0], (array[2], ), (array[10], )),  # x" in made.source


def test_annotated_result_that_does_not_come() -> None:
    @task(kernel="numba")
    def nothing(x: ReadWrite) -> float:
        x[0] = 1

    with pytest.raises(TaskSignatureError, match="annotated to return a number, but its body returns none"):
        nothing(rt.region(3, "f8"))


def test_dtypes_that_numba_does_not_know() -> None:
    @task(kernel="numba")
    def first(x: ReadWrite):
        x[0] = x[1]

    with pytest.raises(
        TaskSignatureError, match="cannot be compiled by Numba: .*longdouble|cannot be compiled by Numba: .*float128"
    ):
        first(rt.region(3, np.longdouble))


# ---- function pointers ----
class NativeArray(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("ndim", ctypes.c_int64), ("shape", ctypes.c_int64 * 8),
        ("strides", ctypes.c_int64 * 8), ("index", ctypes.POINTER(ctypes.c_int64)),
    ]  # fmt: skip


class Scalar(ctypes.Union):
    _fields_ = [("object", ctypes.c_void_p), ("f", ctypes.c_double), ("i", ctypes.c_int64)]


class NativeCall(ctypes.Structure):
    _fields_ = [
        ("arrays", ctypes.POINTER(NativeArray)), ("scalars", ctypes.POINTER(Scalar)), ("point", ctypes.c_int64),
        ("user", ctypes.c_void_p), ("result", Scalar), ("status", ctypes.c_int64), ("message", ctypes.c_char_p),
        ("exception", ctypes.c_void_p),
    ]  # fmt: skip


BODY = ctypes.CFUNCTYPE(None, ctypes.POINTER(NativeCall))


def read(array: NativeArray, dtype: Any) -> np.ndarray:
    """The array as the ABI describes it."""
    shape, strides = array.shape[: array.ndim], array.strides[: array.ndim]
    low = (
        ctypes.c_char * (1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + np.dtype(dtype).itemsize)
    ).from_address(array.data)
    return np.ndarray(tuple(shape), dtype, low, 0, tuple(strides))


seen: list[Any] = []


@BODY
def observe(call: Any) -> None:
    c = call.contents
    grid, sparse = read(c.arrays[0], "f8"), read(c.arrays[1], "i8")
    index = [c.arrays[1].index[i] for i in range(c.arrays[1].shape[0])]
    seen.append((c.point, grid.copy(), sparse.copy(), index, c.scalars[0].f, c.scalars[1].i, c.user))
    grid *= 2
    sparse[:, 1] = index
    c.result.i = grid.size


def test_native_task_abi() -> None:
    seen.clear()
    native = native_task(
        observe,
        {"grid": (ReadWrite, "f8", 2), "marks": ReadWrite["m"], "a": float, "n": int},
        name="observe",
        returns=int,
        user=1234,
    )
    grid = filled((4, 6))
    before = grid.numpy()
    marks = rt.region(10, {"k": "f4", "m": ("i8", 2)}, fill=3)
    parts = rt.by_sets(marks, [np.array([1, 4]), np.array([0, 5, 9])])
    future = native.map(2, rt.block(grid, (1, 2))[each.map(lambda c: (0, c))], parts[each], 0.5, 7)
    assert future.get() == [12, 12]
    for point, array, sparse, index, a, n, user in sorted(seen, key=lambda s: s[0]):
        assert (array == before[:, 3 * point : 3 * point + 3]).all()
        assert index == [[1, 4], [0, 5, 9]][point] and (sparse == 3).all() and sparse.shape == (len(index), 2)
        assert (a, n, user) == (0.5, 7, 1234)
    assert (grid.numpy() == 2 * before).all()
    assert marks.numpy("m")[:, 1].tolist() == [0, 1, 3, 3, 4, 5, 3, 3, 3, 9]


@BODY
def refuse(call: Any) -> None:
    call.contents.status = 3


@BODY
def explain(call: Any) -> None:
    call.contents.status, call.contents.message = 1, b"the matrix is singular"


@pytest.mark.parametrize(
    ("body", "message"), [(refuse, "its body returned status 3"), (explain, "the matrix is singular")]
)
def test_a_status_fails_the_task(body: Any, message: str) -> None:
    u = rt.region(4, "f8")
    native_task(body, {"x": ReadWrite}, name="solve")(u)
    with pytest.raises(rt.NativeBodyError, match=f"task 'solve' failed: {message}"):
        u.numpy()


def test_pointers_come_in_many_forms() -> None:
    @numba.cfunc(numba.void(numba.int64))
    def body(call: int) -> None:
        pass

    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    for pointer in (body, body.address, body.ctypes, capsule(body.address, b"burnish.body", None)):
        native_task(pointer, {"x": Read}, name="nothing")(rt.region(4, "f8"))
    rt.fence()


@pytest.mark.parametrize(
    ("region", "message"),
    [
        (
            lambda: rt.region((4, 4), "f4", name="u"),
            r"needs float64 in 2 dimensions, got 'u' with value: float32 in 2 dimensions",
        ),
        (
            lambda: rt.region(4, "f8", name="u"),
            r"needs float64 in 2 dimensions, got 'u' with value: float64 in 1 dimension$",
        ),
    ],
)
def test_declared_types_are_checked(region: Any, message: str) -> None:
    native = native_task(observe, {"x": (Read, "f8", 2)}, name="solve")
    with pytest.raises(TaskSignatureError, match=message):
        native(region())


def test_declarations_that_make_no_sense() -> None:
    with pytest.raises(TaskSignatureError, match="the function pointer is null"):
        native_task(0, {}, name="f")
    with pytest.raises(TaskSignatureError, match="needs a function pointer, got str"):
        native_task("f", {}, name="f")
    with pytest.raises(TaskSignatureError, match="declare a privilege"):
        native_task(observe, {"x": "Read"}, name="f")
    with pytest.raises(TaskSignatureError, match="it can return float, int or nothing"):
        native_task(observe, {}, name="f", returns=str)
