"""Values in reports: as plain JSON can hold them, and as short text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from burnish.core.text import printable


def plain(value: Any) -> Any:
    """``value`` as JSON can hold it: NumPy scalars and arrays become Python's, what is unknown becomes its text.

    JSON knows no infinities: a number that is not finite becomes the string "nan", "inf" or "-inf".
    """
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        return number if math.isfinite(number) else str(number)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy arrays, and np.bool, which is registered nowhere
        return plain(value.tolist())
    return str(value)


def short(value: Any) -> str:
    """``value`` for a person: four significant digits, thousands separated, yes and no, a dash for nothing."""
    value = plain(value)
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return _short_float(value)
    if isinstance(value, list):
        return ", ".join(map(short, value))
    return printable(str(value))


def _short_float(value: float) -> str:
    size = abs(value)
    if size == 0 or 1e-3 <= size < 1e4:
        return f"{value:.4g}"
    return f"{value:,.0f}" if 1e4 <= size < 1e9 else f"{value:.3e}"


def is_number(value: Any) -> bool:
    """Whether a table aligns ``value`` to the right."""
    return isinstance(value, Real) and not isinstance(value, bool)
