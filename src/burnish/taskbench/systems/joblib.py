"""joblib: one ``Parallel`` call per step (it has no dependences), threads or loky processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from burnish.taskbench.bodies import Buffer, produce
from burnish.taskbench.graph import Graph
from burnish.taskbench.kernel import Kernel
from burnish.taskbench.plan import plan_of
from burnish.taskbench.systems.base import Base, Outputs, bodies_of, missing


class Joblib(Base):
    """``backend="threading"``; the pool is kept from start to stop."""

    name, requires, backend = "joblib", "joblib>=1.4", "threading"

    def start(self, workers: int) -> None:
        try:
            import joblib
        except ImportError:
            raise missing(self.name, "joblib") from None
        self._delayed = joblib.delayed
        self._parallel: Any = joblib.Parallel(n_jobs=workers, backend=self.backend, pre_dispatch="all")
        self._parallel.__enter__()

    def stop(self) -> None:
        self._parallel.__exit__(None, None, None)

    def run(self, graphs: Sequence[Graph], kernel: Kernel) -> Outputs:
        plan, bodies, delayed = plan_of(graphs), bodies_of(graphs, kernel), self._delayed(produce)
        values: dict[int, Buffer] = {}
        for step in plan.steps:
            calls = []
            for i in step:
                g, t, p = plan.tasks[i]
                calls.append(delayed(bodies[g], t, p, *[values[j] for j in plan.inputs[i]]))
            kept = {i: values[i] for final in plan.final for i in final if i in values}
            values = dict(zip(step, self._parallel(calls), strict=True)) | kept
        return Outputs(tuple([values[i] for i in final] for final in plan.final))


class JoblibLoky(Joblib):
    """``backend="loky"``."""

    name, backend = "joblib_loky", "loky"

    def stop(self) -> None:
        super().stop()
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor().shutdown(wait=True)
