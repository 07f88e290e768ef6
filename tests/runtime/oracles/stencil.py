"""2-D star stencil over a square, by padding-free slicing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def star_stencil(n: int, iterations: int, radius: int = 2) -> NDArray[np.float64]:
    """Run ``out += stencil(in); in += 1`` and return ``out``, shape (n, n); the border of width ``radius`` stays 0.

    The input starts as ``i + j``; the weight of offset ``+-k`` along either axis is ``+-1 / (2 k radius)``.
    """
    i, j = np.indices((n, n), dtype=float)
    grid, out = i + j, np.zeros((n, n))
    inner = slice(radius, n - radius)
    for _ in range(iterations):
        for k in range(1, radius + 1):
            weight = 1.0 / (2 * k * radius)
            plus, minus = slice(radius + k, n - radius + k), slice(radius - k, n - radius - k)
            out[inner, inner] += weight * (grid[plus, inner] - grid[minus, inner])
            out[inner, inner] += weight * (grid[inner, plus] - grid[inner, minus])
        grid += 1.0
    return out


def closed_form(n: int, iterations: int, radius: int = 2) -> NDArray[np.float64]:
    """Each axis of a plane of slope 1 contributes exactly 1 per iteration, so the interior holds ``2 * iterations``."""
    out = np.zeros((n, n))
    out[radius : n - radius, radius : n - radius] = 2.0 * iterations
    return out
