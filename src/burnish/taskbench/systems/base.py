"""What a system is, and what most of them share."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import psutil

from burnish.core.errors import MissingExtraError
from burnish.taskbench.bodies import Body, Buffer, make_body
from burnish.taskbench.errors import Unsupported
from burnish.taskbench.graph import Graph
from burnish.taskbench.kernel import Kernel


@dataclass(frozen=True)
class Outputs:
    """What a run leaves behind.

    ``final``: for each graph the outputs of its last step, points ascending. ``launched``: seconds after which the
    program had handed over all of its tasks and would have gone on, had it not waited (None: not a separate moment).
    ``elsewhere``: tasks executed on machines that do not share the ledger.
    """

    final: tuple[Sequence[Buffer], ...]
    launched: float | None = None
    elsewhere: int = 0


class System(Protocol):
    """A way to execute task graphs. ``run`` may be called often between ``start`` and ``stop``."""

    name: str
    requires: str

    def start(self, workers: int) -> None:
        """Get ready to use ``workers`` cores. Raises Unsupported or MissingExtraError."""

    def run(self, graphs: Sequence[Graph], kernel: Kernel) -> Outputs:
        """Execute the graphs at the same time. Raises Unsupported, or ValidationError from a task."""

    def stop(self) -> None:
        """Leave nothing running."""

    def version(self) -> str:
        """Version of what ``requires`` names."""

    def processes(self) -> list[int]:
        """Ids of all processes whose CPU time the system uses."""


class Base:
    """Nothing to start or stop; the process and its descendants do the work."""

    name = ""
    requires = ""
    workers = 1

    def start(self, workers: int) -> None:
        self.workers = workers

    def stop(self) -> None:
        """Nothing runs."""

    def version(self) -> str:
        package = self.requires.partition(">=")[0]
        return importlib.metadata.version(package) if package else ""

    def processes(self) -> list[int]:
        return process_tree()


def process_tree(roots: Iterable[int] = ()) -> list[int]:
    """This process, ``roots``, and all descendants."""
    found = [os.getpid(), *roots]
    for pid in list(found):
        try:
            found += [child.pid for child in psutil.Process(pid).children(recursive=True)]
        except psutil.NoSuchProcess:
            continue
    return list(dict.fromkeys(found))


def bodies_of(graphs: Sequence[Graph], kernel: Kernel) -> list[Body]:
    """One body per graph."""
    return [make_body(graph, kernel) for graph in graphs]


def missing(system: str, package: str, how: str = "pip install 'burnish[taskbench]'") -> MissingExtraError:
    """The error of a system whose package is not installed."""
    return MissingExtraError(f"system '{system}' needs {package}: {how}")


def native_only(system: str, kernel: Kernel) -> None:
    """Raise Unsupported unless the body is native."""
    if kernel.impl != "native" or kernel.name == "gpu_compute":
        raise Unsupported(f"{system} runs native bodies only, not {kernel.name} in {kernel.impl}")
