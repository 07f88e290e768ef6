"""Counter-based random numbers: element i of call c depends on the seed, c and i only, not on chunks or workers.

Philox4x64-10 (Salmon et al., SC 2011) drives NumPy's distributions. A call's elements in C order are cut into blocks of
1024; block b holds the numbers of ``numpy.random.Generator(numpy.random.Philox(key=key, counter=[0, 0, b, c]))``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from burnish.runtime.array import _native
from burnish.runtime.array._native import ndarray
from burnish.runtime.array.shaping import reshape

UNIFORM, NORMAL, INTEGERS = 0, 1, 2
Size = int | Sequence[int] | None


class Generator:
    """Streams of float64 and int64 numbers; make one with :func:`default_rng`."""

    def __init__(self, key: tuple[int, int]) -> None:
        self._key = key
        self._calls = 0

    def _draw(self, kind: int, size: Size, low: int = 0, extent: int = 0) -> ndarray:
        shape = () if size is None else (int(size),) if hasattr(size, "__index__") else tuple(int(n) for n in size)
        flat = _native.random_array(self._key, self._calls, kind, low, extent, int(np.prod(shape, dtype=np.int64)))
        self._calls += 1
        made = reshape(flat, shape)
        return made if shape else _native.set_scalar(made)

    def random(self, size: Size = None) -> ndarray:
        """Uniform in [0, 1)."""
        return self._draw(UNIFORM, size)

    def standard_normal(self, size: Size = None) -> ndarray:
        """Normal with mean 0 and standard deviation 1."""
        return self._draw(NORMAL, size)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None) -> ndarray:
        """Normal with mean ``loc`` and standard deviation ``scale`` (numbers, or arrays that broadcast to ``size``)."""
        drawn = self.standard_normal(size)
        return loc + scale * drawn

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Size = None) -> ndarray:
        """Uniform in [low, high)."""
        return low + (high - low) * self.random(size)

    def integers(
        self,
        low: int,
        high: int | None = None,
        size: Size = None,
        dtype: npt.DTypeLike = np.int64,
        endpoint: bool = False,
    ) -> ndarray:
        """Integers in [low, high) (or [0, low)); with ``endpoint`` including high."""
        if np.dtype(dtype) != np.int64:
            raise NotImplementedError("bn.random.Generator.integers is available for int64 only; convert with astype")
        first, last = (0, int(low)) if high is None else (int(low), int(high))
        last -= not endpoint
        if last < first:
            raise ValueError("low >= high" if not endpoint else "low > high")
        return self._draw(INTEGERS, size, first, last - first)


def default_rng(seed: Any = None) -> Generator:
    """A generator for a seed (as ``numpy.random.SeedSequence`` takes it), or an unpredictable one."""
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    first, second = (int(word) for word in sequence.generate_state(2, np.uint64))
    return Generator((first, second))
