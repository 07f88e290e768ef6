"""mpi4py: ranks under ``mpiexec``."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

from burnish.taskbench.bodies import Buffer
from burnish.taskbench.errors import Unsupported
from burnish.taskbench.systems.base import missing
from burnish.taskbench.systems.spmd import Spmd


class MpiTransport:
    """Non-blocking point-to-point of the world communicator."""

    def __init__(self) -> None:
        from mpi4py import MPI

        self._mpi, self._world = MPI, MPI.COMM_WORLD
        self.rank, self.size = self._world.rank, self._world.size

    def send(self, buffer: Buffer, to: int, tag: int) -> Any:
        return self._world.Isend([buffer, self._mpi.BYTE], to, tag)

    def receive(self, buffer: Buffer, of: int, tag: int) -> Any:
        return self._world.Irecv([buffer, self._mpi.BYTE], of, tag)

    def wait(self, requests: list[Any]) -> None:
        self._mpi.Request.Waitall(requests)

    def broadcast(self, value: Any) -> Any:
        return self._world.bcast(value)

    def gather(self, value: Any) -> list[Any] | None:
        gathered: list[Any] | None = self._world.gather(value)
        return gathered


class Mpi(Spmd):
    """One rank per worker."""

    name, requires, transport = "mpi", "mpi4py>=4.0", "mpi"

    def start(self, workers: int) -> None:
        if importlib.util.find_spec("mpi4py") is None:
            raise missing(self.name, "mpi4py")
        if shutil.which("mpiexec") is None:
            raise Unsupported("mpiexec not found: install MPICH or Open MPI")
        super().start(workers)

    def commands(self, rank_command: list[str], workers: int, folder: Path) -> list[tuple[list[str], dict[str, str]]]:
        allow = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        allow |= {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
        return [(["mpiexec", "-n", str(workers), *rank_command], allow)]
