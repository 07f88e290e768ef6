"""Inner tasks: bodies that launch tasks. What they compute is compared with the same launches written out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from burnish import runtime as rt
from burnish.runtime import Read, ReadWrite, Reduce, Write, each, task
from burnish.runtime.errors import AliasError, PrivilegeError, TaskSignatureError


@pytest.fixture(autouse=True, params=["serial", "threads"])
def _context(request: pytest.FixtureRequest) -> Iterator[None]:
    with rt.start(executor=request.param, workers=3, chaos=7):
        yield


@task
def scale(x: ReadWrite, k: float) -> float:
    x *= k
    return float(x.sum())


@task
def put(x: Write, k: float):
    x[:] = k


@task
def take(x: Read) -> float:
    return float(x.sum())


@task
def count(x: Reduce["+"]):
    x += 1


@task(inner=True)
def twice(x: ReadWrite, k: float) -> float:
    scale(x, k)
    return scale(x, k)


def test_children_run_at_their_place() -> None:
    u = rt.region(12, "f8", fill=1.0)
    scale(u, 3.0)
    future = twice(u, 2.0)
    scale(u, 5.0)
    assert future.get() == 12 * 3 * 4
    assert (u.numpy() == 60).all()


def test_map_passes_pieces_and_colors_and_collects_values() -> None:
    u = rt.region((4, 6), "f8", fill=1.0)
    p = rt.block(u, (2, 3))

    @task(inner=True)
    def mark(x: ReadWrite, color: tuple, k: float) -> float:
        assert isinstance(x, rt.Region)
        put(x, 10.0 * color[0] + color[1])
        return scale(x, k)

    values = mark.map((2, 3), p[each], each, 2.0).get()
    expected = np.array([[10.0 * i + j for j in range(3)] for i in range(2)]) * 2
    assert values == (expected * 4).ravel().tolist()
    assert (u.numpy() == expected.repeat(2, 0).repeat(2, 1)).all()


def test_predicate_and_futures_as_arguments() -> None:
    u = rt.region(8, "f8", fill=1.0)
    p = rt.block(u, 2)
    no = take(u).map(lambda total: total > 100)
    assert twice.map(2, p[each], 2.0, when=no).get() == [None, None]
    twice(u, take(u))
    assert (u.numpy() == 64).all()


def test_plain_values_are_returned_as_futures() -> None:
    @task(inner=True)
    def name(x: Read) -> str:
        return "abc"

    assert name(rt.region(3, "f8")).get() == "abc"
    assert name.map(2, rt.block(rt.region(4, "f8"), 2)[each]).reduce("+").get() == "abcabc"


def test_nested_inner_tasks() -> None:
    @task(inner=True)
    def outer(x: ReadWrite):
        p = rt.block(x, 2)
        twice.map(2, p[each], 2.0)
        twice(x[0:2], 3.0)

    u = rt.region(4, "f8", fill=1.0)
    outer(u)
    assert u.numpy().tolist() == [36, 36, 4, 4]


def test_regions_made_inside_are_free() -> None:
    @task(inner=True)
    def sum_of_squares(x: Read) -> float:
        own = rt.region(4, "f8", fill=2.0)
        scale(own, 3.0)
        with own.host("rw") as a:
            a[0] = 0.0
        return take(own)

    assert sum_of_squares(rt.region(4, "f8")).get() == 18.0


def test_writers_may_read_what_their_children_wrote() -> None:
    @task(inner=True)
    def make(x: Write) -> float:
        put(x, 2.0)
        scale(x, 2.0)
        count(x)
        return take(x)

    assert make(rt.region(4, "f8")).get() == 20.0


CHILDREN = {
    "read": lambda x: take(x),
    "write": lambda x: put(x, 1.0),
    "update": lambda x: scale(x, 1.0),
    "count": lambda x: count(x),
    "fill": lambda x: x.fill(0.0),
    "host": lambda x: x.numpy(),
}
PERMITTED = {
    "Read": {"read", "host"},
    "Reduce": {"count"},
    "Write": set(CHILDREN),
    "ReadWrite": set(CHILDREN),
}


@pytest.mark.parametrize("child", CHILDREN)
@pytest.mark.parametrize("privilege", PERMITTED)
def test_children_are_bounded_by_privilege(privilege: str, child: str) -> None:
    declared = {"Read": Read, "Write": Write, "ReadWrite": ReadWrite, "Reduce": Reduce["+"]}[privilege]
    action = CHILDREN[child]

    def body(x):
        action(x)

    body.__annotations__["x"] = declared
    parent = task(inner=True)(body)
    u = rt.region(4, "f8", name="u")
    if child in PERMITTED[privilege]:
        parent(u)
        rt.fence()
    else:
        with pytest.raises(PrivilegeError, match=r"on 'u', which inner task 'body' does not have"):
            parent(u)


def test_children_are_bounded_by_points() -> None:
    u = rt.region(16, "f8", name="u")
    p = rt.block(u, 4)

    @task(inner=True)
    def stray(x: ReadWrite):
        scale(x.root, 2.0)

    with pytest.raises(PrivilegeError, match="task 'scale' needs ReadWrite on 'u'"):
        stray(p[1])

    @task(inner=True)
    def halves(a: ReadWrite, b: ReadWrite):
        scale(a.root[0:8], 2.0)

    halves(p[0], p[1])  # two arguments together cover it
    with pytest.raises(PrivilegeError):
        halves(p[0], p[2])


def test_children_are_bounded_by_field() -> None:
    @task
    def move(p: ReadWrite["x"] | Read["v"]):
        p.x[:] += p.v

    @task(inner=True)
    def step(p: ReadWrite["x"] | Read["v"]):
        move(p)

    @task(inner=True)
    def wrong(p: ReadWrite["v"] | Read["x"]):
        move(p)

    points = rt.region(4, {"x": "f8", "v": "f8"}, fill=1.0)
    step(points)
    assert (points.numpy("x") == 2).all()
    with pytest.raises(PrivilegeError, match="field 'x'"):
        wrong(points)


def test_arguments_of_an_inner_task_are_checked_like_any_others() -> None:
    u = rt.region(8, "f8")

    @task(inner=True)
    def two(a: ReadWrite, b: Read):
        pass

    with pytest.raises(AliasError):
        two(u, u[2:4])
    with pytest.raises(TaskSignatureError, match="needs a Region, got int"):
        two(u, 3)


def test_an_error_in_an_inner_body_comes_at_once_and_leaves_no_bounds_behind() -> None:
    u = rt.region(4, "f8", fill=1.0)

    @task(inner=True)
    def broken(x: Read):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no") as caught:
        broken(u)
    assert caught.value.__notes__ == ["in inner task 'broken'"]
    scale(u, 2.0)  # not bounded by Read any more
    assert (u.numpy() == 2).all()
