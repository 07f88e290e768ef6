"""A report keeps what it is given, and shows the same in JSON and in a terminal."""

import io
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from burnish.core.errors import BurnishError
from burnish.core.evidence import Evidence
from burnish.report import Figure, Report, Section, Table
from burnish.report.plots import figure

cell = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()


def small_figure() -> object:
    made, [axes] = figure()
    axes.plot([0, 1], [1, 0])
    return made


def terminal_text(report: Report, width: int = 200) -> str:
    screen = io.StringIO()
    report.to_terminal(Console(file=screen, width=width, highlight=False))
    return screen.getvalue()


@given(st.lists(st.tuples(cell, cell), max_size=5), st.text(), st.text())
def test_tables_round_trip_through_json(rows: list[tuple[object, object]], title: str, text: str) -> None:
    report = Report(title)
    report.table(["a", "b"], rows, title=title)
    report.text(text)
    report.section(text, 2)
    read = json.loads(report.to_json())
    assert read["title"] == title
    assert read["blocks"][0]["columns"] == ["a", "b"]
    assert [tuple(row) for row in read["blocks"][0]["rows"]] == rows
    assert read["blocks"][1:] == [
        {"kind": "text", "markdown": text},
        {"kind": "section", "title": text, "level": 2},
    ]


def test_json_of_figures_and_evidence() -> None:
    report = Report("r")
    report.figure(small_figure(), title="Speed", caption="by workers")
    report.evidence(Evidence("a == b", "tested", "3 programs", {"n": np.int64(3), "worst": math.inf}))
    report.evidence()
    assert json.loads(report.to_json())["blocks"] == [
        {"kind": "figure", "title": "Speed", "caption": "by workers"},
        {
            "kind": "evidence",
            "items": [
                {
                    "claim": "a == b",
                    "strength": "tested",
                    "method": "3 programs",
                    "detail": {"n": 3, "worst": "inf"},
                }
            ],
        },
    ]


def test_ragged_rows_and_bad_levels_are_refused() -> None:
    with pytest.raises(ValueError, match="row 1 has 1 values, the table 2 columns"):
        Report("r").table(["a", "b"], [(1, 2), (3,)])
    with pytest.raises(ValueError, match="must be 1 or more"):
        Report("r").section("s", 0)


def test_rows_may_come_from_a_generator() -> None:
    report = Report("r")
    report.table(["n", "n²"], ((n, n * n) for n in range(3)))
    assert report.blocks == (Table(("n", "n²"), ((0, 0), (1, 1), (2, 4))),)


def test_include_nests_the_sections() -> None:
    inner = Report("Runtime")
    inner.section("Speed")
    inner.text("fast")
    page = Report("Tour")
    page.include(inner)
    assert [block for block in page.blocks if isinstance(block, Section)] == [
        Section("Runtime", 1),
        Section("Speed", 2),
    ]


def test_terminal_shows_all_blocks() -> None:
    report = Report("The title")
    report.section("A section")
    report.text("Some *marked* text with <b>tags</b>.")
    report.table(["engine", "time / s"], [("serial", 12.34567), ("threads", None)], title="Times")
    report.figure(small_figure(), title="Speed", caption="by workers")
    report.evidence(Evidence("same bits", "checked", "all 16 cells"))
    text = terminal_text(report)
    for part in (
        "The title",
        "A section",
        "Some marked text with <b>tags</b>.",
        "Times",
        "12.35",
        "[figure] Speed: by workers",
        "checked  same bits (all 16 cells)",
    ):
        assert part in text


def test_terminal_loses_no_cell_in_a_narrow_window() -> None:
    report = Report("r")
    word = "abcdefghij" * 10
    report.table(["w"], [(word,)])
    assert word in "".join(terminal_text(report, width=30).split())


HOSTILE = "a\x1b]0;owned\x07[bold]b[/nonsense]\x9b31m\udcff\u202etxt"


def test_hostile_text_does_not_reach_the_terminal() -> None:
    report = Report(HOSTILE)
    report.section(HOSTILE)
    report.text(HOSTILE)
    report.table([HOSTILE], [(HOSTILE,)], title=HOSTILE)
    report.figure(small_figure(), title=HOSTILE)
    report.evidence(Evidence(HOSTILE, "tested", HOSTILE))
    text = terminal_text(report)
    text.encode()
    assert not set("\x1b\x07\x9b\u202e") & set(text)
    assert "[bold]b[/nonsense]" in text


def test_streams_are_chosen_by_argument(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report("where")
    report.to_terminal()
    assert capsys.readouterr() == ("where\n", "")
    report.to_terminal(stderr=True)
    assert capsys.readouterr() == ("", "where\n")


@pytest.mark.parametrize(("name", "magic"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF")])
def test_each_figure_saves_itself(tmp_path: Path, name: str, magic: bytes) -> None:
    report = Report("r")
    made = report.figure(small_figure())
    assert isinstance(made, Figure) and report.figures == (made,)
    assert made.savefig(tmp_path / name).read_bytes().startswith(magic)


def test_unknown_picture_format_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(BurnishError, match=r"cannot draw to .*a\.xyz; end the name in one of .*png") as caught:
        Figure(small_figure()).savefig(tmp_path / "a.xyz")
    assert "\n" not in str(caught.value)
