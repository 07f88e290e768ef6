"""Legate Python tasks: two stores per point, used in turn; Legate finds the dependences."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from burnish.taskbench.bodies import Body
from burnish.taskbench.errors import Unsupported
from burnish.taskbench.graph import Graph
from burnish.taskbench.kernel import Kernel
from burnish.taskbench.plan import plan_of
from burnish.taskbench.systems.base import Base, Outputs, bodies_of

_bodies: list[Body] = []  # of the run in progress; tasks run in this process and name theirs by number


def _execute(g: int, t: int, p: int, output: Any, inputs: Sequence[Any]) -> None:
    _bodies[g](t, p, np.asarray(output).view(np.uint8), [np.asarray(i).view(np.uint8) for i in inputs])


@cache
def _task(inputs: int) -> Any:
    """The task with that many inputs: Legate wants a signature that names each one."""
    from legate.core import task as legate

    names = [f"i{k}" for k in range(inputs)]
    parameters = "".join(f", {name}: InputStore" for name in names)
    scope = {"execute": _execute, "InputStore": legate.InputStore, "OutputStore": legate.OutputStore}
    exec(
        f"def point(g: int, t: int, p: int, output: OutputStore{parameters}) -> None:\n"
        f"    execute(g, t, p, output, [{', '.join(names)}])",
        scope,
    )
    return legate.task(scope["point"], options=None)


class Legate(Base):
    """Started once per process: Legate cannot be stopped and started again with other resources."""

    name, requires = "legate", "legate>=25.7"
    _started: int | None = None

    def start(self, workers: int) -> None:
        if Legate._started not in (None, workers):
            raise Unsupported(
                f"legate runs with {Legate._started} workers already and cannot be restarted with {workers}"
            )
        os.environ.setdefault("LEGATE_CONFIG", f"--cpus {workers} --gpus 0 --omps 0 --sysmem 256")
        try:
            from legate.core import get_legate_runtime, types
        except ImportError as error:
            raise Unsupported(f"legate cannot be imported: {error}") from None
        self._runtime, self._int64, Legate._started = get_legate_runtime(), types.int64, workers

    def stop(self) -> None:
        self._runtime.issue_execution_fence(block=True)

    def run(self, graphs: Sequence[Graph], kernel: Kernel) -> Outputs:
        plan, start = plan_of(graphs), time.perf_counter()
        _bodies[:] = bodies_of(graphs, kernel)
        stores = [
            [[self._runtime.create_store(self._int64, (graph.output // 8,)) for _ in range(graph.width)] for _ in "01"]
            for graph in graphs
        ]
        for (g, t, p), inputs in zip(plan.tasks, plan.inputs, strict=True):
            before = stores[g][(t - 1) % 2]
            _task(len(inputs))(g, t, p, stores[g][t % 2][p], *[before[plan.tasks[i][2]] for i in inputs])
        launched = time.perf_counter() - start
        self._runtime.issue_execution_fence(block=True)
        final = []
        for g, graph in enumerate(graphs):
            last = stores[g][(graph.steps - 1) % 2]
            final.append(
                [np.asarray(last[plan.tasks[i][2]].get_physical_store()).view(np.uint8) for i in plan.final[g]]
            )
        return Outputs(tuple(final), launched)
