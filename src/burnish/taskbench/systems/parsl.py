"""Parsl apps on its thread executor and on the high-throughput executor (HTEX)."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from burnish.taskbench.bodies import Body, Buffer, make_body
from burnish.taskbench.graph import Graph
from burnish.taskbench.kernel import Kernel
from burnish.taskbench.plan import plan_of
from burnish.taskbench.systems.base import Base, Outputs, bodies_of, missing, process_tree


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


class ParslHtex(Parsl):
    """Worker processes behind an interchange process."""

    name = "parsl_htex"

    def _executor(self, workers: int) -> Any:
        from parsl.executors import HighThroughputExecutor
        from parsl.providers import LocalProvider

        programs = Path(sys.executable).parent  # where Parsl's own programs are, whether or not PATH says so
        return HighThroughputExecutor(
            address="127.0.0.1", max_workers_per_node=workers, cores_per_worker=0.001, encrypted=False,
            interchange_launch_cmd=[sys.executable, str(programs / "interchange.py")],
            provider=LocalProvider(max_blocks=1, worker_init=f"export PATH={programs}:$PATH"),
        )  # fmt: skip

    def start(self, workers: int) -> None:
        super().start(workers)
        self._app(make_body(Graph(1, 1), Kernel()), 0, 0).result()  # the block of workers is up

    def processes(self) -> list[int]:  # Parsl detaches its workers; their command line names the run's folder
        mine = [p.pid for p in psutil.process_iter(["cmdline"]) if any(self._folder in a for a in p.info["cmdline"] or ())]
        return process_tree(mine)
