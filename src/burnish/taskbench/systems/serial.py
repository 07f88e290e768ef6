"""One task after another, in program order: the oracle, and the cost of nothing but the bodies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from burnish.taskbench.bodies import Buffer
from burnish.taskbench.graph import Graph
from burnish.taskbench.kernel import Kernel
from burnish.taskbench.plan import plan_of
from burnish.taskbench.systems.base import Base, Outputs, bodies_of


class Serial(Base):
    """Two buffers per point, used in turn; one core whatever ``workers`` says."""

    name = "serial"

    def version(self) -> str:
        return f"numpy {np.__version__}"

    def run(self, graphs: Sequence[Graph], kernel: Kernel) -> Outputs:
        plan, bodies = plan_of(graphs), bodies_of(graphs, kernel)
        buffers: list[list[list[Buffer]]] = [
            [list(np.empty((graph.width, graph.output), np.uint8)) for _ in range(2)] for graph in graphs
        ]
        tasks = plan.tasks
        for (g, t, p), inputs in zip(tasks, plan.inputs, strict=True):
            before = buffers[g][(t - 1) % 2]
            bodies[g](t, p, buffers[g][t % 2][p], [before[tasks[i][2]] for i in inputs])
        return Outputs(
            tuple(
                [buffers[g][(graph.steps - 1) % 2][tasks[i][2]] for i in plan.final[g]]
                for g, graph in enumerate(graphs)
            )
        )
