# ruff: noqa: F401  (all of these are the module's interface)
"""NumPy-like arrays whose operations are tasks: ``import burnish.runtime.array as bn`` in place of ``numpy``.

>>> import burnish.runtime.array as bn
>>> a = bn.arange(6.0).reshape(2, 3)
>>> a[:, 1:] += 10.0
>>> float(a.sum())
55.0

Each operation launches a task and returns at once; ``float(x)``, ``if x``, printing and ``numpy.asarray(x)`` wait.
What is missing raises NotImplementedError; see :func:`opaque`.
"""

from typing import Any as _Any

import numpy as _np

from burnish.runtime.array import random
from burnish.runtime.array._native import Array as ndarray
from burnish.runtime.array.creation import (
    arange,
    array,
    asarray,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    identity,
    linspace,
    ones,
    ones_like,
    zeros,
    zeros_like,
)  # fmt: skip
from burnish.runtime.array.methods import install as _install
from burnish.runtime.array.missing import lookup as _lookup
from burnish.runtime.array.opaque import opaque
from burnish.runtime.array.products import dot, linalg, matmul, vdot
from burnish.runtime.array.reductions import all, any, max, mean, min, prod, sum
from burnish.runtime.array.shaping import (
    astype,
    broadcast_to,
    concatenate,
    copy,
    expand_dims,
    hstack,
    ravel,
    reshape,
    roll,
    squeeze,
    stack,
    swapaxes,
    transpose,
    vstack,
)  # fmt: skip
from burnish.runtime.array.ufuncs import *  # noqa: F403
from burnish.runtime.array.whole import argmax, argmin, argsort, cumsum, einsum, put, sort, take

amin, amax = min, max
pi, e, inf, nan, newaxis = _np.pi, _np.e, _np.inf, _np.nan, None
bool_, int8, int16, int32, int64 = _np.bool_, _np.int8, _np.int16, _np.int32, _np.int64
uint8, uint16, uint32, uint64 = _np.uint8, _np.uint16, _np.uint32, _np.uint64
float32, float64, complex64, complex128 = _np.float32, _np.float64, _np.complex64, _np.complex128

__all__ = [name for name in dir() if not name.startswith("_")]

_install()


def __getattr__(name: str) -> _Any:
    return _lookup(name, _np, name)
