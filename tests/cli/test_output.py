"""Results to standard output, human text to standard error."""

import json
from pathlib import Path

import pytest

from burnish.cli.output import publish, remark, working
from burnish.core.progress import progress
from burnish.report import Report


def report() -> Report:
    made = Report("Times")
    made.table(["n"], [(1,)])
    return made


def test_text_and_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    publish(report(), html=tmp_path / "page.html")
    out, err = capsys.readouterr()
    assert out.startswith("Times\n") and err == f"wrote {tmp_path}/page.html\n"
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")


def test_json_alone_on_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    publish(report(), json=True, html=tmp_path / "page.html", quiet=True)
    out, err = capsys.readouterr()
    assert json.loads(out)["title"] == "Times" and err == ""


def test_remarks_are_harmless_and_may_be_off(capsys: pytest.CaptureFixture[str]) -> None:
    remark("a\x1b[2Jb")
    remark("unheard", quiet=True)
    assert capsys.readouterr() == ("", "a\ufffd[2Jb\n")


@pytest.mark.parametrize("quiet", [True, False])
def test_work_goes_on_with_and_without_bars(quiet: bool) -> None:
    with working(quiet), progress("work", 1) as meter:
        meter.advance()
