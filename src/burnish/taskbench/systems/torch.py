"""torch.distributed on the gloo backend."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

from burnish.taskbench.bodies import Buffer
from burnish.taskbench.systems.base import missing
from burnish.taskbench.systems.spmd import Spmd


class TorchTransport:
    """``isend`` and ``irecv`` of tensors that share the buffers' memory."""

    def __init__(self) -> None:
        import torch
        import torch.distributed

        torch.set_num_threads(1)
        self._torch, self._group = torch, torch.distributed
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        store = torch.distributed.FileStore(os.environ["BURNISH_STORE"], self.size)
        self._group.init_process_group("gloo", store=store, rank=self.rank, world_size=self.size)

    def send(self, buffer: Buffer, to: int, tag: int) -> Any:
        return self._group.isend(self._torch.from_numpy(buffer), to, tag=tag)

    def receive(self, buffer: Buffer, of: int, tag: int) -> Any:
        return self._group.irecv(self._torch.from_numpy(buffer), of, tag=tag)

    def wait(self, requests: list[Any]) -> None:
        for request in requests:
            request.wait()

    def broadcast(self, value: Any) -> Any:
        box = [value]
        self._group.broadcast_object_list(box)
        return box[0]

    def gather(self, value: Any) -> list[Any] | None:
        box = [None] * self.size if self.rank == 0 else None
        self._group.gather_object(value, box)
        return box


class Torch(Spmd):
    """One process per worker."""

    name, requires, transport = "torch", "torch>=2.2", "torch"

    def start(self, workers: int) -> None:
        if importlib.util.find_spec("torch") is None:
            raise missing(self.name, "torch", "pip install torch")
        super().start(workers)

    def commands(self, rank_command: list[str], workers: int, folder: Path) -> list[tuple[list[str], dict[str, str]]]:
        shared = {"WORLD_SIZE": str(workers), "BURNISH_STORE": str(folder / "store"), "OMP_NUM_THREADS": "1"}
        return [(rank_command, shared | {"RANK": str(rank)}) for rank in range(workers)]
