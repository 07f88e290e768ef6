"""Repeated substrings of a token sequence, by suffix array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from burnish._native import tracing as _tracing


class Repeat(NamedTuple):
    """A substring ``[start, end)`` and the starts of all its chosen, disjoint occurrences."""

    start: int
    end: int
    starts: tuple[int, ...]


def _tokens(tokens: Sequence[int] | npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    return np.ascontiguousarray(tokens, dtype=np.uint64)


def find_repeats(tokens: Sequence[int] | npt.NDArray[np.uint64], min_length: int = 2) -> list[Repeat]:
    """Disjoint repeats of at least ``min_length`` tokens, longest first, that together cover much of ``tokens``.

    The published greedy selection over adjacent suffixes (Yadav et al., "Automatic Tracing in Task-Based Runtime
    Systems", ASPLOS 2025); O(n log n). Tokens are unsigned 64-bit integers.
    """
    found = _tracing.repeats(_tokens(tokens), min_length)
    return [Repeat(start, end, tuple(starts)) for start, end, starts in found]


def suffix_array(tokens: Sequence[int] | npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Starts of the suffixes in lexicographic order, and the common prefix of each with the next (last 0)."""
    order, common = _tracing.suffixes(_tokens(tokens))
    return np.asarray(order), np.asarray(common)
