"""Task bodies: validate the inputs, run the kernel, fill the output, count.

``body(t, p, output, inputs)`` writes into a buffer of the caller; ``body.produce(t, p, *inputs)`` returns a new array.
The same in four languages (``Kernel.impl``), because systems differ in what bodies they can run. Bodies are safe to
share between threads and pickle to a few bytes; a process builds each one once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from burnish.taskbench import _native
from burnish.taskbench.graph import Graph
from burnish.taskbench.kernel import Kernel
from burnish.taskbench.ledger import attached

Buffer = npt.NDArray[np.uint8]


class Body(Protocol):
    """What runs at every point of a graph."""

    def __call__(self, t: int, p: int, output: Any, inputs: Sequence[Any]) -> None:
        """Run point ``(t, p)``: ``inputs`` are the outputs of ``graph.inputs(t, p)``, in that order.

        Buffers are contiguous and have ``graph.output`` bytes.
        Raises :class:`~burnish.taskbench.errors.ValidationError` if an input is not what the graph asks for.
        """

    def produce(self, t: int, p: int, /, *inputs: Any) -> Buffer:
        """The same, into a new array of ``graph.output`` bytes (uint8)."""


@lru_cache(maxsize=64)
def make_body(graph: Graph, kernel: Kernel) -> Body:
    """The body of ``graph``'s tasks, in the language ``kernel.impl``."""
    kernel.check(graph)
    if kernel.name == "gpu_compute":
        from burnish.taskbench.bodies_gpu import GpuBody

        return GpuBody(graph, kernel)
    if kernel.impl == "native":
        body: Body = _native.body(graph.native, kernel.native, kernel.validate, attached(kernel.ledger))
        return body
    from burnish.taskbench import bodies_numba, bodies_python

    kinds = {"numba": bodies_numba.NumbaBody, "numpy": bodies_python.NumpyBody, "python": bodies_python.PythonBody}
    return kinds[kernel.impl](graph, kernel)


@lru_cache(maxsize=64)
def _load(graph: bytes, kernel: bytes, validate: bool, ledger: str) -> Any:
    """A native body from its pickled parts."""
    return _native.body(*_native.unpack(graph, kernel), validate, attached(ledger or None))


def produce(body: Body, t: int, p: int, *inputs: Any) -> Buffer:
    """``body.produce`` as a plain function, for systems that want one they can send by name."""
    return body.produce(t, p, *inputs)


def execute_point(
    graph: Graph, t: int, p: int, output: Buffer, inputs: Sequence[Buffer], kernel: Kernel | None = None
) -> None:
    """Run point ``(t, p)`` of ``graph`` on the given buffers (uint8, contiguous, ``graph.output`` bytes each).

    >>> graph = Graph(steps=2, width=1)
    >>> first, second = np.zeros(16, np.uint8), np.zeros(16, np.uint8)
    >>> execute_point(graph, 0, 0, first, [])
    >>> execute_point(graph, 1, 0, second, [first])
    >>> second.view(np.int64).tolist()
    [1, 0]
    """
    make_body(graph, kernel or Kernel())(t, p, output, inputs)


def expected_output(graph: Graph, t: int, p: int) -> Buffer:
    """What the output of ``(t, p)`` must be: the pair of int64 ``(t, p)``, repeated."""
    return np.tile(np.array([t, p], np.int64), graph.output // 16).view(np.uint8)
