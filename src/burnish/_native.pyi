"""The native module is untyped for checkers; each part has one thin Python module that annotates what comes out."""

from typing import Any

def __getattr__(name: str) -> Any: ...
