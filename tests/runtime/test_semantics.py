"""What launches mean: failures and what they poison, errors at every waiting call, contexts, and unusual regions."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burnish import runtime as rt
from burnish._native import runtime as _rt
from burnish.core.errors import BurnishError
from burnish.runtime import Read, ReadWrite, Reduce, Write, each, task
from burnish.runtime.errors import HostAccessError

from .program_bodies import PlannedFailure
from .program_oracle import NONE, interpret
from .program_runner import Runner, Setting, setting
from .random_programs import Program, generate, shrunk

EXECUTORS: list[dict[str, Any]] = [
    {"executor": "serial"},
    {"executor": "threads", "workers": 1},
    {"executor": "threads", "workers": 4, "chaos": 11},
]


class Broken(Exception):
    """Raised by bodies on purpose."""


@pytest.fixture(params=EXECUTORS, ids=lambda p: f"{p['executor']}{p.get('workers', '')}")
def context(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """A running context of each kind; what it was started with."""
    rt.start(**request.param)
    yield request.param
    quietly(rt.stop)


@pytest.fixture(autouse=True)
def stopped() -> Iterator[None]:
    yield
    quietly(rt.stop)


def quietly(call: Any) -> None:
    """Calls until no failure of a task is left to be raised."""
    for _ in range(100):
        try:
            call()
        except (Broken, PlannedFailure):
            continue
        return
    raise AssertionError("failures without end")


@task
def add(x: ReadWrite, amount: float) -> None:
    x += amount


@task
def put(x: Write, value: float) -> None:
    x[...] = value


@task
def copy(to: Write, of: Read) -> None:
    to[...] = of


@task
def total(x: Read) -> float:
    return float(np.sum(x))


@task
def accumulate(x: Reduce["+"], amount: float) -> None:
    x += amount


@task
def breaks(x: ReadWrite) -> None:
    raise Broken("breaks")


@task
def breaks_at(x: ReadWrite, color: int, bad: int) -> float:
    if color == bad:
        raise Broken(f"color {color}")
    x += 1
    return float(color)


@task
def breaks_adding(x: Reduce["+"], color: int, bad: int) -> None:
    if color == bad:
        raise Broken(f"color {color}")
    x += 1


# ---- failures ----
def test_a_failure_poisons_what_depends_on_it_and_nothing_else(context: dict[str, Any]) -> None:
    u, v = rt.region(8, "f8", fill=1.0), rt.region(8, "f8", fill=2.0)
    p, q = rt.block(u, 4), rt.block(v, 4)
    futures = breaks_at.map(4, p[each], each, 2)
    copy.map(4, q[each], p[each])
    add.map(4, q[each], 1.0)
    with pytest.raises(Broken, match="color 2"):
        rt.fence()
    rt.fence()  # reported once
    for c in (0, 1, 3):
        np.testing.assert_array_equal(q[c].numpy(), 3.0)
        assert futures[c].get() == float(c)
    for broken in (p[2], q[2], u, v):
        with pytest.raises(Broken, match="color 2"):
            broken.numpy()
    with pytest.raises(Broken):
        futures[2].get()


def test_write_heals(context: dict[str, Any]) -> None:
    u = rt.region(8, "f8", fill=1.0)
    breaks(u)
    put(u[0:4], 5.0)
    with pytest.raises(Broken):
        rt.fence()
    np.testing.assert_array_equal(u[0:4].numpy(), 5.0)
    with pytest.raises(Broken):
        u[4:8].numpy()
    u.fill(7.0)
    np.testing.assert_array_equal(u.numpy(), 7.0)


def test_reductions_of_a_failed_task_poison_what_it_would_have_reduced_into(context: dict[str, Any]) -> None:
    u = rt.region(8, "f8", fill=1.0)
    p = rt.block(u, 4)
    breaks_adding.map(4, p[each], each, 1)
    accumulate(u, 1.0)
    with pytest.raises(Broken):
        rt.fence()
    np.testing.assert_array_equal(u[4:8].numpy(), 3.0)
    np.testing.assert_array_equal(u[0:2].numpy(), 3.0)
    with pytest.raises(Broken):
        u[2:4].numpy()


def test_dead_reductions_of_a_failed_task_leave_no_trace(context: dict[str, Any]) -> None:
    u = rt.region(4, "f8")
    breaks_adding(u, 0, 0)
    put(u, 3.0)
    with pytest.raises(Broken):
        rt.fence()
    np.testing.assert_array_equal(u.numpy(), 3.0)


def test_the_first_failure_in_program_order_is_raised_first(context: dict[str, Any]) -> None:
    regions = [rt.region(2, "f8") for _ in range(5)]
    for k, u in enumerate(regions):
        breaks_at(u, k, k)
    for k in range(5):
        with pytest.raises(Broken, match=f"color {k}"):
            rt.fence()
    rt.fence()


def test_of_several_causes_the_first_is_kept(context: dict[str, Any]) -> None:
    u, v, w = (rt.region(2, "f8") for _ in range(3))

    @task
    def join(to: Write, a: Read, b: Read) -> None:
        to[...] = a + b

    breaks_at(u, 1, 1)
    breaks_at(v, 2, 2)
    join(w, v, u)
    quietly(rt.fence)
    with pytest.raises(Broken, match="color 1"):
        w.numpy()


def test_futures_carry_failures(context: dict[str, Any]) -> None:
    u, v = rt.region(2, "f8"), rt.region(2, "f8")
    bad = breaks_at(u, 1, 1)
    mapped = bad.map(lambda x: x + 1)
    add(v, bad)
    put.map(1, rt.block(u, 1)[each], 4.0, when=bad)
    quietly(rt.fence)
    for future in (bad, mapped):
        with pytest.raises(Broken):
            future.get()
    for region in (u, v):
        with pytest.raises(Broken):
            region.numpy()
    put(u, 1.0)
    np.testing.assert_array_equal(u.numpy(), 1.0)


def test_reduce_over_a_map_with_a_failure(context: dict[str, Any]) -> None:
    u = rt.region(8, "f8")
    futures = breaks_at.map(4, rt.block(u, 4)[each], each, 3)
    folded = futures.reduce("+")
    with pytest.raises(Broken):
        folded.get()


@pytest.mark.parametrize("wait", ["get", "host", "numpy", "fence", "stop"])
def test_every_waiting_call_raises_the_failure(context: dict[str, Any], wait: str) -> None:
    u, v = rt.region(2, "f8"), rt.region(2, "f8", fill=1.0)
    broken = breaks_at(u, 0, 0)
    add(v, 0.0)
    healthy = total(v)
    while not broken.done() and context.get("workers") != 1:  # one worker runs it before what was launched later
        time.sleep(0.001)
    calls = {"get": healthy.get, "host": v.host().__enter__, "numpy": v.numpy, "fence": rt.fence, "stop": rt.stop}
    with pytest.raises(Broken) as caught:
        calls[wait]()
    assert any("in task 'breaks_at', launched at" in n and "test_semantics.py" in n for n in caught.value.__notes__)


def test_an_error_that_is_not_an_exception_is_kept_too(context: dict[str, Any]) -> None:
    @task
    def leaves(x: ReadWrite) -> None:
        raise SystemExit(3)

    u = rt.region(2, "f8")
    leaves(u)
    with pytest.raises(SystemExit):
        rt.fence()


def test_a_reduction_operator_that_raises(context: dict[str, Any]) -> None:
    if _rt.find_reduction("broken") < 0:

        def operator(old: Any, new: Any) -> Any:
            raise Broken("operator")

        rt.reduction("broken", operator, 0.0)

    @task
    def use(x: Reduce["broken"]) -> None:
        x += 1

    u = rt.region(4, "f8")
    use(u[0:2])
    with pytest.raises(Broken, match="operator"):
        u.numpy()
    np.testing.assert_array_equal(u[2:4].numpy(), 0.0)
    put(u, 2.0)
    np.testing.assert_array_equal(u.numpy(), 2.0)


def failing(program: Program, how: Setting) -> list[str]:
    """Compares what planned failures leave readable, and which errors the rest raises, with the oracle."""
    expected, oracle = interpret(program)
    found = []
    how.start()
    runner = Runner()
    try:
        runner.run(program)
        first = None
        try:
            rt.fence()
        except PlannedFailure as error:
            first = str(error)
        if first != expected.first_failure:
            found.append(f"first failure {first}, expected {expected.first_failure}")
        quietly(rt.fence)
        messages = {c.order: c.message for c in oracle.causes}
        for (root, name), causes in oracle.poison.items():
            if root not in runner.roots:
                continue
            for at in range(len(causes)):
                where = tuple(int(x) for x in np.unravel_index(at, oracle.geometry.roots[root].shape))
                point = runner.roots[root][rt.Rect(where, tuple(x + 1 for x in where))]
                want = messages.get(int(causes[at]))
                try:
                    got, have = point.numpy(name), None
                except PlannedFailure as error:
                    got, have = None, str(error)
                if want != have:
                    found.append(f"{root}.{name}[{at}]: poisoned by {have}, expected {want}")
                elif got is not None and got.tobytes() != oracle.data[root, name][at].tobytes():
                    found.append(f"{root}.{name}[{at}]: {got} != {oracle.data[root, name][at]}")
        for key, value in expected.futures.items():
            future = runner.future(("future", *key))
            want = getattr(value, "message", None)
            try:
                have, got = None, future.get()
            except PlannedFailure as error:
                have, got = str(error), value
            if want != have or got != value:
                found.append(f"future {key}: {have or got}, expected {want or value}")
    finally:
        quietly(rt.stop)
    return found


@pytest.mark.parametrize("chunk", range(4))
def test_failures_of_random_programs_poison_exactly_what_depends_on_them(chunk: int) -> None:
    poisoned = 0
    for seed in range(chunk * 50, (chunk + 1) * 50):
        program = generate(seed, failures=True, small=True, max_launches=16, loops=seed % 3 == 0)
        poisoned += any((p != NONE).any() for p in interpret(program)[1].poison.values())
        for how in (Setting("serial"), setting(seed, trace=seed % 3 == 0)):
            if failing(program, how):
                small = shrunk(program, lambda p, how=how: bool(failing(p, how)))  # type: ignore[misc]
                pytest.fail("\n".join([f"seed {seed}, {how}", *map(str, small), *failing(small, how)]), pytrace=False)
    assert poisoned > 10


# ---- host access ----
def test_host_blocks_left_by_exceptions(context: dict[str, Any]) -> None:
    u = rt.region(8, "f8")
    for mode in ("r", "w", "rw"):
        with pytest.raises(Broken), u.host(mode):  # type: ignore[arg-type]
            raise Broken
    access = u.host("w")
    access.__enter__()
    del access  # never left
    gc.collect()
    add(u, 1.0)
    np.testing.assert_array_equal(u.numpy(), 1.0)


def test_uses_that_would_wait_for_the_program_itself_are_refused(context: dict[str, Any]) -> None:
    """All of these hung or raced before."""
    u = rt.region(8, {"a": "f8", "b": "f8"})

    @task
    def change(x: ReadWrite["a"]) -> None:
        x.a += 1

    @task
    def see(x: Read["a"]) -> None:
        x.a.sum()

    p = rt.block(u, 2)
    with u.host("r", "a") as a:
        for launch in (lambda: change(u), lambda: change.map(2, p[each]), lambda: u.fill(1.0, "a")):
            with pytest.raises(HostAccessError, match="being read"):
                launch()
        with pytest.raises(HostAccessError):
            u.host("w", "a").__enter__()
        see(u)
        u.fill(2.0, "b")
        np.testing.assert_array_equal(u.numpy("a"), a)
        rt.fence()
    with u[0:4].host("rw", "a"):
        with pytest.raises(HostAccessError, match="being written"):
            see(u)
        with pytest.raises(HostAccessError):
            u[3:5].numpy("a")
        change(u[4:8])
        np.testing.assert_array_equal(u[4:8].numpy("a"), 1.0)
        np.testing.assert_array_equal(u.numpy("b"), 2.0)
    change(u)
    np.testing.assert_array_equal(u.numpy("a"), [1, 1, 1, 1, 2, 2, 2, 2])


def test_host_write_then_launch(context: dict[str, Any]) -> None:
    u = rt.region((4, 4), "f8")
    sparse = rt.by_sets(u, [[0, 5, 10, 15]])[0]
    with sparse.host("rw") as diagonal:
        diagonal[...] = 3.0
    add(u, 1.0)
    np.testing.assert_array_equal(u.numpy(), np.eye(4) * 3 + 1)


# ---- contexts ----
def test_many_contexts() -> None:
    u = rt.region(16, "f8")
    p = rt.block(u, 4)
    for k in range(60):
        rt.start(executor="threads", workers=1 + k % 8, trace=k % 2 == 0)
        add.map(4, p[each], 1.0)
        accumulate(u, 1.0)
        rt.stop()
    np.testing.assert_array_equal(u.numpy(), 120.0)


def test_poison_and_futures_outlive_their_context() -> None:
    rt.start(workers=2)
    u = rt.region(4, "f8", fill=1.0)
    kept = total(u)
    breaks(u[0:2])
    bad = total(u)
    with pytest.raises(Broken):
        rt.stop()
    assert kept.get() == 4.0
    with pytest.raises(Broken):
        bad.get()
    for _ in range(3):
        rt.start(workers=2)
        with pytest.raises(Broken):
            u.numpy()
        np.testing.assert_array_equal(u[2:4].numpy(), 1.0)
        v = rt.region(4, "f8")
        add(v, kept)
        np.testing.assert_array_equal(v.numpy(), 4.0)
        add(v, bad)
        with pytest.raises(Broken):
            v.numpy()
        rt.stop()
    put(u, 2.0)
    np.testing.assert_array_equal(u.numpy(), 2.0)


def test_failures_go_when_nothing_refers_to_them() -> None:
    class Heavy(Exception):
        alive = 0

        def __init__(self) -> None:
            Heavy.alive += 1

        def __del__(self) -> None:
            Heavy.alive -= 1

    @task
    def fails(x: ReadWrite) -> float:
        raise Heavy

    for _ in range(5):
        rt.start(workers=2)
        u = rt.region(4, "f8")
        future = fails(u)
        with pytest.raises(Heavy):
            rt.stop()
    del u, future
    rt.start(workers=1)
    rt.stop()
    gc.collect()
    assert Heavy.alive == 0


def test_a_host_block_that_outlives_its_context() -> None:
    rt.start(workers=2)
    u = rt.region(4, "f8", fill=1.0)
    with u.host("r") as a:
        rt.stop()
        np.testing.assert_array_equal(a, 1.0)
        rt.start(workers=2)
        add(rt.region(4, "f8"), 1.0)
    add(u, 1.0)
    np.testing.assert_array_equal(u.numpy(), 2.0)


def test_with_block_left_by_an_exception() -> None:
    u = rt.region(4, "f8")
    with pytest.raises(Broken), rt.start(workers=2):
        add(u, 1.0)
        raise Broken
    with pytest.raises(Broken), rt.start(workers=2):
        breaks(u)
    put(u, 2.0)
    np.testing.assert_array_equal(u.numpy(), 2.0)


INTERRUPTED = """
    import os, signal, sys, threading, time
    from burnish import runtime as rt
    from burnish.runtime import task, Read, ReadWrite, each

    @task
    def slow(x: ReadWrite) -> None:
        time.sleep(0.05)

    @task
    def spin(x: ReadWrite) -> None:
        while time.monotonic() < stop:
            pass

    rt.start(workers=int(sys.argv[1]), executor=sys.argv[2])
    u = rt.region(4, "f8")
    stop = time.monotonic() + 60
    def interrupt():
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=interrupt, daemon=True).start()
    where = sys.argv[3]
    try:
        if where == "body":
            stop = time.monotonic() + 2
            spin(u)
            rt.fence()
        for _ in range(30):
            slow(u)
        if where == "fence":
            rt.fence()
        elif where == "host":
            u.numpy()
        elif where == "window":
            for _ in range(1000):
                slow(u)
        else:
            time.sleep(10)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    else:
        print("finished", flush=True)
    v = rt.region(4, "f8", fill=3.0)
    print(v.numpy().sum(), flush=True)
    try:
        rt.stop()
    except KeyboardInterrupt:
        print("poisoned", flush=True)
    print("stopped", flush=True)
