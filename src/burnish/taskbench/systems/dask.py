"""Dask on threads: a raw graph handed to the scheduler, and ``dask.delayed``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from burnish.taskbench.bodies import produce
from burnish.taskbench.graph import Graph
from burnish.taskbench.kernel import Kernel
from burnish.taskbench.plan import plan_of
from burnish.taskbench.systems.base import Base, Outputs, bodies_of, missing


def raw_graph(graphs: Sequence[Graph], kernel: Kernel) -> tuple[dict[Any, Any], list[list[Any]]]:
    """The tasks as a Dask graph, and the keys of each graph's last step."""
    plan, bodies = plan_of(graphs), bodies_of(graphs, kernel)
    keys = [("point", i) for i in range(len(plan))]
    graph = {
        keys[i]: (produce, bodies[g], t, p, *[keys[j] for j in inputs])
        for i, ((g, t, p), inputs) in enumerate(zip(plan.tasks, plan.inputs, strict=True))
    }
    return graph, [[keys[i] for i in final] for final in plan.final]


class Dask(Base):
    """``dask.threaded.get`` of a raw graph, built within the run."""

    name, requires = "dask", "dask>=2025.1"

    def start(self, workers: int) -> None:
        try:
            import dask.threaded
        except ImportError:
            raise missing(self.name, "dask") from None
        self._dask = dask
        self._pool = ThreadPoolExecutor(workers)

    def stop(self) -> None:
        self._pool.shutdown()

    def run(self, graphs: Sequence[Graph], kernel: Kernel) -> Outputs:
        start = time.perf_counter()
        graph, final = raw_graph(graphs, kernel)
        launched = time.perf_counter() - start
        values = self._dask.threaded.get(graph, final, pool=self._pool)
        return Outputs(tuple(map(list, values)), launched)


class DaskDelayed(Dask):
    """``dask.delayed`` calls, then one ``dask.compute`` on the same threads."""

    name = "dask_delayed"

    def run(self, graphs: Sequence[Graph], kernel: Kernel) -> Outputs:
        start = time.perf_counter()
        plan, bodies = plan_of(graphs), bodies_of(graphs, kernel)
        task = self._dask.delayed(produce, pure=False)
        values: list[Any] = []
        for (g, t, p), inputs in zip(plan.tasks, plan.inputs, strict=True):
            values.append(task(bodies[g], t, p, *[values[j] for j in inputs]))
        launched = time.perf_counter() - start
        wanted = [[values[i] for i in final] for final in plan.final]
        results = self._dask.compute(*wanted, scheduler="threads", pool=self._pool)
        return Outputs(tuple(map(list, results)), launched)
