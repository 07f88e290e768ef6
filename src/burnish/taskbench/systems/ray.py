"""Ray: one remote call per task, or one method call on the actor that owns the point."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from typing import Any

from burnish.taskbench.bodies import produce
from burnish.taskbench.graph import Graph
from burnish.taskbench.kernel import Kernel
from burnish.taskbench.ledger import collect
from burnish.taskbench.plan import plan_of
from burnish.taskbench.systems.base import Base, Outputs, bodies_of, missing


def _wait(seconds: float) -> None:
    time.sleep(seconds)


class Ray(Base):
    """Tasks. Uses the cluster of ``RAY_ADDRESS`` where that is set, else starts one of its own and stops it."""

    name, requires = "ray", "ray>=2.40"

    def start(self, workers: int) -> None:
        try:
            import ray
        except ImportError:
            raise missing(self.name, "ray") from None
        self._ray, self.workers, local = ray, workers, {}
        if not os.environ.get("RAY_ADDRESS"):
            local = {"address": "local", "num_cpus": workers, "include_dashboard": False}
            local |= {"object_store_memory": 100 << 20, "_system_config": {"enable_metrics_collection": False}}
        ray.init(logging_level="ERROR", log_to_driver=False, configure_logging=True, **local)
        self._prepare()
        ray.get([ray.remote(num_cpus=0)(_wait).remote(0.05) for _ in range(workers)])  # workers exist from here on

    def _prepare(self) -> None:
        self._produce = self._ray.remote(produce)

    def stop(self) -> None:
        self._ray.shutdown()

    def call(self, body: Any, graph: Graph, t: int, p: int, inputs: list[Any]) -> Any:
        """Launch one task; its future."""
        return self._produce.remote(body, t, p, *inputs)

    def run(self, graphs: Sequence[Graph], kernel: Kernel) -> Outputs:
        start = time.perf_counter()
        plan, bodies = plan_of(graphs), bodies_of(graphs, kernel)
        readers, values = [len(users) for users in plan.successors], dict[int, Any]()
        for i, ((g, t, p), inputs) in enumerate(zip(plan.tasks, plan.inputs, strict=True)):
            values[i] = self.call(bodies[g], graphs[g], t, p, [values[j] for j in inputs])
            for j in inputs:
                readers[j] -= 1
                if readers[j] == 0:
                    del values[j]
        launched = time.perf_counter() - start
        final = tuple(self._ray.get([values[i] for i in ids]) for ids in plan.final)
        self._ray.wait(list(values.values()), num_returns=len(values), fetch_local=False)  # those without a reader
        return Outputs(final, launched, self._elsewhere(kernel.ledger))

    def _elsewhere(self, path: str | None) -> int:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

        others = {n["NodeManagerHostname"]: n["NodeID"] for n in self._ray.nodes() if n["Alive"]}
        others.pop(socket.gethostname(), None)
        count = self._ray.remote(num_cpus=0)(collect)
        return sum(
            self._ray.get([count.options(scheduling_strategy=On(n, soft=False)).remote(path) for n in others.values()])
        )
