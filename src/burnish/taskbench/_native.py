"""The native part, with types: the only module that touches ``burnish._native.taskbench``."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from burnish._native import taskbench as _untyped

_part: Any = _untyped
Int64s = npt.NDArray[np.int64]


def graph(
    steps: int, width: int, type_: int, index: int, radix: int, period: int, fraction: float, output: int,
    scratch: int, shape: tuple[int, int, int],
) -> Any:  # fmt: skip
    """A native graph; the parameters must have been checked."""
    return _part.Graph(steps, width, type_, index, radix, period, fraction, output, scratch, shape)


def kernel(type_: int, samples: int, iterations: int, imbalance: float) -> Any:
    """A native kernel."""
    return _part.Kernel(type_, samples, iterations, imbalance)


def body(native_graph: Any, native_kernel: Any, validate: bool, ledger: Any) -> Any:
    """A native task body; counts into ``ledger``."""
    return _part.Body(native_graph, native_kernel, validate, ledger)


def unpack(graph_bytes: bytes, kernel_bytes: bytes) -> tuple[Any, Any]:
    """Graph and kernel from the bytes that ``Body`` pickles to."""
    return _part.Graph.unpack(graph_bytes), _part.Kernel.unpack(kernel_bytes)


def create_ledger(path: str, capacity: int) -> Any:
    """A new ledger in file ``path`` ("" for memory of this process) with room for ``capacity`` records."""
    return _part.Ledger.create(path, capacity)


def attach_ledger(path: str) -> Any:
    """The ledger that another process created."""
    return _part.Ledger.attach(path)


def expand(native_graph: Any, *, reverse: bool = False) -> tuple[Int64s, Int64s]:
    """Dependences of all tasks as compressed rows of task ids: ``starts`` (tasks + 1,) and ``ids``."""
    starts, ids = native_graph.expand(reverse)
    return starts, ids


def total_iterations(native_kernel: Any, native_graph: Any) -> int:
    """Kernel iterations of all tasks of the graph."""
    return int(_part.total_iterations(native_kernel, native_graph))


def peak(native_graph: Any, native_kernel: Any, threads: int, seconds: float) -> tuple[float, float, float]:
    """Kernel runs per second of all threads, CPU seconds per run, mean iterations per run."""
    runs, cpu, iterations = _part.peak(native_graph, native_kernel, threads, seconds)
    return float(runs), float(cpu), float(iterations)


def uniform(*values: int) -> float:
    """The hash of ``values`` as int64, in [0, 1)."""
    return float(_part.uniform(list(values)))


def siphash24(data: bytes, k0: int, k1: int) -> int:
    """SipHash-2-4 of ``data``."""
    return int(_part.siphash24(data, k0, k1))


def point_function(*, any_order: bool = False) -> int:
    """Address of ``burnish_taskbench_point`` (native/taskbench/point.hpp)."""
    return int(_part.point_function(any_order))
