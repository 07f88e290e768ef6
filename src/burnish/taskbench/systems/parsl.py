"""Parsl apps on its thread executor and on the high-throughput executor (HTEX)."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from burnish.taskbench.bodies import Body, Buffer
from burnish.taskbench.graph import Graph
from burnish.taskbench.kernel import Kernel
from burnish.taskbench.plan import plan_of
from burnish.taskbench.systems.base import Base, Outputs, bodies_of, missing


def _point(body: Body, t: int, p: int, *values: Buffer) -> Buffer:  # Parsl gives parameters named `inputs` a meaning
    return body.produce(t, p, *values)


class Parsl(Base):
    """Futures as arguments; Parsl finds the dependences."""

    name, requires = "parsl", "parsl>=2025.1"

    def start(self, workers: int) -> None:
        try:
            import parsl
        except ImportError:
            raise missing(self.name, "parsl") from None
        self._folder = tempfile.mkdtemp(prefix="burnish-parsl-")
        config = parsl.Config(
            executors=[self._executor(workers)], run_dir=self._folder, usage_tracking=0, initialize_logging=False
        )
        self._kernel = parsl.DataFlowKernel(config)
        self._app = parsl.python_app(_point, data_flow_kernel=self._kernel)

    def _executor(self, workers: int) -> Any:
        from parsl.executors import ThreadPoolExecutor

        return ThreadPoolExecutor(max_threads=workers)

    def stop(self) -> None:
        self._kernel.cleanup()
        shutil.rmtree(self._folder, ignore_errors=True)

    def run(self, graphs: Sequence[Graph], kernel: Kernel) -> Outputs:
        start = time.perf_counter()
        plan, bodies = plan_of(graphs), bodies_of(graphs, kernel)
        readers, values = [len(users) for users in plan.successors], dict[int, Any]()
        for i, ((g, t, p), inputs) in enumerate(zip(plan.tasks, plan.inputs, strict=True)):
            values[i] = self._app(bodies[g], t, p, *[values[j] for j in inputs])
            for j in inputs:
                readers[j] -= 1
                if readers[j] == 0:
                    del values[j]
        launched = time.perf_counter() - start
        results = {i: value.result() for i, value in values.items()}
        return Outputs(tuple([results[i] for i in final] for final in plan.final), launched)
