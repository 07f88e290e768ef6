"""``concurrent.futures`` threads, by dependence counting."""

from __future__ import annotations

import platform
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from burnish.taskbench.bodies import Body, Buffer
from burnish.taskbench.graph import Graph
from burnish.taskbench.kernel import Kernel
from burnish.taskbench.plan import Plan, plan_of
from burnish.taskbench.systems.base import Base, Outputs, bodies_of


class Threads(Base):
    """A task is submitted by the worker that finishes its last input."""

    name = "threads"

    def start(self, workers: int) -> None:
        self._pool = ThreadPoolExecutor(workers)

    def stop(self) -> None:
        self._pool.shutdown()

    def version(self) -> str:
        return f"python {platform.python_version()}"

    def run(self, graphs: Sequence[Graph], kernel: Kernel) -> Outputs:
        return _Countdown(plan_of(graphs), bodies_of(graphs, kernel), self._pool).run()


class _Countdown:
    def __init__(self, plan: Plan, bodies: list[Body], pool: ThreadPoolExecutor) -> None:
        self.plan, self.bodies, self.pool = plan, bodies, pool
        self.values: list[Buffer | None] = [None] * len(plan)
        self.waiting = [len(inputs) for inputs in plan.inputs]
        self.readers = [len(users) for users in plan.successors]
        self.left, self.lock, self.done = len(plan), threading.Lock(), threading.Event()
        self.error: BaseException | None = None

    def run(self) -> Outputs:
        for i in [i for i, count in enumerate(self.waiting) if count == 0]:
            self.pool.submit(self.execute, i)
        self.done.wait()
        if self.error:
            raise self.error
        return Outputs(tuple([self.values[i] for i in final] for final in self.plan.final))  # type: ignore[misc]

    def execute(self, i: int) -> None:
        try:
            g, t, p = self.plan.tasks[i]
            self.values[i] = self.bodies[g].produce(t, p, *[self.values[j] for j in self.plan.inputs[i]])
        except BaseException as error:  # whatever a body raises ends the run and is raised there
            self.error = error
            self.done.set()
            return
        for user in self.finish(i):
            self.pool.submit(self.execute, user)

    def finish(self, i: int) -> list[int]:
        with self.lock:
            for j in self.plan.inputs[i]:
                self.readers[j] -= 1
                if self.readers[j] == 0:
                    self.values[j] = None
            for user in self.plan.successors[i]:
                self.waiting[user] -= 1
            self.left -= 1
            if self.left == 0:
                self.done.set()
            return [user for user in self.plan.successors[i] if self.waiting[user] == 0]
