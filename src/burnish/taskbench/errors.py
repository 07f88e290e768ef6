"""What can be wrong with a graph, with a run, with a system."""

from __future__ import annotations

from burnish.core.errors import BurnishError, EnvironmentProblem


class GraphError(BurnishError):
    """A graph or kernel with parameters that make no sense together."""


class ValidationError(BurnishError):
    """A system executed the graph wrongly: a task got an input it should not have, or ran too often or never."""

    exit_code = 1


class Unsupported(EnvironmentProblem):
    """A system cannot express the request or is not available here; the message is the reason that tables show."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
