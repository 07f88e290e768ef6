"""Every system executes graphs correctly; what executes them wrongly is caught."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burnish.core.errors import EnvironmentProblem, MissingExtraError
from burnish.taskbench import Graph, GraphError, Kernel, Outputs, Unsupported, ValidationError, session
from burnish.taskbench.bodies import Buffer
from burnish.taskbench.graph import TYPES
from burnish.taskbench.plan import plan_of
from burnish.taskbench.session import cpu_seconds
from burnish.taskbench.systems import SYSTEMS, load
from burnish.taskbench.systems.base import Base, bodies_of
from burnish.taskbench.systems.serial import Serial

LIGHT = ("serial", "threads", "threads_barrier", "dask", "joblib")
HEAVY = tuple(name for name in SYSTEMS if name not in LIGHT)
RANDOM = Graph(50, 31, "random_nearest", 5, 3, 0.7)
TOGETHER = (replace(RANDOM, steps=12), Graph(7, 8, "spread", 2, 3, index=1, output=64), Graph(9, 6, "tree", index=2))
COUNTED = Kernel("compute_bound", 2)


@pytest.fixture
def no_children() -> Iterator[None]:
    """Fails if a process that this test started outlives it."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    yield
    left = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    _, alive = psutil.wait_procs(left, timeout=10)
    names = [
        process.name() for process in alive if process.is_running() and "resource_tracker" not in str(process.cmdline())
    ]
    assert not names


def _execute(name: str) -> None:
    try:
        with session(name, 2) as opened:
            # outputs and number of executed tasks are checked by every run
            assert opened.run([RANDOM], COUNTED).tasks == 1550
            run = opened.run(TOGETHER, COUNTED)
            assert run.tasks == sum(graph.counts().tasks for graph in TOGETHER)
            assert run.elapsed > 0 and run.cpu > 0
            assert opened.version and opened.system.processes()
            narrow = [Graph(5, 1, type_, radix=min(1, 3), period=1) for type_ in TYPES]
            for graph in narrow[:4]:
                opened.run([graph], Kernel())
    except (MissingExtraError, Unsupported) as absent:
        pytest.skip(str(absent))


@pytest.mark.parametrize("name", LIGHT)
def test_system_executes_graphs(name: str, no_children: None) -> None:
    _execute(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", HEAVY)
def test_heavy_system_executes_graphs(name: str, no_children: None) -> None:
    _execute(name)


@pytest.mark.parametrize("type_", TYPES)
def test_threads_execute_every_type(type_: str) -> None:
    graph = Graph(15, 8, type_, radix=3, period=2, fraction=0.5)
    for name in ("serial", "threads"):
        with session(name, 3) as opened:
            assert opened.run([graph], Kernel()).tasks == graph.counts().tasks


class Broken(Serial):
    """Gives one task, in place of one of its inputs, another buffer of the step before."""

    def __init__(self, edge: int) -> None:
        self.edge = edge

    def run(self, graphs: Sequence[Graph], kernel: Kernel) -> Outputs:
        plan, (body,) = plan_of(graphs), bodies_of(graphs, kernel)
        values: list[Buffer] = []
        seen = 0
        for (_, t, p), inputs in zip(plan.tasks, plan.inputs, strict=True):
            given_inputs = [values[i] for i in inputs]
            if seen <= self.edge < seen + len(inputs):
                dropped = inputs[self.edge - seen]
                others = [i for i in range(len(values)) if i != dropped]
                given_inputs[self.edge - seen] = values[others[-1]]
            seen += len(inputs)
            values.append(body.produce(t, p, *given_inputs))
        return Outputs(([values[i] for i in plan.final[0]],))


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_every_dropped_edge_is_caught(data: st.DataObject) -> None:
    type_ = data.draw(st.sampled_from([t for t in TYPES if t != "trivial"]))
    graph = Graph(6, 6, type_, radix=3, period=2, fraction=0.5)
    edge = data.draw(st.integers(0, graph.counts().dependencies - 1))
    with session(Broken(edge), 1) as opened, pytest.raises(ValidationError, match=r"expected .* got"):
        opened.run([graph], Kernel())
    with session(Broken(graph.counts().dependencies), 1) as opened:  # no such edge: nothing is dropped
        opened.run([graph], Kernel())


class Forgetful(Serial):
    """Executes a task twice, or claims outputs that nobody produced."""

    def __init__(self, mistake: str) -> None:
        self.mistake = mistake

    def run(self, graphs: Sequence[Graph], kernel: Kernel) -> Outputs:
        outputs = super().run(graphs, kernel)
        if self.mistake == "twice":
            bodies_of(graphs, kernel)[0].produce(0, 0)
        if self.mistake == "zeros":
            return Outputs(tuple([np.zeros_like(o) for o in final] for final in outputs.final))
        if self.mistake == "fewer":
            return Outputs(tuple(final[1:] for final in outputs.final))
        return outputs


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ("twice", "executed 13 tasks, the graphs have 12"),
        ("zeros", "wrong final output of point 0"),
        ("fewer", "3 final"),
    ],
)
def test_other_mistakes_are_caught(mistake: str, message: str) -> None:
    with session(Forgetful(mistake), 1) as opened, pytest.raises(ValidationError, match=message):
        opened.run([Graph(3, 4)], Kernel())


