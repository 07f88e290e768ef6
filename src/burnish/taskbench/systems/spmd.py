"""Bulk-synchronous ranks: every step, exchange what others need, then run one's own points.

``python -m burnish.taskbench.systems.spmd TRANSPORT ADDRESS`` is one rank; rank 0 takes orders from the measuring
process over a socket. Point ``p`` lives on rank ``p * ranks // width``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from burnish.core.errors import EnvironmentProblem
from burnish.taskbench.bodies import Buffer
from burnish.taskbench.graph import Graph
from burnish.taskbench.kernel import Kernel
from burnish.taskbench.systems.base import Base, Outputs, bodies_of


class Transport(Protocol):
    """What ranks need of MPI or of torch.distributed."""

    rank: int
    size: int

    def send(self, buffer: Buffer, to: int, tag: int) -> Any: ...
    def receive(self, buffer: Buffer, of: int, tag: int) -> Any: ...
    def wait(self, requests: list[Any]) -> None: ...
    def broadcast(self, value: Any) -> Any: ...
    def gather(self, value: Any) -> list[Any] | None: ...


@lru_cache(maxsize=8)
def _schedule(
    graph: Graph, rank: int, size: int
) -> list[tuple[list[int], list[tuple[int, int]], list[tuple[int, int]]]]:
    """Per step: own points; (point, rank) to send of the step before; (point, rank) to receive."""

    def owner(p: int) -> int:
        return p * size // graph.width

    steps = []
    for t in range(graph.steps):
        own = [p for p in graph.points(t) if owner(p) == rank]
        receive = sorted({(q, owner(q)) for p in own for q in graph.inputs(t, p) if owner(q) != rank})
        send = set()
        for q in graph.points(t - 1):
            if owner(q) == rank:
                users = (p for a, b in graph.reverse_dependencies(t - 1, q) for p in range(a, b + 1))
                send |= {(q, owner(p)) for p in users if owner(p) != rank}
        steps.append((own, sorted(send), receive))
    return steps


def run_rank(transport: Transport, graphs: Sequence[Graph], kernel: Kernel) -> list[dict[int, Buffer]]:
    """Execute this rank's points; the outputs of the last step, by point, per graph."""
    bodies = bodies_of(graphs, kernel)
    schedules = [_schedule(graph, transport.rank, transport.size) for graph in graphs]
    values: list[dict[int, Buffer]] = [{} for _ in graphs]
    for t in range(max(graph.steps for graph in graphs)):
        requests = []
        alive = [g for g, graph in enumerate(graphs) if t < graph.steps]
        for g in alive:
            tag = g * graphs[g].width
            requests += [transport.send(values[g][p], rank, tag + p) for p, rank in schedules[g][t][1]]
            for q, rank in schedules[g][t][2]:
                values[g][q] = np.empty(graphs[g].output, np.uint8)
                requests.append(transport.receive(values[g][q], rank, tag + q))
        transport.wait(requests)
        for g in alive:
            before = values[g]
            values[g] = {
                p: bodies[g].produce(t, p, *[before[q] for q in graphs[g].inputs(t, p)]) for p in schedules[g][t][0]
            }
    return values


def serve(transport: Transport, address: str) -> None:
    """Run what rank 0 is told until it is told to stop; every rank calls this."""
    orders: Connection | None = Client(address, "AF_UNIX") if transport.rank == 0 else None
    while True:
        order = transport.broadcast(orders.recv() if orders else None)
        if order is None:
            return
        try:
            result: Any = run_rank(transport, *order)
        except Exception as error:  # the measuring process raises it again
            result = error
        gathered = transport.gather(result)
        if orders and gathered is not None:
            orders.send(gathered)


class Spmd(Base):
    """Starts ranks and talks to rank 0."""

    transport = ""

    def commands(self, rank_command: list[str], workers: int, folder: Path) -> list[tuple[list[str], dict[str, str]]]:
        """Commands, with additions to the environment, that start all ranks."""
        raise NotImplementedError

    def start(self, workers: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="burnish-spmd-")
        address = str(Path(self._folder.name) / "orders")
        command = [sys.executable, "-m", __name__, self.transport, address]
        with Listener(address, "AF_UNIX") as listener:
            self._children = [
                subprocess.Popen(argv, env=os.environ | extra, stderr=subprocess.PIPE, text=True)
                for argv, extra in self.commands(command, workers, Path(self._folder.name))
            ]
            listener._listener._socket.settimeout(1.0)  # type: ignore[attr-defined]
            self._orders = self._accept(listener)

    def _accept(self, listener: Listener) -> Connection:
        while True:
            try:
                return listener.accept()
            except TimeoutError:
                for child in self._children:
                    if child.poll() not in (None, 0):
                        lines = child.communicate()[1].strip().splitlines() or ["no message"]
                        raise EnvironmentProblem(f"{self.name}: a rank does not start: {lines[-1]}") from None

    def stop(self) -> None:
        self._orders.send(None)
        self._orders.close()
        for child in self._children:
            child.communicate(timeout=60)
        self._folder.cleanup()

    def run(self, graphs: Sequence[Graph], kernel: Kernel) -> Outputs:
        self._orders.send((tuple(graphs), kernel))
        ranks = self._orders.recv()
        for result in ranks:
            if isinstance(result, Exception):
                raise result
        merged = [{p: v for rank in ranks for p, v in rank[g].items()} for g in range(len(graphs))]
        return Outputs(tuple([own[p] for p in sorted(own)] for own in merged))


def main(transport: str, address: str) -> None:
    """One rank."""
    if transport == "mpi":
        from burnish.taskbench.systems.mpi import MpiTransport

        serve(MpiTransport(), address)
    else:
        from burnish.taskbench.systems.torch import TorchTransport

        serve(TorchTransport(), address)


if __name__ == "__main__":
    main(*sys.argv[1:])
