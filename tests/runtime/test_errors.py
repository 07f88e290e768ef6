"""Every mistake of specs section 12 gets its exact first line, whatever runs the tasks: tests/cases/runtime_errors.toml."""

from __future__ import annotations

import importlib.util
import linecache
import os
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from burnish.core.errors import BurnishError
from burnish.runtime.context import Settings, abandon, set_defaults, stop

TABLE = tomllib.loads((Path(__file__).parent.parent / "cases" / "runtime_errors.toml").read_text())
CASES = {case["name"]: case for case in TABLE["case"]}
RUNS = [(name, executor) for name, case in CASES.items() for executor in case.get("executors", ("serial", "threads"))]


def write_program(folder: Path, case: dict[str, Any]) -> Path:
    path = folder / "app.py"
    path.write_text(TABLE["prelude"] + case["program"].removeprefix("\n"))
    return path


def skip_without(case: dict[str, Any]) -> None:
    if "needs" in case and importlib.util.find_spec(case["needs"]) is None:
        pytest.skip(f"needs {case['needs']}")


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    abandon()
    set_defaults(Settings())
    linecache.clearcache()


def first_line(path: Path) -> str:
    """``ClassName: first line`` of what a program raises, empty if it ends well."""
    try:
        runpy.run_path(str(path), run_name="__main__")
        stop()
    except Exception as error:
        assert isinstance(error, (BurnishError, ValueError))
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return ""


@pytest.mark.parametrize(("name", "executor"), RUNS, ids=[f"{name} / {executor}" for name, executor in RUNS])
def test_first_line(name: str, executor: str, workplace: Path) -> None:
    case = CASES[name]
    skip_without(case)
    set_defaults(Settings(**{"executor": executor, "workers": 2, **case.get("settings", {})}))
    assert first_line(write_program(workplace, case)) == case["error"]


@pytest.mark.parametrize("name", ["read argument assigned", "write argument accumulated into", "nothing runs"])
def test_command_line(name: str, tmp_path: Path) -> None:
    """``burnish run`` shows the same line, names the launch, and exits with 2."""
    case = CASES[name]
    program = write_program(tmp_path, case)
    options = ["--check"] if case.get("settings", {}).get("check") else []
    command = [sys.executable, "-m", "burnish.cli", "run", *options, program.name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=os.environ, timeout=120)
    lines = done.stderr.splitlines()
    assert (done.returncode, lines[:1]) == ((2, [case["error"]]) if case["error"] else (0, []))
    if case["error"]:
        assert "launched at app.py:" in lines[1] and "Traceback" not in done.stderr


def test_plain_python_fails_at_exit(tmp_path: Path) -> None:
    """A program that never waits for its tasks learns of their errors when it ends."""
    program = write_program(tmp_path, CASES["read argument assigned"])
    done = subprocess.run([sys.executable, program.name], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == CASES["read argument assigned"]["error"]


def test_other_errors_keep_their_type_and_tell_the_launch(workplace: Path) -> None:
    program = workplace / "app.py"
    program.write_text(
        TABLE["prelude"] + "@task\ndef f(x: ReadWrite, n: int):\n    x[n + 10] = 0\n"
        "u = rt.region(8, 'f8')\nf.map(2, rt.block(u, 2)[each], each)\n"
    )
    with pytest.raises(IndexError) as caught:
        runpy.run_path(str(program), run_name="__main__")
        stop()
    assert caught.value.__notes__ == [
        "in task 'f', color 0, launched at app.py:8",
        "and so did 1 other color of this launch",
    ]
    assert any(entry.name == "f" and entry.lineno == 6 for entry in caught.traceback)
