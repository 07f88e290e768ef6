"""burnish: write the obvious program; burnish finds the fast one, and shows that it is still the same program.

Importing this package costs next to nothing: each system is a subpackage that is imported when it is used.
"""

from __future__ import annotations

__version__: str


def __getattr__(name: str) -> str:
    """Look the version up when somebody asks: reading package metadata would double the time of the import."""
    if name != "__version__":
        raise AttributeError(f"module 'burnish' has no attribute '{name}'")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("burnish")
    except PackageNotFoundError:  # a source tree that was never installed
        return "0.0.0"
