"""dask.distributed: scheduler here and one worker process with threads."""

from __future__ import annotations

import time
from collections.abc import Sequence

from burnish.taskbench.graph import Graph
from burnish.taskbench.kernel import Kernel
from burnish.taskbench.systems.base import Base, Outputs, missing
from burnish.taskbench.systems.dask import raw_graph


class Distributed(Base):
    """``Client.get`` of a raw graph."""

    name, requires = "distributed", "distributed>=2025.1"

    def start(self, workers: int) -> None:
        try:
            import distributed
        except ImportError:
            raise missing(self.name, "distributed") from None
        self._cluster = distributed.LocalCluster(
            n_workers=1, threads_per_worker=workers, processes=True, dashboard_address=None, memory_limit=0
        )
        self._client = distributed.Client(self._cluster)
        self._client.wait_for_workers(1)

    def stop(self) -> None:
        self._client.close()
        self._cluster.close()

    def run(self, graphs: Sequence[Graph], kernel: Kernel) -> Outputs:
        start = time.perf_counter()
        graph, final = raw_graph(graphs, kernel)
        futures = self._client.get(graph, final, sync=False)
        launched = time.perf_counter() - start
        return Outputs(tuple(map(list, self._client.gather(futures))), launched)