"""


@pytest.mark.parametrize(
    ("workers", "executor", "where"),
    [
        (2, "threads", "fence"),
        (1, "threads", "host"),
        (2, "threads", "sleep"),
        (1, "threads", "body"),
        (1, "serial", "body"),
    ],
)
def test_control_c_hangs_nothing(tmp_path: Path, workers: int, executor: str, where: str) -> None:
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(INTERRUPTED))
    source = Path(rt.__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    process = subprocess.Popen(
        [sys.executable, str(script), str(workers), executor, where], stdout=subprocess.PIPE, env=environment, text=True
    )
    try:
        out, _ = process.communicate(timeout=120)
    finally:
        process.kill()
    assert out.split()[0] == "interrupted"
    assert "12.0" in out
    assert out.split()[-1] == "stopped"
    assert process.returncode == 0


def test_an_interrupted_host_access_still_orders_what_comes_after() -> None:
    """Its record once completed before what it waited for, and later writers ran too early."""
    gate, started = threading.Event(), threading.Event()

    @task
    def held(x: ReadWrite) -> None:
        started.set()
        gate.wait(30)
        x += 1

    @task
    def double(x: ReadWrite) -> None:
        x *= 2

    rt.start(workers=3, trace=False)
    u = rt.region(4, "f8", fill=1.0)
    held(u)
    assert started.wait(30)  # a worker has it: the launching thread is free to be interrupted in its own wait
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        u.numpy()
    timer.join()
    double(u)
    time.sleep(0.05)
    gate.set()
    np.testing.assert_array_equal(u.numpy(), 4.0)


# ---- nothing to do ----
def test_zero_points_zero_colors_empty_domains(context: dict[str, Any]) -> None:
    none = rt.region(0, "f8")
    flat = rt.region((0, 5), "f8")
    u = rt.region(5, "f8", fill=1.0)
    add(none, 1.0)
    add(flat, 1.0)
    none.fill(2.0)
    assert none.numpy().shape == (0,)
    assert flat.numpy().shape == (0, 5)
    no_colors = rt.block(u, 0)
    assert no_colors.colors == (0,)
    assert add.map(0, no_colors[each], 1.0) is None
    assert add.map(no_colors, no_colors[each], 1.0) is None
    assert len(breaks_at.map(0, no_colors[each], each, 0)) == 0
    add.map((3, 0), u, 1.0)
    more_colors_than_points = rt.block(u, 9)
    add.map(9, more_colors_than_points[each], 1.0)
    assert rt.by_sets(u, []).colors == (0,)
    assert rt.by_color(none, []).colors == (0,)
    np.testing.assert_array_equal(u.numpy(), 2.0)
    with none.host("rw") as a:
        a += 1
    assert total(none).get() == 0.0


def test_regions_dropped_while_tasks_are_in_flight() -> None:
    """Also such that no atom remembers a running task: empty ones, and reductions that a Write made obsolete."""

    @task
    def slow(x: Read, nothing: ReadWrite) -> float:
        time.sleep(2e-4)
        return float(np.sum(x))

    @task
    def slow_add(x: Reduce["+"]) -> None:
        time.sleep(2e-4)
        x += 1

    rt.start(workers=4, chaos=5)
    futures = []
    for k in range(200):
        u = rt.region(1000, "f8", fill=float(k))
        futures.append(slow(u, u[3:3]))
        slow_add(u)
        if k % 2:
            put(u, 1.0)
        if k % 3 == 0:
            empty = rt.region(0, "f8")
            slow(empty, empty[0:0])
        del u
        if k % 50 == 0:
            gc.collect()
    assert [f.get() for f in futures] == [1000.0 * k for k in range(200)]


def test_dropped_futures(context: dict[str, Any]) -> None:
    u = rt.region(4, "f8", fill=1.0)
    for _ in range(300):
        total(u)
        total(u).map(lambda v: v + 1)
        breaks_at.map(2, rt.block(u, 2)[each], each, 9)
    rt.fence()
    np.testing.assert_array_equal(u.numpy(), 301.0)


# ---- shapes of launches and regions ----
@task
def many(
    a: Read, b: Read, c: ReadWrite, d: Read, e: Write, f: Read, g: Reduce["+"], h: Read, i: ReadWrite,
    s1: int, s2: int, s3: int, s4: int, s5: int, s6: int, s7: int, s8: int, s9: int, s10: int, s11: int,
) -> int:  # fmt: skip
    c += a[0] + b[0]
    e[...] = d[0] * f[0]
    g += h[0]
    i -= 1
    return s1 + s2 + s3 + s4 + s5 + s6 + s7 + s8 + s9 + s10 + s11


def test_many_arguments(context: dict[str, Any]) -> None:
    parts = [rt.block(rt.region(6, "f8", fill=float(k + 1)), 3) for k in range(9)]
    scalars = list(range(11))
    one = many(*(p[1] for p in parts), *scalars)
    more = many.map(3, *(p[each] for p in parts), *scalars)
    chained = many(*(p[2] for p in parts), one, *([more[0]] * 10))
    assert one.get() == 55
    assert more.get() == [55, 55, 55]
    assert chained.get() == 55 * 11
    np.testing.assert_array_equal(parts[2].parent.numpy(), [6, 6, 9, 9, 9, 9])
    np.testing.assert_array_equal(parts[4].parent.numpy(), 24.0)
    np.testing.assert_array_equal(parts[6].parent.numpy(), [15, 15, 23, 23, 23, 23])


def test_sixty_four_fields(context: dict[str, Any]) -> None:
    names = [f"f{k}" for k in range(64)]
    u = rt.region(4, dict.fromkeys(names, "f8"))

    @task
    def first(x: ReadWrite["f0"] | Read["f63"]) -> None:
        x.f0 += x.f63 + 1

    @task
    def last(x: ReadWrite["f63"] | Read["f0"]) -> None:
        x.f63 += x.f0 + 1

    @task
    def all_of_them(x: ReadWrite) -> None:
        for name in names:
            getattr(x, name)[...] += 1

    for _ in range(3):
        first(u)
        last(u[0:2])
    all_of_them(u)
    a = b = 0.0
    for _ in range(3):
        a += b + 1
        b += a + 1
    np.testing.assert_array_equal(u.numpy("f0"), [a + 1, a + 1, 4, 4])
    np.testing.assert_array_equal(u.numpy("f63"), [b + 1, b + 1, 1, 1])
    np.testing.assert_array_equal(u.numpy("f31"), 1.0)
    with pytest.raises(BurnishError, match="64"):
        rt.region(4, dict.fromkeys([*names, "one_more"], "f8"))


def test_four_dimensions(context: dict[str, Any]) -> None:
    shape = (3, 4, 2, 5)
    u = rt.region(shape, "i8")
    p = rt.block(u, (3, 2, 1, 2))
    halo = rt.ghost(p, (1, 1, 0, 1), wrap=True)
    v = rt.region(shape, "i8")
    q = rt.block(v, (3, 2, 1, 2))

    @task
    def number(x: Write, color: tuple[int, ...]) -> None:
        x[...] = 1000 * color[0] + 100 * color[1] + color[3]

    @task
    def spread(to: Write, near: Read) -> None:
        to[...] = near.sum()

    number.map(p, p[each], each)
    spread.map((3, 2, 1, 2), q[each], halo[each])
    expected = np.zeros(shape, np.int64)
    for index in np.ndindex(shape):
        expected[index] = 1000 * index[0] + 100 * (index[1] // 2) + (0 if index[3] < 2 else 1)
    np.testing.assert_array_equal(u.numpy(), expected)
    flat, result = expected.ravel(), v.numpy()
    for color in np.ndindex(3, 2, 1, 2):
        near = flat[halo[color].ispace.linear_points()].sum()
        block = tuple(slice(*s) for s in zip(*q[color].ispace.bounds, strict=True))
        np.testing.assert_array_equal(result[block], near)


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "u8", "f4", "c8", "c16"])
@pytest.mark.parametrize("inner", [(), (3,), (2, 2)])
def test_dtypes_and_inner_shapes(context: dict[str, Any], dtype: str, inner: tuple[int, ...]) -> None:
    u = rt.region((3, 4), {"a": (dtype, inner), "b": "f8"})
    p = rt.by_color(u, np.arange(12) % 3)

    @task
    def fill_in(x: Write["a"], value: int) -> None:
        assert x.a.dtype == np.dtype(dtype)
        assert x.a.shape[-len(inner) :] == inner or not inner
        x.a[...] = value

    @task
    def flip(x: ReadWrite["a"]) -> None:
        x.a[...] = ~x.a if dtype == "?" else x.a + x.a

    fill_in.map(3, p[each], each)
    flip(u)
    expected = np.empty((3, 4, *inner), dtype)
    expected.reshape((12, *inner))[...] = (np.arange(12) % 3).reshape((12,) + (1,) * len(inner)).astype(dtype)
    expected = ~expected if dtype == "?" else expected + expected
    np.testing.assert_array_equal(u.numpy("a"), expected)
    u.fill(np.ones(inner, dtype), "a")
    np.testing.assert_array_equal(u.numpy("a"), np.ones((3, 4, *inner), dtype))


def test_slices_of_sparse_regions_hold_only_their_points(context: dict[str, Any]) -> None:
    u = rt.region(10, "f8")
    odd = rt.by_sets(u, [[1, 3, 5, 7, 9]])[0]
    put(odd[2:7], 1.0)  # of its bounding rectangle 1..9: points 3..7
    put(odd[rt.Rect((0,), (2,))], 2.0)
    np.testing.assert_array_equal(u.numpy(), [0, 2, 0, 1, 0, 1, 0, 1, 0, 0])
    some = rt.region(rt.IndexSpace((3, 3), np.array([0, 4, 8])), "f8", fill=1.0)
    put(some[0:2, 0:2], 5.0)
    np.testing.assert_array_equal(some.numpy(), [5, 5, 1])


def test_two_reductions_of_one_task_into_the_same_points(context: dict[str, Any]) -> None:
    @task
    def both(a: Reduce["+"], b: Reduce["+"]) -> None:
        a += 1
        b += 10

    u = rt.region(4, "f8")
    both(u, u)
    both(u[0:3], u[1:4])
    np.testing.assert_array_equal(u.numpy(), [12, 22, 22, 21])


def test_a_predicate_that_says_no(context: dict[str, Any]) -> None:
    u = rt.region(4, "f8", fill=1.0)
    p = rt.block(u, 2)

    @task
    def answer(x: Read, yes: int) -> int:
        return yes

    for yes in (0, 1):
        when = answer(u, yes)
        put.map(2, p[each], 5.0, when=when)
        accumulate.map(2, p[each], 2.0, when=when)
        values = breaks_at.map(2, p[each], each, 9, when=when)
        np.testing.assert_array_equal(u.numpy(), 8.0 if yes else 1.0)
        assert values.get() == ([0.0, 1.0] if yes else [None, None])


def test_buffers_fold_in_launch_order(context: dict[str, Any]) -> None:
    """Floating-point sums depend on the order: it is that of the launches and colors, not of the schedule."""
    values = np.random.default_rng(1).standard_normal(200) * 10.0 ** np.random.default_rng(2).integers(-8, 8, 200)
    u = rt.region(3, "f8", fill=0.1)
    p = rt.by_sets(u, [[0, 1, 2]] * 8)
    expected = np.full(3, 0.1)
    for k in range(25):
        accumulate.map(8, p[each], float(values[k]))
        for _ in range(8):
            expected += values[k]
    assert u.numpy().tobytes() == expected.tobytes()
