"""What goes wrong between the driver and its worker processes."""

from __future__ import annotations

from burnish.core.errors import BurnishError, EnvironmentProblem


class WorkerStartError(EnvironmentProblem):
    """A worker process did not come up; the message ends with the last lines that it wrote to stderr."""


class WorkerLostError(BurnishError):
    """A worker process died while it had work."""


class WorkerTimeoutError(BurnishError):
    """A call took longer than its caller allows; the worker was ended."""


class TaskTransferError(BurnishError):
    """A function, argument or result cannot be sent between processes."""


class RemoteTaskError(Exception):
    """Stands for an exception of a worker that cannot be rebuilt here; says its type and message."""


class RemoteTraceback(Exception):
    """The cause of an exception that was raised in a worker: its traceback there, as text."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f"\n{self.text}"
