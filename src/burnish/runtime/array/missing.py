"""What is not available says so and how to get it; nothing falls back to NumPy silently."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np


def missing(name: str, call: str) -> NotImplementedError:
    """The error for ``bn.<name>``, with the wrapper that makes NumPy's ``call`` usable."""
    return NotImplementedError(f"bn.{name} is not available; wrap it: @bn.opaque def f(x): return {call}")


class MissingModule:
    """A part of NumPy that bn does not have (bn.fft); its functions raise when they are looked up."""

    def __init__(self, name: str, module: ModuleType) -> None:
        self._name, self._module = name, module

    def __getattr__(self, attribute: str) -> Any:
        return lookup(f"{self._name}.{attribute}", self._module, attribute)


def lookup(name: str, module: ModuleType, attribute: str) -> Any:
    """Attribute ``attribute`` of a NumPy module under the bn name ``name``."""
    if attribute.startswith("_") or not hasattr(module, attribute):
        raise AttributeError(f"module 'burnish.runtime.array' has no attribute '{name}' (nor has numpy)")
    found = getattr(module, attribute)
    if isinstance(found, ModuleType):
        return MissingModule(name, found)
    raise missing(name, f"np.{name}(x)")


def missing_method(name: str) -> Any:
    """A method of numpy.ndarray that bn.ndarray does not have."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise missing(f"ndarray.{name}", f"x.{name}(...)" if hasattr(np.ndarray, name) else f"np.{name}(x)")

    method.__name__ = name
    method.__doc__ = f"Not available; ``@bn.opaque def f(x): return x.{name}(...)``."
    return method
