"""Planning of recovery: which tasks to run again, and only those, to get lost data back.

Data are pieces of regions, one field each; pieces of a root are disjoint. Every task that changes a piece makes its next
version, named by that task; the version that a task reads is the one made last before it. A lost version is rebuilt from
a valid copy or checkpoint of it if there is one, else by running its task again, which needs the task's own inputs at
*their* versions, rebuilt the same way. Each version has exactly one producer, so the set of tasks found by this backward
closure is the smallest possible. Everything here is a pure function of its arguments.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from burnish.runtime.lineage.errors import LineageError


class Datum(NamedTuple):
    """One field of one piece of a root region."""

    root: int
    piece: int
    field: int


class TaskId(NamedTuple):
    """Place in program order: the log record, and the point of an index launch or the task of a replayed trace."""

    lsn: int
    point: int


INITIAL = TaskId(0, 0)
"""The version before any task: what the region was created with. It can always be made again."""
FORGOTTEN = TaskId(-1, 0)
"""The maker of a version was truncated away and nobody noted which one it was."""


class Version(NamedTuple):
    """The state of a datum after task ``by``."""

    datum: Datum
    by: TaskId


@dataclass(frozen=True)
class Task:
    """What one task did: ``reads`` see the old state, ``writes`` replace it, ``updates`` do both; ``reduces`` fold a
    private buffer into it, so the body itself does not need the old state. The four are disjoint."""

    id: TaskId
    reads: tuple[Datum, ...] = ()
    writes: tuple[Datum, ...] = ()
    updates: tuple[Datum, ...] = ()
    reduces: tuple[Datum, ...] = ()
    deterministic: bool = True

    @property
    def changes(self) -> tuple[Datum, ...]:
        return self.writes + self.updates + self.reduces


class Place(Enum):
    """Where a version stands during recovery."""

    HOME = "home"  # the lost piece's new memory
    SHADOW = "shadow"  # a temporary instance, since home holds a later version or should not be touched
    SCRATCH = "scratch"  # nobody needs it: any buffer will do
    NONE = "none"  # the buffer of a reduction that nobody needs is not folded


@dataclass(frozen=True)
class Load:
    """Put a version into ``place`` from a copy, a checkpoint, or (``by`` INITIAL) as it was created."""

    version: Version
    place: Place


@dataclass(frozen=True)
class Rerun:
    """Run a task again. ``inputs``: where each datum is read; ``outputs``: where its new state goes.

    Updated data change in place: they are both input and output, at the same place.
    """

    task: TaskId
    inputs: tuple[tuple[Datum, Place], ...]
    outputs: tuple[tuple[Datum, Place], ...]


@dataclass(frozen=True)
class Plan:
    """Steps in the order in which they are to run; ``tasks`` are the tasks among them, ``shadows`` the data that need
    a temporary instance."""

    steps: tuple[Load | Rerun, ...]
    tasks: tuple[TaskId, ...]
    shadows: frozenset[Datum]


class UnrecoverableError(LineageError):
    """A version is needed that neither exists nor can be made again."""


class History:
    """Which task made which version; built once from the tasks of the log in program order.

    ``base``: for a log whose beginning was truncated, the versions of the data at its start (from the checkpoints that
    allowed the truncation).
    """

    def __init__(self, tasks: Iterable[Task], *, base: Mapping[Datum, TaskId] | None = None) -> None:
        self._base = base
        self.tasks: dict[TaskId, Task] = {}
        self._makers: defaultdict[Datum, list[TaskId]] = defaultdict(list)
        for task in tasks:
            self.tasks[task.id] = task
            for datum in task.changes:
                self._makers[datum].append(task.id)

    def before(self, datum: Datum, task: TaskId) -> Version:
        """The version that ``task`` finds."""
        makers = self._makers.get(datum, [])
        at = bisect_left(makers, task)
        return Version(datum, makers[at - 1] if at else self._start(datum))

    def latest(self, datum: Datum) -> Version:
        """The version that the last task left."""
        makers = self._makers.get(datum)
        return Version(datum, makers[-1] if makers else self._start(datum))

    def _start(self, datum: Datum) -> TaskId:
        return INITIAL if self._base is None else self._base.get(datum, FORGOTTEN)


def plan_recovery(
    history: History,
    lost: Collection[Datum],
    copies: Collection[Version],
    *,
    names: Mapping[TaskId, str] | None = None,
) -> Plan:
    """The steps that bring every lost datum back to its latest version.

    ``copies``: versions that still exist besides the latest ones of data that were not lost: checkpoints, copies held
    elsewhere, values in the log. Raises :class:`UnrecoverableError` when a task would have to run again that is not
    deterministic or no longer in the log; ``names`` are for its text.
    """
    closure = _Closure(history, frozenset(lost), frozenset(copies), names or {})
    for datum in lost:
        closure.need(history.latest(datum))
    closure.run()
    return _Ordering(history, closure).plan()


class _Closure:
    """The backward closure: versions needed, and how each is had."""

    def __init__(
        self, history: History, lost: frozenset[Datum], copies: frozenset[Version], names: Mapping[TaskId, str]
    ) -> None:
        self.history, self.lost, self.copies, self.names = history, lost, copies, names
        self.needed: set[Version] = set()
        self.reruns: set[TaskId] = set()
        self._open: list[tuple[Version, TaskId | None]] = []

    def need(self, version: Version, by: TaskId | None = None) -> None:
        if version not in self.needed:
            self.needed.add(version)
            self._open.append((version, by))

    def at_home(self, version: Version) -> bool:
        return version.datum not in self.lost and version == self.history.latest(version.datum)

    def had(self, version: Version) -> bool:
        return version.by == INITIAL or version in self.copies or self.at_home(version)

    def run(self) -> None:
        while self._open:
            version, reader = self._open.pop()
            if self.had(version):
                continue
            task = self._rerun(version, reader)
            if version.datum in task.reduces:
                self.need(self.history.before(version.datum, task.id), task.id)

    def _rerun(self, version: Version, reader: TaskId | None) -> Task:
        task = self.history.tasks.get(version.by)
        if task is None or not task.deterministic:
            why = "is not deterministic" if task else "is no longer in the log"
            whom = f", which {self._name(reader)} reads" if reader else ""
            root, piece, field = version.datum
            raise UnrecoverableError(
                f"root {root}, piece {piece}, field {field} as {self._name(version.by)} left it{whom} is lost: "
                f"the task {why}"
            )
        if task.id not in self.reruns:
            self.reruns.add(task.id)
            for datum in task.reads + task.updates:
                self.need(self.history.before(datum, task.id), task.id)
        return task

    def _name(self, task: TaskId) -> str:
        if task == FORGOTTEN:
            return "a task"
        return self.names.get(task, f"task {task.lsn}.{task.point}")


class _Ordering:
    """Steps of a closure in program order, with the place of every version.

    In program order all readers of a version come before the task that makes the next one, so one instance per datum is
    enough: it moves from needed version to needed version, by tasks or, where the chain is broken, by a load.
    """

    def __init__(self, history: History, closure: _Closure) -> None:
        self.history, self.closure = history, closure
        self.steps: list[Load | Rerun] = []
        self.shadows: set[Datum] = set()
        self.state: dict[Datum, TaskId] = {}

    def plan(self) -> Plan:
        tasks = sorted(self.closure.reruns)
        for id in tasks:
            self._rerun(self.history.tasks[id])
        for datum in sorted(self.closure.lost):
            self._bring(self.history.latest(datum))
        return Plan(tuple(self.steps), tuple(tasks), frozenset(self.shadows))

    def _place(self, datum: Datum) -> Place:
        if datum in self.closure.lost:
            return Place.HOME
        self.shadows.add(datum)
        return Place.SHADOW

    def _bring(self, version: Version) -> Place:
        """Make sure that the instance of the datum is at ``version``."""
        place = self._place(version.datum)
        if self.state.get(version.datum) != version.by:
            assert self.closure.had(version), "a version is made before it is read"
            self.steps.append(Load(version, place))
            self.state[version.datum] = version.by
        return place

    def _rerun(self, task: Task) -> None:
        inputs, outputs = [], []
        for datum in task.reads:
            version = self.history.before(datum, task.id)
            inputs.append((datum, Place.HOME if self.closure.at_home(version) else self._bring(version)))
        for datum in task.updates:
            place = self._bring(self.history.before(datum, task.id))
            inputs.append((datum, place))
            outputs.append((datum, self._made(datum, task)))
        for datum in task.writes:
            outputs.append((datum, self._made(datum, task) if self._wanted(datum, task) else Place.SCRATCH))
        for datum in task.reduces:
            if self._wanted(datum, task):
                self._bring(self.history.before(datum, task.id))
                outputs.append((datum, self._made(datum, task)))
            else:
                outputs.append((datum, Place.NONE))
        self.steps.append(Rerun(task.id, tuple(inputs), tuple(outputs)))

    def _wanted(self, datum: Datum, task: Task) -> bool:
        version = Version(datum, task.id)
        return version in self.closure.needed and not self.closure.had(version)

    def _made(self, datum: Datum, task: Task) -> Place:
        self.state[datum] = task.id
        return self._place(datum)


def checkpoint_period(cost: float, mtbf: float = 3600.0) -> float:
    """Seconds between checkpoints that cost ``cost`` seconds each, for a mean time ``mtbf`` between failures.

    Young's first-order optimum, sqrt(2 * cost * mtbf) (J. W. Young, CACM 17(9), 1974); never less than the cost itself.

    >>> checkpoint_period(2.0, 3600.0)
    120.0
    """
    if not (cost >= 0 and mtbf > 0):
        raise ValueError(f"checkpoint cost {cost} must not be negative and mtbf {mtbf} must be positive")
    return max(cost, math.sqrt(2.0 * cost * mtbf))
