"""A mapper changes when tasks run, never what they compute."""

from __future__ import annotations

import pytest

from burnish import runtime as rt
from burnish.runtime import Mapper, ReadWrite, TaskInfo, Write, each, native_task, task
from burnish.runtime.errors import RuntimeProblem


class Recorder(Mapper):
    """Prefers tasks called ``urgent``."""

    def __init__(self) -> None:
        self.asked: list[TaskInfo] = []

    def priority(self, task: TaskInfo) -> int:
        self.asked.append(task)
        return 1 if task.name == "urgent" else 0


def make(order: list[str]):
    def note(x: ReadWrite, name):
        order.append(name)

    return task(name="normal")(note), task(name="urgent")(note)


def test_priority_is_asked_once_per_task_and_context() -> None:
    mapper = Recorder()
    normal, urgent = make([])
    for contexts in (1, 2):
        with rt.start(mapper=mapper, workers=1):
            u = rt.region(4, "f8")
            p = rt.block(u, 2)
            for _ in range(5):
                normal.map(2, p[each], "n")
                urgent(p[0], "u")
        assert [t.name for t in mapper.asked] == ["normal", "urgent"] * contexts
    info = mapper.asked[0]
    assert (info.name, info.kernel, info.priority, [q.name for q in info.regions]) == ("normal", "python", 0, ["x"])


def _run_both(**settings) -> list[str]:
    """Names in the order in which independent tasks ran that all became ready at the same time."""
    order: list[str] = []
    normal, urgent = make(order)

    @task
    def start(x: Write):
        x[:] = 0

    with rt.start(workers=1, trace=False, **settings):
        u = rt.region(8, "f8")
        p = rt.block(u, 8)
        for c in range(4):
            normal(p[c], f"n{c}")
        for c in range(4, 8):
            urgent(p[c], f"u{c}")
    return order


def test_priority_decides_the_order_of_ready_tasks() -> None:
    assert _run_both() == ["n0", "n1", "n2", "n3", "u4", "u5", "u6", "u7"]
    assert _run_both(mapper=Recorder()) == ["u4", "u5", "u6", "u7", "n0", "n1", "n2", "n3"]


def test_declared_priority_stands_without_an_opinion() -> None:
    class Silent(Mapper):
        pass

    class Partial:  # any object will do
        def shard(self, task, color, domain, n):
            return 0

    order: list[str] = []

    @task(priority=1)
    def first(x: ReadWrite):
        order.append("first")

    @task
    def second(x: ReadWrite):
        order.append("second")

    for mapper in (None, Silent(), Partial()):
        order.clear()
        with rt.start(mapper=mapper, workers=1, trace=False):
            p = rt.block(rt.region(4, "f8"), 2)
            second(p[0])
            first(p[1])
        assert order == ["first", "second"]


def test_native_tasks_have_infos_too() -> None:
    import ctypes

    body = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda call: None)
    mapper = Recorder()
    with rt.start(mapper=mapper):
        native_task(body, {"x": ReadWrite}, name="kernel", priority=2)(rt.region(4, "f8"))
    assert (mapper.asked[0].name, mapper.asked[0].kernel, mapper.asked[0].fn) == ("kernel", "native", None)


def test_a_wrong_answer_is_an_error() -> None:
    class Wrong:
        def priority(self, task):
            return "high"

    @task
    def f(x: ReadWrite):
        pass

    with rt.start(mapper=Wrong()):
        with pytest.raises(RuntimeProblem, match="mapper's priority of task 'f' is 'high'; it must be an int"):
            f(rt.region(4, "f8"))
