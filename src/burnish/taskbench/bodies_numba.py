"""Task bodies compiled by Numba; they release the GIL."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from burnish.taskbench.bodies_python import START, START_B, Doubles, NumpyBody
from burnish.taskbench.kernel import dgemm_size

_jit = numba.njit(nogil=True, cache=False, fastmath={"contract"})


@_jit  # type: ignore[untyped-decorator,unused-ignore]
def _first_wrong(pairs: npt.NDArray[np.int64], t: int, p: int) -> int:
    for i in range(len(pairs) // 2):
        if pairs[2 * i] != t or pairs[2 * i + 1] != p:
            return i
    return -1


@_jit  # type: ignore[untyped-decorator,unused-ignore]
def _fill(pairs: npt.NDArray[np.int64], t: int, p: int) -> None:
    for i in range(len(pairs) // 2):
        pairs[2 * i], pairs[2 * i + 1] = t, p


@_jit  # type: ignore[untyped-decorator,unused-ignore]
def _busy_wait(n: int) -> int:
    a = 113
    for _ in range(n):
        a = a * 139 % 2147483647
    return a


@_jit  # type: ignore[untyped-decorator,unused-ignore]
def _compute_bound(n: int) -> float:
    a = np.full(64, START)
    for _ in range(n):
        for j in range(64):
            a[j] = a[j] * a[j] + a[j]
    product = 1.0
    for j in range(64):
        product *= a[j]
    return product


@_jit  # type: ignore[untyped-decorator,unused-ignore]
def _compute_bound2(n: int, a: Doubles, b: Doubles) -> float:
    c = np.zeros(32)
    for _ in range(n):
        for j in range(32):
            c[j] += a[j] * b[j]
    return c.sum()  # type: ignore[no-any-return]


@_jit  # type: ignore[untyped-decorator,unused-ignore]
def _dgemm(n: int, size: int, scratch: Doubles) -> float:
    a, b, c = 0, size * size, 2 * size * size
    for _ in range(n):
        for i in range(size):
            for k in range(size):
                x = scratch[a + i * size + k]
                for j in range(size):
                    scratch[c + i * size + j] += x * scratch[b + k * size + j]
    return scratch[c + size * size - 1]  # type: ignore[no-any-return]


@_jit  # type: ignore[untyped-decorator,unused-ignore]
def _stream(n: int, t: int, samples: int, add: bool, scratch: Doubles) -> float:
    chunk = len(scratch) // samples
    half, last = chunk // 2, 0.0
    for i in range(n):
        at = (t * n + i) % samples * chunk
        for j in range(at, at + half):
            scratch[j + half] = scratch[j] + scratch[j + half] if add else scratch[j]
        last = scratch[at + chunk - 1]
    return last


class NumbaBody(NumpyBody):
    """Compiled loops; ``contract`` allows the fused multiply-add of the native kernel."""

    def first_wrong(self, buffer: Any, t: int, p: int) -> tuple[int, tuple[int, int]] | None:
        pairs = np.frombuffer(buffer, np.int64)
        at = int(_first_wrong(pairs, t, p))
        return None if at < 0 else (at, (int(pairs[2 * at]), int(pairs[2 * at + 1])))

    def fill(self, output: Any, t: int, p: int) -> None:
        _fill(np.frombuffer(output, np.int64), t, p)

    def busy_wait(self, n: int) -> float:
        return float(_busy_wait(n))

    def compute_bound(self, n: int) -> float:
        return float(_compute_bound(n))

    def compute_bound2(self, n: int) -> float:
        return float(_compute_bound2(n, np.full(32, START), np.full(32, START_B)))

    def dgemm(self, n: int, scratch: Doubles) -> float:
        return float(_dgemm(n, dgemm_size(self.graph.scratch), scratch))

    def stream(self, t: int, scratch: Doubles) -> float:
        kernel = self.kernel
        return float(_stream(kernel.iterations, t, kernel.samples, kernel.name == "memory_daxpy", scratch))
