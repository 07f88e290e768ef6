"""StarPU (C)."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence

from burnish.taskbench.errors import Unsupported
from burnish.taskbench.systems.compiled import Compiled


class StarPU(Compiled):
    """Two registered buffers per point; StarPU finds the dependences from the access modes."""

    name = source = "starpu"
    reuse = True

    def start(self, workers: int) -> None:
        os.environ.setdefault("STARPU_SILENT", "1")
        os.environ.setdefault("STARPU_WORKERS_NOBIND", "1")  # binding to busy cores would measure the neighbours
        super().start(workers)

    def compile_flags(self) -> Sequence[str]:
        return shlex.split(self._config("--cflags", "--libs"))

    def version(self) -> str:
        return self._config("--modversion")

    def _config(self, *arguments: str) -> str:
        if shutil.which("pkg-config"):
            for name in ("starpu-1.4", "starpu-1.3"):
                done = subprocess.run(["pkg-config", *arguments, name], capture_output=True, text=True)
                if done.returncode == 0:
                    return done.stdout.strip()
        raise Unsupported("StarPU not found: install its development files (pkg-config starpu-1.3 or starpu-1.4)")
