"""Importing burnish is light: nothing heavy is imported before it is used."""

import subprocess
import sys

import pytest

HEAVY = {"numpy", "numba", "matplotlib", "rich", "typer", "pydantic", "ray", "dask", "networkx", "scipy", "torch"}


@pytest.mark.parametrize("module", ["burnish", "burnish.core.errors", "burnish.core.evidence", "burnish.core.progress"])
def test_nothing_heavy_comes_along(module: str) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not HEAVY & set(done.stdout.split())


def test_the_version_is_that_of_the_distribution() -> None:
    import burnish

    assert burnish.__version__.count(".") == 2
    with pytest.raises(AttributeError, match="no attribute 'verzion'"):
        burnish.verzion  # noqa: B018
