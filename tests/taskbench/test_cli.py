"""``burnish taskbench`` from the outside."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from burnish.cli import main
from burnish.taskbench.graph import TYPES
from burnish.taskbench.systems import SYSTEMS

RANDOM = "-steps 50 -width 31 -type random_nearest -radix 5 -period 3 -fraction 0.7"


def _run(arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main(["taskbench", *arguments.split()])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("system", ["serial", "threads", "dask"])
def test_run_counts_and_validates(system: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(f"run {RANDOM} --system {system} --quiet", capsys)
    assert code == 0 and "1550 tasks, 5570 dependencies" in out
    assert "every task ran once, on the outputs that the graph asks for" in out.replace("\n", " ")


@pytest.mark.slow
@pytest.mark.parametrize("system", ["processes", "ray"])
def test_run_on_processes(system: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(f"run {RANDOM} --system {system} --json --quiet", capsys)
    assert code == 0
    line = json.loads(out)
    assert (line["tasks"], line["dependences"], line["validated"]) == (1550, 5570, True)


def test_run_json_is_one_line_per_system(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(f"run {RANDOM} --system serial,threads --json --quiet", capsys)
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and [line["system"] for line in lines] == ["serial", "threads"]


def test_original_format(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(
        f"run {RANDOM} -kernel compute_bound -iter 8 -nodes 2 --system serial --format original", capsys
    )
    assert code == 0 and out.startswith("Running Task Benchmark\n")
    assert re.search(r"^Total Tasks 1550$", out, re.MULTILINE)
    assert re.search(r"^Total Dependencies 5570$", out, re.MULTILINE)
    assert re.search(r"^Elapsed Time [0-9.]+e[+-]\d+ seconds$", out, re.MULTILINE)


def test_several_graphs(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run("run -steps 4 -width 3 -type no_comm -and -steps 5 -width 2 -type fft --json -q", capsys)
    line = json.loads(out)
    assert code == 0 and line["tasks"] == 12 + 10 and line["dependences"] == 9 + 16
    assert [graph["index"] for graph in line["graphs"]] == [0, 1]


def test_page_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "run.html"
    code, _, _ = _run(f"run -steps 5 -width 4 -type fft --system serial,threads --quiet --html {page}", capsys)
    text = page.read_text()
    assert code == 0 and text.count("<svg") == 2 and "Timelines" in text


def test_metg(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "metg.html"
    code, out, _ = _run(f"metg --systems serial,threads --width 2 --budget 3 --cpu-time --quiet --html {page}", capsys)
    assert code in (0, 3) and "METG" in out
    assert "<svg" in page.read_text()


def test_compare_and_exit_code_of_absent_systems(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = _run("compare --systems serial --budget 1 --json --quiet", capsys)
    line = json.loads(out)
    assert code == 0 and line["measure"] == "tasks" and line["cpu_us"] > 0
    monkeypatch.setitem(__import__("sys").modules, "joblib", None)
    code, out, _ = _run("compare --systems joblib --budget 1 --json --quiet", capsys)
    assert code == 4 and json.loads(out)["reason"].startswith("system 'joblib' needs joblib")
    code, _, err = _run("run --system joblib --quiet", capsys)
    assert code == 4 and "pip install 'burnish[taskbench]'" in err and len(err.strip().splitlines()) == 1


def test_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        _run("show --type tree --steps 3 --width 4", capsys)[1]
        == "0 0:\n1 0: 0\n1 1: 0\n2 0: 0\n2 1: 0\n2 2: 1\n2 3: 1\n"
    )
    code, out, _ = _run("show --type fft --steps 4 --width 4 --svg", capsys)
    assert code == 0 and ElementTree.fromstring(out).tag.endswith("svg")
    code, _, _ = _run(f"show --type fft --out {tmp_path / 'graph.png'} --quiet", capsys)
    assert code == 0 and (tmp_path / "graph.png").read_bytes().startswith(b"\x89PNG")
    code, _, err = _run("show --steps 1000 --width 1000 --svg", capsys)
    assert code == 2 and "shows nothing" in err


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run("list", capsys)
    assert code == 0 and all(name in out for name in (*TYPES, *SYSTEMS))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("run -type sprad", "unknown type 'sprad'; did you mean 'spread'?"),
        ("run -type spread -radix 5", "spread with radix 5 needs width >= 5, got 4"),
        ("run --system thread", "unknown system 'thread'; did you mean 'threads'?"),
        ("run --and --steps x", "--steps x is not a number"),
        ("run --shape 4y2", "'4y2' is not a shape; write 4x8 or 4x8x2"),
        ("run -kernel memory_bound", "memory_bound needs scratch of at least 256 bytes, got 0"),
        ("metg --kernel empty", "efficiency needs a kernel that works; use --kernel compute_bound"),
        ("compare --measure speed", "unknown measure 'speed'; write one of"),
    ],
)
def test_bad_input(arguments: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = _run(arguments + " --quiet", capsys)
    assert code == 2 and out == "" and message in err and len(err.strip().splitlines()) == 1
