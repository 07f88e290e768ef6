"""Values that tell that they were never written: NaNs with a payload, extreme integers.

A signalling NaN stays signalling while it is only copied, and becomes quiet with the same payload as soon as it takes
part in arithmetic. So a body's results tell whether a point was never written, or was read before it was written, and
the mark in the payload tells which argument it came from. The payload sits in the bits that all float formats share, so
it survives conversions. Integers of less than 4 bytes have no values to spare; they are left alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

MARKS = 31  # distinguishable arguments
_TAG = 0b1011 << 5  # four bits of payload above the mark, just below the quiet bit

# bytes of a float -> (word, bits below the ten top bits of its mantissa, exponent mask)
_FLOATS = {2: (np.uint16, 0, 0x7C00), 4: (np.uint32, 13, 0x7F800000), 8: (np.uint64, 42, 0x7FF0000000000000)}
# (kind, bytes) -> integer pattern without its mark
_INTEGERS = {
    ("i", 4): 0x80B0DE00,
    ("u", 4): 0xFFB0DE00,
    ("i", 8): 0x8000B0DE5EED0000,
    ("u", 8): 0xFFFFB0DE5EED0000,
}


def _layout(dtype: np.dtype[Any]) -> tuple[str, Any]:
    """("float", bytes of a component), ("integer", pattern) or ("none", None)."""
    if dtype.kind in "fc":
        size = dtype.itemsize // (2 if dtype.kind == "c" else 1)
        return ("float", size) if size in _FLOATS else ("none", None)
    kind = "i" if dtype.kind in "imM" else dtype.kind
    pattern = _INTEGERS.get((kind, dtype.itemsize))
    return ("integer", pattern) if pattern is not None else ("none", None)


def _words(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The components as unsigned integers; complex numbers get one more axis of length 2."""
    size = array.dtype.itemsize // (2 if array.dtype.kind == "c" else 1)
    words = array.view(np.dtype(f"u{size}"))
    return words.reshape((*array.shape, 2)) if array.dtype.kind == "c" else words


def fill(array: npt.NDArray[Any], mark: int) -> bool:
    """Fill a writeable array with the pattern of ``mark`` (1 to 31); False if its dtype has none."""
    kind, what = _layout(array.dtype)
    if kind == "none" or array.size == 0:
        return False
    if kind == "float":
        word, shift, exponent = _FLOATS[what]
        value = exponent | (_TAG | mark) << shift
    else:
        word, value = np.dtype(f"u{array.dtype.itemsize}").type, what | mark
    target = array.view(word)  # keeps strides: the last axis of a region's array is contiguous
    target[...] = value
    return True


def unwritten(array: npt.NDArray[Any], mark: int) -> npt.NDArray[np.bool_]:
    """Where an array still holds what :func:`fill` put there, untouched; bool of the array's shape."""
    kind, what = _layout(array.dtype)
    found: npt.NDArray[np.bool_]
    if kind == "integer":
        words = array.view(f"u{array.dtype.itemsize}")
        found = words == words.dtype.type(what | mark)
        return found
    _, shift, exponent = _FLOATS[what]
    found = _words(array) == np.array(exponent | (_TAG | mark) << shift, f"u{what}")
    return np.asarray(found.any(axis=-1)) if array.dtype.kind == "c" else found


def marks(array: npt.NDArray[Any], *, quiet_only: bool) -> npt.NDArray[np.uint8]:
    """The mark of each value that derives from a filled one, 0 for others; uint8 of the array's shape.

    ``quiet_only``: only values that arithmetic has touched, not untouched or copied ones.
    """
    kind, what = _layout(array.dtype)
    if kind == "none":
        return np.zeros(array.shape, np.uint8)
    if kind == "integer":
        if quiet_only:
            return np.zeros(array.shape, np.uint8)
        words = array.view(f"u{array.dtype.itemsize}")
        found = (words & ~words.dtype.type(MARKS)) == words.dtype.type(what)
        return np.where(found, words & words.dtype.type(MARKS), 0).astype(np.uint8)
    word, shift, exponent = _FLOATS[what]
    words = _words(array)
    payload = (words >> word(shift)) & word(0x1FF)
    found = ((words & word(exponent)) == word(exponent)) & ((payload & word(0x1E0)) == word(_TAG))
    if quiet_only:
        found &= ((words >> word(shift + 9)) & word(1)) == word(1)
    result = np.where(found, payload & word(MARKS), 0).astype(np.uint8)
    return result.max(axis=-1) if array.dtype.kind == "c" else result
