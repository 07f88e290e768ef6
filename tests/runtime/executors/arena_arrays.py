"""Arrays of an arena, for the tests of the executors."""

from __future__ import annotations

import numpy as np

from burnish.runtime.executors import native


def empty(arena, shape, dtype="f8"):
    """A new array in the arena, as the driver sees it."""
    dtype = np.dtype(dtype)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    offset = arena.alloc(int(np.prod(shape)) * dtype.itemsize)
    strides = np.empty(shape, dtype).strides
    return native.decoder(arena).array(native.array_desc(offset, dtype.str, dtype.itemsize, shape, strides, True))


def describe(arena, array, writeable=True, dtype=None):
    """The description of any view of an array of the arena."""
    offset = array.__array_interface__["data"][0] - arena.address
    code = dtype if dtype is not None else array.dtype.str
    return native.array_desc(offset, code, array.itemsize, array.shape, array.strides, writeable)
