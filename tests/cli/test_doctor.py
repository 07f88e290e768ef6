"""The doctor: finds what is there, tells what is not, fails only for what burnish cannot do without."""

import json

import pytest

from burnish.cli import doctor, main
from burnish.core import machine
from burnish.core.packages import Extra, Package

NUMPY = Package("numpy", "numpy>=2.0", "2.4.0", True)
OLD = Package("rich", "rich>=13.8", "12.0", False)
POLARS = Package("polars", "polars>=1.0", None, False)


def test_json_is_the_whole_examination(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--json"])
    read = json.loads(capsys.readouterr().out)
    assert code == (4 if read["problems"] else 0)
    assert read["machine"]["usable_cores"] == machine.usable_cores()
    assert isinstance(read["native"], list)


def test_text_names_what_matters(capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor"])
    out = capsys.readouterr().out
    for part in ("Python", "native module", "cores", "memory", "C++ compiler", "GPU"):
        assert part in out


def test_extras_are_shown_with_the_command_that_adds_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("burnish.core.packages.base", lambda: (NUMPY,))
    monkeypatch.setattr(
        "burnish.core.packages.extras",
        lambda: (Extra("query", (POLARS,)), Extra("math", (NUMPY,)), Extra("all", (POLARS, NUMPY))),
    )
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    query = next(line for line in lines if line.split()[:1] == ["query"])
    assert query.split()[1:] == ["polars>=1.0", "–", "pip", "install", "'burnish[query]'"]
    complete = next(line for line in lines if line.split()[:1] == ["math"])
    assert complete.split()[1:] == ["numpy>=2.0", "2.4.0"]
    assert not any(line.split()[:1] == ["all"] for line in lines)
    assert main(["doctor", "--json"]) == 0
    extras = json.loads(capsys.readouterr().out)["extras"]
    assert extras[0]["complete"] is False and extras[0]["command"] == "pip install 'burnish[query]'"


def test_a_missing_base_package_is_a_problem(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("burnish.core.packages.base", lambda: (NUMPY, OLD, POLARS))
    monkeypatch.setattr("burnish.core.packages.extras", lambda: ())
    assert main(["doctor"]) == 4
    out = capsys.readouterr().out
    assert "burnish needs rich>=13.8, 12.0 is here: pip install 'rich>=13.8'" in out
    assert "burnish needs polars>=1.0, it is not here" in out and "12.0, too old" in out


def test_a_native_module_that_does_not_load_is_a_problem(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> tuple[str, ...]:
        raise ImportError("undefined symbol")

    monkeypatch.setattr(doctor, "_native_parts", broken)
    assert main(["doctor"]) == 4
    assert "the native module does not load (undefined symbol)" in capsys.readouterr().out


def test_a_source_tree_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> tuple[Package, ...]:
        raise doctor.PackageNotFoundError("burnish")

    monkeypatch.setattr("burnish.core.packages.base", absent)
    assert main(["doctor"]) == 0
    assert "Extras are not known: burnish runs from a source tree" in capsys.readouterr().out
