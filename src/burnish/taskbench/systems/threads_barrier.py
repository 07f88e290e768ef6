"""``concurrent.futures`` threads with a barrier after every step."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, wait

from burnish.taskbench.bodies import Buffer
from burnish.taskbench.graph import Graph
from burnish.taskbench.kernel import Kernel
from burnish.taskbench.plan import plan_of
from burnish.taskbench.systems.base import Outputs, bodies_of
from burnish.taskbench.systems.threads import Threads


class ThreadsBarrier(Threads):
    """All tasks of a step are submitted, then waited for."""

    name = "threads_barrier"

    def run(self, graphs: Sequence[Graph], kernel: Kernel) -> Outputs:
        plan, bodies = plan_of(graphs), bodies_of(graphs, kernel)
        values: dict[int, Buffer] = {}
        for step in plan.steps:
            futures: dict[int, Future[Buffer]] = {}
            for i in step:
                g, t, p = plan.tasks[i]
                futures[i] = self._pool.submit(bodies[g].produce, t, p, *[values[j] for j in plan.inputs[i]])
            wait(futures.values())
            values = {i: future.result() for i, future in futures.items()} | {
                i: values[i] for final in plan.final for i in final if i in values
            }
        return Outputs(tuple([values[i] for i in final] for final in plan.final))