@pytest.mark.parametrize("name", ["threads", "threads_barrier", "dask", "joblib", "processes"])
def test_errors_of_tasks_reach_the_caller(name: str) -> None:
    graph, wrong = Graph(3, 4), Kernel("memory_bound")
    if name == "processes":
        pytest.skip("covered by the heavy run")
    with session(name, 2) as opened, pytest.raises(GraphError, match="memory_bound needs scratch"):
        opened.run([graph], wrong)


def test_a_failing_body_ends_the_run() -> None:
    class Failing(Base):
        name = "failing"

        def run(self, graphs: Sequence[Graph], kernel: Kernel) -> Outputs:
            threads = load("threads")
            threads.start(2)
            try:
                plan_of(graphs).inputs[5] = ()  # a task loses its inputs
                return threads.run(graphs, kernel)
            finally:
                threads.stop()

    with session(Failing(), 2) as opened, pytest.raises(ValidationError, match="expected 2 inputs, got 0"):
        opened.run([Graph(3, 5, index=7)], Kernel())


def test_unknown_and_absent_systems() -> None:
    with pytest.raises(GraphError, match="unknown system 'treads'; did you mean 'threads'"):
        load("treads")
    missing = MissingExtraError("system 'x' needs y: pip install 'burnish[taskbench]'")
    assert isinstance(missing, EnvironmentProblem) and missing.exit_code == 4
    assert Unsupported("no").exit_code == 4 and Unsupported("no").reason == "no"


def test_uninstalled_package_names_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "dask.threaded", None)
    monkeypatch.setitem(__import__("sys").modules, "dask", None)
    with pytest.raises(MissingExtraError, match=r"system 'dask' needs dask: pip install 'burnish\[taskbench\]'"):
        with session("dask", 1):
            pass


def test_native_systems_refuse_other_bodies() -> None:
    from burnish.taskbench.systems.base import native_only

    with pytest.raises(Unsupported, match="openmp runs native bodies only, not empty in numpy"):
        native_only("openmp", Kernel(impl="numpy"))


def test_cpu_clock_of_a_child_counts_its_work() -> None:
    import subprocess
    import sys

    with subprocess.Popen([sys.executable, "-c", "sum(range(3_000_000)); input()"], stdin=subprocess.PIPE) as child:
        process = psutil.Process(child.pid)
        for _ in range(200):
            if process.status() == psutil.STATUS_SLEEPING and sum(process.cpu_times()[:2]) > 0.02:
                break
            __import__("time").sleep(0.02)
        times = process.cpu_times()
        assert cpu_seconds([child.pid])[child.pid] == pytest.approx(times.user + times.system, abs=0.05)
        child.communicate(b"\n")
    assert cpu_seconds([child.pid]) == {}


def test_every_impl_in_processes_and_threads() -> None:
    for impl in ("numba", "numpy", "python"):
        with session("threads", 2) as opened:
            assert opened.run([Graph(4, 3)], Kernel("busy_wait", 2, impl=impl)).tasks == 12  # type: ignore[arg-type]
