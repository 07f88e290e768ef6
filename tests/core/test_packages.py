"""Packages: what the installed distribution itself declares. Oracle: metadata written by the tests."""

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from burnish.core import packages

METADATA = """Metadata-Version: 2.1
Name: gadget
Version: 1.0
Requires-Dist: numpy>=1.0
Requires-Dist: not-for-us>=1.0; python_version < "3"
Requires-Dist: rich>=9999
Provides-Extra: plot
Requires-Dist: matplotlib>=3.0; extra == "plot"
Requires-Dist: surely-not-installed>=2.0; extra == "plot"
Provides-Extra: fast
Requires-Dist: numba; extra == "fast"
Provides-Extra: all
Requires-Dist: gadget[fast,plot]; extra == "all"
"""


@pytest.fixture
def gadget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / "gadget-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(METADATA)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "gadget"


def test_base(gadget: str) -> None:
    numpy, rich = packages.base(gadget)
    assert (numpy.wanted, numpy.installed, numpy.missing) == ("numpy>=1.0", version("numpy"), False)
    assert (rich.wanted, rich.installed, rich.missing) == ("rich>=9999", version("rich"), True)


def test_extras(gadget: str) -> None:
    plot, fast, everything = packages.extras(gadget)
    assert [p.name for p in plot.packages] == ["matplotlib", "surely-not-installed"]
    assert plot.packages[1].installed is None and not plot.complete and fast.complete
    assert plot.command == "pip install 'burnish[plot]'"
    assert [p.name for p in everything.packages] == ["numba", "matplotlib", "surely-not-installed"]


def test_not_installed() -> None:
    with pytest.raises(PackageNotFoundError):
        packages.base("a-distribution-that-is-not-here")
