"""What the tasks of a graph compute, and how much work that is."""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

from burnish.taskbench import _native
from burnish.taskbench.errors import GraphError
from burnish.taskbench.graph import Graph

Impl = Literal["native", "numba", "numpy", "python"]
Unit = Literal["flops", "bytes", "steps"]

#: Every kernel and its line in ``burnish taskbench list``; the order is the native enumeration (gpu_compute has none).
KERNELS: dict[str, str] = {
    "empty": "nothing",
    "busy_wait": "n steps of a = a*139 mod (2^31-1)",
    "compute_bound": "64 doubles, n times a = a*a + a, fused",
    "compute_bound2": "c += a*b over 32 doubles, n times",
    "compute_dgemm": "n times C += A*B on square matrices that fill scratch",
    "memory_bound": "n chunks of scratch/samples bytes: first half copied onto the second",
    "memory_daxpy": "n chunks: first half added to the second",
    "load_imbalance": "compute_bound with n scattered from task to task",
    "io_bound": "n KiB written to and read from a temporary file",
    "gpu_compute": "compute_bound on a CUDA device, 1 Mi doubles (CuPy or PyTorch)",
}
USES_SCRATCH = ("compute_dgemm", "memory_bound", "memory_daxpy")
GPU_VALUES = 1 << 20


@dataclass(frozen=True)
class Kernel:
    """The body of every task.

    ``iterations`` is the kernel's n, ``samples`` the number of chunks that scratch is cut into, ``imbalance`` in
    [0, 2] the spread of ``load_imbalance``, ``impl`` the language of the body. ``validate=False`` skips the check of
    inputs. ``ledger`` is the file that tasks count themselves in (set by the harness; None: a counter of the process).
    Raises :class:`GraphError` for parameters that make no sense.
    """

    name: str = "empty"
    iterations: int = 0
    samples: int = 16
    imbalance: float = 0.0
    impl: Impl = "native"
    validate: bool = True
    ledger: str | None = None

    def __post_init__(self) -> None:
        if self.name not in KERNELS:
            near = difflib.get_close_matches(self.name, KERNELS, n=1, cutoff=0.0)
            raise GraphError(f"unknown kernel '{self.name}'", hint=f"did you mean '{near[0]}'?")
        if self.impl not in get_args(Impl):
            raise GraphError(f"unknown impl '{self.impl}'", hint=f"write one of {', '.join(get_args(Impl))}")
        if self.iterations < 0:
            raise GraphError(f"iterations must not be negative, got {self.iterations}")
        if self.samples < 1:
            raise GraphError(f"samples must be at least 1, got {self.samples}")
        if not 0 <= self.imbalance <= 2:
            raise GraphError(f"imbalance must be in [0, 2], got {self.imbalance:g}")

    def __reduce__(self) -> tuple[Any, ...]:  # without the cached native object
        fields = (self.name, self.iterations, self.samples, self.imbalance, self.impl, self.validate, self.ledger)
        return Kernel, fields

    @cached_property
    def native(self) -> Any:
        """The ``burnish._native.taskbench.Kernel`` behind this one."""
        return _native.kernel(list(KERNELS).index(self.name), self.samples, self.iterations, self.imbalance)

    def check(self, graph: Graph) -> None:
        """Raise :class:`GraphError` if ``graph`` has not the scratch memory that the kernel needs."""
        if self.name not in USES_SCRATCH:
            return
        least = 24 if self.name == "compute_dgemm" else 16 * self.samples
        if graph.scratch < least:
            raise GraphError(f"{self.name} needs scratch of at least {least} bytes, got {graph.scratch}")
        if graph.scratch % 8 or (self.name != "compute_dgemm" and graph.scratch % least):
            multiple = 8 if self.name == "compute_dgemm" else least
            raise GraphError(f"{self.name} needs scratch in multiples of {multiple} bytes, got {graph.scratch}")

    @property
    def unit(self) -> Unit:
        """What useful work is counted in."""
        if self.name in ("memory_bound", "memory_daxpy", "io_bound"):
            return "bytes"
        return "steps" if self.name in ("empty", "busy_wait") else "flops"

    def work(self, graph: Graph, iterations: float, tasks: int = 1) -> float:
        """Useful work, in ``unit``, of ``tasks`` tasks that do ``iterations`` altogether."""
        return tasks * self._fixed + iterations * self._per_iteration(graph)

    def total_work(self, graph: Graph) -> float:
        """Useful work of the whole graph, in ``unit``."""
        tasks = graph.counts().tasks
        return self.work(graph, self.total_iterations(graph), tasks)

    def total_iterations(self, graph: Graph) -> int:
        """Iterations of all tasks of the graph."""
        if self.name == "load_imbalance":
            return _native.total_iterations(self.native, graph.native)
        return self.iterations * graph.counts().tasks

    def flops(self, graph: Graph) -> int:
        """Floating-point operations of the whole graph."""
        return round(self.total_work(graph)) if self.unit == "flops" else 0

    def bytes(self, graph: Graph) -> int:
        """Bytes that the whole graph moves through memory or files."""
        return round(self.total_work(graph)) if self.unit == "bytes" else 0

    @property
    def _fixed(self) -> int:  # the closing product over the 64 values
        return 64 if self.name in ("compute_bound", "load_imbalance") else 0

    def _per_iteration(self, graph: Graph) -> float:
        if self.name in ("compute_bound", "load_imbalance"):
            return 2 * 64
        if self.name == "compute_dgemm":
            return 2.0 * dgemm_size(graph.scratch) ** 3
        per = {
            "compute_bound2": 2 * 32,
            "busy_wait": 1,
            "io_bound": 2 * 1024,
            "gpu_compute": 2 * GPU_VALUES,
            "empty": 0,
        }
        return per[self.name] if self.name in per else graph.scratch / self.samples


def dgemm_size(scratch: int) -> int:
    """Side of the three square matrices of doubles that fit into ``scratch`` bytes."""
    return math.isqrt(scratch // 24)
