"""The mapper: an object of the user's that decides how a program runs, never what it computes."""

from __future__ import annotations

from typing import Any, Protocol

from burnish.runtime.errors import RuntimeProblem
from burnish.runtime.signature import TaskInfo


class Mapper(Protocol):
    """Policy of a context, given as ``start(mapper=...)``. Any object with some of these methods will do.

    Each is asked once per task (or region) and context, and the answer is kept; none is asked inside a replayed trace.
    What an engine has no use for it does not ask.
    """

    def executor(self, task: TaskInfo) -> str:
        """``"threads"`` or ``"processes"`` for a task of an engine that has both."""
        ...

    def shard(self, task: TaskInfo, color: Any, domain: tuple[int, ...], n: int) -> int:
        """Which of ``n`` shards runs a color (engines with several memories; default: row-major blocks)."""
        ...

    def priority(self, task: TaskInfo) -> int:
        """Above 0: ready tasks run before others (default: as declared)."""
        ...

    def home(self, region: Any) -> Any:
        """Partition by which a region's pieces are spread over memories (default: the first disjoint complete one)."""
        ...

    def chunks(self, shape: tuple[int, ...], dtype: Any) -> tuple[int, ...]:
        """Blocks per dimension of a new array of the array front end (default: one per worker for large arrays)."""
        ...

    def trace(self, context: Any) -> Any:
        """Tracing options of a context (default: as given to ``start``)."""
        ...


def priority_of(mapper: Any, task: TaskInfo) -> int:
    """The mapper's priority of a task if it has an opinion, else the declared one."""
    ask = getattr(mapper, "priority", None)
    if ask is None or getattr(ask, "__func__", None) is Mapper.priority:
        return task.priority
    answer = ask(task)
    if not isinstance(answer, int):
        raise RuntimeProblem(f"mapper's priority of task '{task.name}' is {answer!r}; it must be an int")
    return answer
