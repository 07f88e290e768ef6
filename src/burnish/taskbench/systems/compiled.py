"""Systems in C++: compiled on demand, kept in the user's cache, given all tasks as plain arrays."""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from burnish.taskbench import _native
from burnish.taskbench.errors import Unsupported, ValidationError
from burnish.taskbench.graph import Graph
from burnish.taskbench.kernel import Kernel
from burnish.taskbench.plan import plan_of
from burnish.taskbench.systems.base import Base, Outputs, bodies_of, native_only

SOURCES = Path(__file__).parent / "native"
_ids = itertools.count()


class _Job(ctypes.Structure):  # native/job.hpp
    _fields_ = [
        ("id", ctypes.c_int64), ("tasks", ctypes.c_int64), ("bodies", ctypes.c_void_p), ("t", ctypes.c_void_p),
        ("p", ctypes.c_void_p), ("slots", ctypes.c_void_p), ("input_starts", ctypes.c_void_p),
        ("input_ids", ctypes.c_void_p), ("buffers", ctypes.c_void_p), ("buffer_bytes", ctypes.c_void_p),
        ("buffer_count", ctypes.c_int64), ("point", ctypes.c_void_p),
    ]  # fmt: skip


class Job:
    """The arrays of ``native/job.hpp`` for some graphs and a kernel.

    Every task has its own output buffer, or with ``reuse`` every point has two that take turns (for systems that find
    out by themselves when a buffer may be overwritten).
    """

    def __init__(self, graphs: tuple[Graph, ...], kernel: Kernel, reuse: bool) -> None:
        plan, self.bodies = plan_of(graphs), bodies_of(graphs, kernel)
        self._keep: list[Any] = [plan]
        if reuse:
            widths = np.array([graph.width for graph in graphs])
            base = np.concatenate([[0], np.cumsum(2 * widths)])
            self.slots = base[plan.graph] + plan.t % 2 * widths[plan.graph] + plan.p
            sizes = np.repeat([graph.output for graph in graphs], 2 * widths)
        else:
            self.slots = np.arange(len(plan))
            sizes = np.array([graph.output for graph in graphs])[plan.graph]
        self._starts = np.concatenate([[0], np.cumsum(sizes)])
        self.memory = np.zeros(int(self._starts[-1]), np.uint8)
        self.final = [[self._buffer(i) for i in final] for final in plan.final]
        addresses = np.array([getattr(body, "address", 0) for body in self.bodies], np.uintp)
        fields = (addresses[plan.graph], plan.t, plan.p, self.slots, plan.input_starts, plan.input_ids)
        buffers = (self.memory.ctypes.data + self._starts[:-1], sizes)
        pointers = [self._pointer(array) for array in (*fields, *buffers)]
        point = _native.point_function()
        self.native = _Job(next(_ids), len(plan), *pointers, len(sizes), point)

    def _pointer(self, array: Any) -> int:
        kept = np.ascontiguousarray(array)
        self._keep.append(kept)
        return int(kept.ctypes.data)

    def _buffer(self, task: int) -> Any:
        slot = self.slots[task]
        return self.memory[self._starts[slot] : self._starts[slot + 1]]


@lru_cache(maxsize=2)
def _job(graphs: tuple[Graph, ...], kernel: Kernel, reuse: bool) -> Job:
    return Job(graphs, kernel, reuse)


class Compiled(Base):
    """A system whose source is ``native/<source>.cpp``."""

    source = ""
    flags: tuple[str, ...] = ()
    variant = 0
    reuse = False

    def start(self, workers: int) -> None:
        self._library = ctypes.CDLL(str(build(self.source, self.name, self.compile_flags())))
        self._library.system_start.restype = ctypes.c_void_p
        self._state = ctypes.c_void_p(self._library.system_start(workers, self.variant))
        if not self._state:
            raise Unsupported(f"{self.name} refuses to start with {workers} workers")

    def compile_flags(self) -> Sequence[str]:
        """Compiler and linker flags. Raises Unsupported where something is missing."""
        return self.flags

    def stop(self) -> None:
        self._library.system_stop(self._state)
        _job.cache_clear()

    def run(self, graphs: Sequence[Graph], kernel: Kernel) -> Outputs:
        native_only(self.name, kernel)
        job, launched = _job(tuple(graphs), kernel, self.reuse), ctypes.c_double()
        job.memory[:] = 0  # what an earlier run left must not pass for this one's
        error = self._library.system_run(self._state, ctypes.byref(job.native), ctypes.byref(launched))
        for body in job.bodies:
            failure = body.failure  # type: ignore[attr-defined]
            if failure:
                body.forget_failure()  # type: ignore[attr-defined]
                raise ValidationError(failure)
        if error:
            raise Unsupported(f"{self.name} reports error {error}")
        return Outputs(tuple(job.final), launched.value)


def compiler() -> str:
    """The C++ compiler. Raises Unsupported if there is none."""
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        if name and shutil.which(name):
            return name
    raise Unsupported("no C++ compiler found: install g++ or set CXX")


def include_with(header: str, variable: str) -> str | None:
    """The folder that holds ``header``: of environment ``variable``, or a standard one."""
    folders = [os.environ.get(variable, ""), "/usr/include", "/usr/local/include"]
    return next((folder for folder in folders if folder and (Path(folder) / header).exists()), None)


def build(source: str, system: str, flags: Sequence[str]) -> Path:
    """The shared library of ``source``, compiled unless the cache has it. Raises Unsupported with the first error."""
    command = [compiler(), "-O3", "-std=c++20", "-shared", "-fPIC", "-pthread", f"-I{SOURCES}"]
    text = (SOURCES / f"{source}.cpp").read_text() + (SOURCES / "job.hpp").read_text() + repr((command, list(flags)))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "burnish" / "taskbench"
    target = cache / f"{source}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.so"
    if target.exists():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        made = Path(folder) / "system.so"
        done = subprocess.run(
            [*command, str(SOURCES / f"{source}.cpp"), "-o", str(made), *flags], capture_output=True, text=True
        )
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if "error" in line] or [done.stderr.strip()]
            raise Unsupported(f"{system} does not compile: {errors[0]}")
        os.replace(made, target)
    return target
