"""Taskflow (C++): graph built and run, graph run again, asynchronous tasks with dependences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from burnish.taskbench.errors import Unsupported
from burnish.taskbench.systems.compiled import Compiled, include_with

HEADER = "taskflow/taskflow.hpp"


class Taskflow(Compiled):
    """The graph is built within the run."""

    name = source = "taskflow"

    def compile_flags(self) -> Sequence[str]:
        folder = include_with(HEADER, "TASKFLOW_INCLUDE")
        if folder is None:
            raise Unsupported(f"{HEADER} not found: set TASKFLOW_INCLUDE to the folder that holds taskflow/")
        self._folder = folder
        return (f"-I{folder}",)

    def version(self) -> str:
        text = (Path(self._folder) / HEADER).read_text()
        found = re.search(r"TF_VERSION\s+(\d+)", text)
        number = int(found.group(1)) if found else 0
        return f"{number // 100000}.{number // 100 % 1000}.{number % 100}"


class TaskflowRerun(Taskflow):
    """The graph is built in the first run and run again in the others."""

    name, variant = "taskflow_rerun", 1


class TaskflowAsync(Taskflow):
    """``silent_dependent_async``."""

    name, variant = "taskflow_async", 2
