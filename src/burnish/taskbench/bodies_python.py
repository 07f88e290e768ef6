"""Task bodies in pure Python and in NumPy."""

from __future__ import annotations

import math
import os
import struct
import tempfile
import threading
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from burnish.taskbench.errors import ValidationError
from burnish.taskbench.graph import Graph
from burnish.taskbench.kernel import Kernel, dgemm_size
from burnish.taskbench.ledger import attached

Doubles = npt.NDArray[np.float64]
START, START_B = 1.2345, 1.010101


class PythonBody:
    """Loops in Python, values in lists. Fused multiply-add as the product rounded before the sum."""

    def __init__(self, graph: Graph, kernel: Kernel) -> None:
        self.graph, self.kernel = graph, kernel
        self._ledger = attached(kernel.ledger)
        self._own = threading.local()
        self._inputs = lru_cache(maxsize=1 << 14)(graph.inputs)

    def __reduce__(self) -> tuple[Any, ...]:
        from burnish.taskbench.bodies import make_body

        return make_body, (self.graph, self.kernel)

    def __call__(self, t: int, p: int, output: Any, inputs: Sequence[Any]) -> None:
        start = time.monotonic_ns() if self._ledger.capacity else 0
        if self.kernel.validate:
            self._check(t, p, inputs)
        self.run(t, p)
        self.fill(output, t, p)
        self._ledger.add()
        if self._ledger.capacity:
            self._ledger.record(start, time.monotonic_ns(), t, p, self.graph.index, threading.get_native_id())

    def produce(self, t: int, p: int, /, *inputs: Any) -> npt.NDArray[np.uint8]:
        output = np.empty(self.graph.output, np.uint8)
        self(t, p, output, inputs)
        return output

    def _check(self, t: int, p: int, inputs: Sequence[Any]) -> None:
        wanted = self._inputs(t, p)
        where = f"graph {self.graph.index}, point (t={t}, p={p})"
        if len(wanted) != len(inputs):
            raise ValidationError(f"{where}: expected {len(wanted)} inputs, got {len(inputs)}")
        for number, (q, buffer) in enumerate(zip(wanted, inputs, strict=True)):
            wrong = self.first_wrong(buffer, t - 1, q)
            if wrong is not None:
                position, got = wrong
                raise ValidationError(f"{where}, input {number}, position {position}: expected {(t - 1, q)}, got {got}")

    def first_wrong(self, buffer: Any, t: int, p: int) -> tuple[int, tuple[int, int]] | None:
        """Position and content of the first pair of ``buffer`` that is not ``(t, p)``."""
        for position, pair in enumerate(struct.iter_unpack("<qq", buffer)):
            if pair != (t, p):
                return position, (int(pair[0]), int(pair[1]))
        return None

    def fill(self, output: Any, t: int, p: int) -> None:
        """Fill ``output`` with the pair ``(t, p)``."""
        memoryview(output).cast("B")[:] = struct.pack("<qq", t, p) * (self.graph.output // 16)

    def run(self, t: int, p: int) -> float:
        """Run the kernel; a value that depends on all of its work."""
        kernel, n = self.kernel, self.kernel.iterations
        match kernel.name:
            case "empty":
                return 0.0
            case "busy_wait":
                return self.busy_wait(n)
            case "compute_bound":
                return self.compute_bound(n)
            case "load_imbalance":
                return self.compute_bound(kernel.native.imbalanced_iterations(self.graph.index, t, p))
            case "compute_bound2":
                return self.compute_bound2(n)
            case "compute_dgemm":
                return self.dgemm(n, self.scratch())
            case "io_bound":
                return _io(n)
        return self.stream(t, self.scratch())

    def scratch(self) -> Doubles:
        """This thread's scratch memory as doubles; a marker in front of it must stay as it was."""
        memory: Doubles | None = getattr(self._own, "memory", None)
        if memory is None:
            memory = self._own.memory = np.full(8 + self.graph.scratch // 8, START)
            memory[:8] = -1.0
        if not (memory[:8] == -1.0).all():
            raise ValidationError(f"graph {self.graph.index}: the marker of scratch memory was overwritten")
        return memory[8:]

    def busy_wait(self, n: int) -> float:
        a = 113
        for _ in range(n):
            a = a * 139 % 2147483647
        return float(a)

    def compute_bound(self, n: int) -> float:
        a = [START] * 64
        for _ in range(n):
            a = [x * x + x for x in a]
        return math.prod(a)

    def compute_bound2(self, n: int) -> float:
        c, a, b = [0.0] * 32, START, START_B
        for _ in range(n):
            c = [x + a * b for x in c]
        return math.fsum(c)

    def dgemm(self, n: int, scratch: Doubles) -> float:
        size = dgemm_size(self.graph.scratch)
        a, b, c = (scratch[i * size * size : (i + 1) * size * size] for i in range(3))
        for _ in range(n):
            for i in range(size):
                for j in range(size):
                    c[i * size + j] += sum(a[i * size + k] * b[k * size + j] for k in range(size))
        return float(c[-1])

    def stream(self, t: int, scratch: Doubles) -> float:
        n, samples = self.kernel.iterations, self.kernel.samples
        chunk = len(scratch) // samples
        half = chunk // 2
        for i in range(n):
            at = (t * n + i) % samples * chunk
            for j in range(at, at + half):
                scratch[j + half] = scratch[j] + (scratch[j + half] if self.kernel.name == "memory_daxpy" else 0.0)
        return float(scratch[at + chunk - 1]) if n else 0.0


class NumpyBody(PythonBody):
    """Array operations of NumPy, which release the GIL for long arrays only."""

    def first_wrong(self, buffer: Any, t: int, p: int) -> tuple[int, tuple[int, int]] | None:
        pairs = np.frombuffer(buffer, np.int64).reshape(-1, 2)
        wrong = np.flatnonzero((pairs != (t, p)).any(axis=1))
        if not len(wrong):
            return None
        return int(wrong[0]), (int(pairs[wrong[0], 0]), int(pairs[wrong[0], 1]))

    def fill(self, output: Any, t: int, p: int) -> None:
        np.frombuffer(output, np.int64).reshape(-1, 2)[:] = (t, p)

    def compute_bound(self, n: int) -> float:
        a = np.full(64, START)
        with np.errstate(over="ignore"):
            for _ in range(n):
                a = a * a + a
            return float(a.prod())

    def compute_bound2(self, n: int) -> float:
        c, a, b = np.zeros(32), np.full(32, START), np.full(32, START_B)
        for _ in range(n):
            c += a * b
        return float(c.sum())

    def dgemm(self, n: int, scratch: Doubles) -> float:
        size = dgemm_size(self.graph.scratch)
        a, b, c = (scratch[i * size * size : (i + 1) * size * size].reshape(size, size) for i in range(3))
        for _ in range(n):
            c += a @ b
        return float(c[-1, -1])

    def stream(self, t: int, scratch: Doubles) -> float:
        n, samples = self.kernel.iterations, self.kernel.samples
        chunks = scratch.reshape(samples, 2, -1)
        for i in range(n):
            first, second = chunks[(t * n + i) % samples]
            if self.kernel.name == "memory_daxpy":
                second += first
            else:
                second[:] = first
        return float(second[-1]) if n else 0.0


def _io(n: int) -> float:
    with tempfile.TemporaryFile(prefix="burnish-taskbench-") as file:
        file.write(b"\1" * (n * 1024))
        file.flush()
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        return float(sum(file.read()))
