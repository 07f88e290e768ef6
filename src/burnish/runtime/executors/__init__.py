"""Where tasks run: the local pool of worker processes and the memory that it shares with the driver."""

from burnish.runtime.executors.errors import (
    RemoteTaskError,
    TaskTransferError,
    WorkerLostError,
    WorkerStartError,
    WorkerTimeoutError,
)
from burnish.runtime.executors.pool import Pool, Worker

__all__ = [
    "Pool",
    "RemoteTaskError",
    "TaskTransferError",
    "Worker",
    "WorkerLostError",
    "WorkerStartError",
    "WorkerTimeoutError",
]
