"""Parsl apps on the high-throughput executor (HTEX)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import psutil

from burnish.taskbench.bodies import make_body
from burnish.taskbench.graph import Graph
from burnish.taskbench.kernel import Kernel
from burnish.taskbench.systems.base import process_tree
from burnish.taskbench.systems.parsl import Parsl


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
        mine = [
            p.pid for p in psutil.process_iter(["cmdline"]) if any(self._folder in a for a in p.info["cmdline"] or ())
        ]
        return process_tree(mine)
