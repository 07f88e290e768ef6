"""Very many tiny tasks on many threads: none is lost, none runs twice, none runs before what it waits for."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from burnish import runtime as rt
from burnish._native import runtime as _rt
from burnish.runtime import Read, ReadWrite, each, task
from burnish.runtime.signature import TaskInfo, parameters_of


@pytest.fixture(autouse=True)
def stopped() -> Iterator[None]:
    yield
    rt.stop()


@functools.cache
def native_count() -> Any:
    """Adds one to the first word of its first argument, without the GIL."""
    from numba import carray, cfunc, types
    from numba.extending import intrinsic

    @intrinsic
    def words(typingctx: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return types.CPointer(types.int64)(types.int64), generate

    @cfunc(types.void(types.CPointer(types.int64)))
    def body(call: Any) -> None:
        array = carray(words(carray(call, 5)[0]), 18)
        carray(words(array[0]), 1)[0] += 1

    return body


def counting_task(*privileges: Any) -> Any:
    def count(**_: Any) -> None: ...

    names = [f"a{k}" for k in range(len(privileges))]
    space: dict[str, Any] = {}
    exec(f"def count({', '.join(names)}): ...", space)
    fn = space["count"]
    fn.__annotations__ = dict(zip(names, privileges, strict=True))
    body = (native_count().address, 0, "", "")
    return _rt.make_task(TaskInfo("count", fn, parameters_of(fn), False, "native", native_body=body))


@task
def empty(x: Read) -> None:
    pass


@task
def count(x: ReadWrite) -> None:
    x += 1


@pytest.mark.parametrize("launches", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("workers", [1, 2, 8])
def test_a_million_empty_tasks(workers: int, launches: int) -> None:
    """Index launches of a thousand points; with all threads stealing."""
    rt.start(workers=workers, trace=False, window=4096)
    u = rt.region(1000, "i8")
    p = rt.block(u, 1000)
    counts = counting_task(ReadWrite)
    for _ in range(launches):
        counts.map(1000, p[each])
    rt.fence()
    counters = rt.stats()
    assert counters["tasks"] == counters["completed"] == 1000 * launches
    np.testing.assert_array_equal(u.numpy(), launches)


def test_python_tasks_by_the_hundred_thousand() -> None:
    rt.start(workers=4, trace=False, window=2048)
    u = rt.region(64, "i8")
    p = rt.block(u, 64)
    for k in range(400):
        count.map(64, p[each])
        empty.map(64, p[each - 1], edge="wrap")
        for c in range(32):
            empty(p[(c + k) % 64])
    np.testing.assert_array_equal(u.numpy(), 400)
    counters = rt.stats()
    assert counters["completed"] - 1 == counters["tasks"] == 400 * 160  # the access to u is no task


@pytest.mark.parametrize("workers", [2, 8])
@pytest.mark.parametrize("trace", [False, True])
def test_chains_that_cross(workers: int, trace: bool) -> None:
    """Every task waits for two of the step before: threads hand ready tasks to each other all the time."""
    rt.start(workers=workers, trace=trace, window=1024, chaos=0)
    u, v = rt.region(64, "i8"), rt.region(64, "i8")
    p, q = rt.block(u, 64), rt.block(v, 64)
    both = counting_task(ReadWrite, Read, Read)
    steps = 2000 if trace else 1000
    for _ in range(steps):
        both.map(64, p[each], q[each], q[each - 1], edge="wrap")
        both.map(64, q[each], p[each], p[each + 1], edge="wrap")
    np.testing.assert_array_equal(u.numpy(), steps)
    np.testing.assert_array_equal(v.numpy(), steps)


@pytest.mark.parametrize("workers", range(1, 9))
def test_no_wake_up_is_lost(workers: int) -> None:
    """Waiting after every few tasks, where a lost wake-up would show as a hang (or as 100 ms per wait)."""
    rt.start(workers=workers, chaos=workers, window=64, lanes=1 + workers % 3)
    u = rt.region(8, "i8")
    p = rt.block(u, 8)
    native = counting_task(ReadWrite)
    for k in range(150):
        count.map(8, p[each])
        native.map(8, p[each])
        if k % 3 == 0:
            rt.fence()
        elif k % 3 == 1:
            p[k % 8].numpy()
    np.testing.assert_array_equal(u.numpy(), 300)


@pytest.mark.slow
def test_ten_million_empty_tasks() -> None:
    rt.start(workers=min(8, 2 * (os.cpu_count() or 1)), trace=True, window=4096)
    u = rt.region(1000, "i8")
    p = rt.block(u, 1000)
    counts = counting_task(ReadWrite)
    for _ in range(10_000):
        counts.map(1000, p[each])
    np.testing.assert_array_equal(u.numpy(), 10_000)
