"""OpenMP tasks with dependences."""

from __future__ import annotations

import subprocess

from burnish.taskbench.systems.compiled import Compiled, compiler


class OpenMP(Compiled):
    """``task depend`` with iterators (OpenMP 5), launched by one thread of the team."""

    name = source = "openmp"
    flags = ("-fopenmp",)

    def version(self) -> str:
        banner = subprocess.run([compiler(), "--version"], capture_output=True, text=True).stdout
        return banner.splitlines()[0] if banner else ""
