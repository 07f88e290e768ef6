"""burnish: write the obvious program; burnish finds the fast one, and shows that it is still the same program."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("burnish")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0.0.0"
