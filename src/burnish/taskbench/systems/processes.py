"""``concurrent.futures`` processes, by dependence counting in the submitting process."""

from __future__ import annotations

import multiprocessing
import platform
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from queue import SimpleQueue

from burnish.taskbench.bodies import Buffer, produce
from burnish.taskbench.graph import Graph
from burnish.taskbench.kernel import Kernel
from burnish.taskbench.plan import plan_of
from burnish.taskbench.systems.base import Base, Outputs, bodies_of


class Processes(Base):
    """Inputs and outputs travel by pickle; workers are spawned, since the parent has threads."""

    name = "processes"

    def start(self, workers: int) -> None:
        self._pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))
        for future in [self._pool.submit(platform.python_version) for _ in range(workers)]:
            future.result()  # start-up is not part of a run

    def stop(self) -> None:
        self._pool.shutdown()

    def version(self) -> str:
        return f"python {platform.python_version()}"

    def run(self, graphs: Sequence[Graph], kernel: Kernel) -> Outputs:
        plan, bodies = plan_of(graphs), bodies_of(graphs, kernel)
        waiting = [len(inputs) for inputs in plan.inputs]
        readers = [len(users) for users in plan.successors]
        values: dict[int, Buffer] = {}
        finished: SimpleQueue[tuple[int, Future[Buffer]]] = SimpleQueue()

        def submit(i: int) -> None:
            g, t, p = plan.tasks[i]
            future = self._pool.submit(produce, bodies[g], t, p, *[values[j] for j in plan.inputs[i]])
            future.add_done_callback(lambda future: finished.put((i, future)))

        for i in [i for i, count in enumerate(waiting) if count == 0]:
            submit(i)
        for _ in range(len(plan)):
            i, future = finished.get()
            values[i] = future.result()
            for j in plan.inputs[i]:
                readers[j] -= 1
                if readers[j] == 0:
                    del values[j]
            for user in plan.successors[i]:
                waiting[user] -= 1
                if waiting[user] == 0:
                    submit(user)
        return Outputs(tuple([values[i] for i in final] for final in plan.final))
