"""The body of ``gpu_compute``: fused multiply-adds on a CUDA device, through CuPy or PyTorch."""

from __future__ import annotations

import importlib
from typing import Any

from burnish.taskbench.bodies_python import START, NumpyBody
from burnish.taskbench.errors import Unsupported
from burnish.taskbench.graph import Graph
from burnish.taskbench.kernel import GPU_VALUES, Kernel


class GpuBody(NumpyBody):
    """Validation and output on the host; ``n`` times ``a = a*a + a`` over 1 Mi doubles on the device."""

    def __init__(self, graph: Graph, kernel: Kernel) -> None:
        super().__init__(graph, kernel)
        self._compute = _cupy_compute() or _torch_compute()
        if self._compute is None:
            raise Unsupported("gpu_compute needs a CUDA device and CuPy or PyTorch")

    def run(self, t: int, p: int) -> float:
        return float(self._compute(self.kernel.iterations))


def _cupy_compute() -> Any:
    try:
        cupy = importlib.import_module("cupy")
        if cupy.cuda.runtime.getDeviceCount() == 0:
            return None
    except Exception:  # not installed, or no driver: every such error means that there is no CuPy device
        return None
    step = cupy.ElementwiseKernel(
        "int64 n", "float64 a", "for (long long i = 0; i < n; ++i) a = fma(a, a, a);", "burnish_fma"
    )

    def compute(n: int) -> float:
        a = cupy.full(GPU_VALUES, START)
        step(n, a)
        return float(a[-1])

    return compute


def _torch_compute() -> Any:
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None

    def compute(n: int) -> float:
        a = torch.full((GPU_VALUES,), START, dtype=torch.float64, device="cuda")
        for _ in range(n):
            a = torch.addcmul(a, a, a)
        return float(a[-1])

    return compute
