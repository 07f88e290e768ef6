"""The frame of the tour, with stops that the tests write."""

import json
import sys
from pathlib import Path

import pytest

from burnish.cli import main
from burnish.cli.tour import _frame, command

GOOD = """
from burnish.core.evidence import Evidence
TITLE = "{title}"
ORDER = {order}
def stop(report, settings):
    report.section("Inside")
    report.table(["workers", "seed"], [(settings.workers, settings.seed)])
    report.evidence(Evidence("same bits", "checked", "all cells"))
    return "{title} went well"
"""
RAISING = """
TITLE = "{title}"
ORDER = {order}
def stop(report, settings):
    report.text("so far")
    {what}
"""


@pytest.fixture
def stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty package of stops that the tour looks at."""
    folder = tmp_path / "package" / "stops_of_this_test"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "_helper.py").write_text("raise RuntimeError('not a stop')")
    monkeypatch.syspath_prepend(str(folder.parent))
    monkeypatch.setattr("burnish.cli.tour.__name__", folder.name)
    monkeypatch.chdir(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.startswith(folder.name)]:
        del sys.modules[name]


def write(folder: Path, name: str, template: str, **values: object) -> None:
    (folder / f"{name}.py").write_text(template.format(title=name.title(), **{"order": 1, **values}))


def test_stops_run_in_order_and_make_one_page(stops: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(stops, "alpha", GOOD, order=20)
    write(stops, "beta", GOOD, order=10)
    assert main(["tour", "--workers", "3", "--seed", "7"]) == 0
    out, err = capsys.readouterr()
    page = Path("out/tour.html")
    assert out == f"{page.resolve()}\n"
    assert err.index("Beta went well") < err.index("Alpha went well")
    text = page.read_text()
    assert text.index(">Beta</h2>") < text.index(">Alpha</h2>") and text.count(">Inside</h3>") == 2
    assert '<td class="number">3</td><td class="number">7</td>' in text


def test_json_and_quiet(stops: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(stops, "alpha", GOOD)
    assert main(["tour", "--json", "--quiet", "--out", "elsewhere/page.html"]) == 0
    out, err = capsys.readouterr()
    assert err == "" and Path("elsewhere/page.html").exists()
    read = json.loads(out)
    [row] = read["blocks"][1]["rows"]
    assert [row[0], row[1], row[3]] == ["Alpha", "done", "Alpha went well"]
    assert {block["kind"] for block in read["blocks"]} >= {"section", "table", "evidence"}


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("raise ValueError('wrong <b>bits</b>')", "ValueError: wrong <b>bits</b>"),
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("assert 1 == 2, 'sum differs'", "AssertionError: sum differs"),
    ],
)
def test_a_stop_that_fails_is_told_and_the_others_run(
    stops: Path, capsys: pytest.CaptureFixture[str], what: str, line: str
) -> None:
    write(stops, "alpha", RAISING, what=what)
    write(stops, "beta", GOOD, order=2)
    assert main(["tour"]) == 1
    _, err = capsys.readouterr()
    assert "failed  Alpha" in err and line in err and "Beta went well" in err
    text = Path("out/tour.html").read_text()
    assert "This stop failed." in text and "so far" in text and "Traceback" in text and ">Beta</h2>" in text


def test_a_stop_that_cannot_be_imported_fails_alone(stops: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (stops / "broken.py").write_text("import a_module_that_is_not_here")
    (stops / "nameless.py").write_text("TITLE = 'x'")
    write(stops, "beta", GOOD)
    assert main(["tour"]) == 1
    _, err = capsys.readouterr()
    assert "No module named 'a_module_that_is_not_here'" in err and "ORDER" in err and "Beta went well" in err


def test_a_missing_extra_is_skipped_with_the_remedy(stops: Path, capsys: pytest.CaptureFixture[str]) -> None:
    what = "from burnish.core.errors import require; require('polarz', needed_by='burnish.query', extra='query')"
    write(stops, "alpha", RAISING, what=what)
    write(stops, "beta", GOOD)
    assert main(["tour"]) == 0
    assert "skipped  Alpha" in (err := capsys.readouterr().err) and "pip install 'burnish[query]'" in err


def test_an_interruption_keeps_what_is_done(stops: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(stops, "alpha", GOOD, order=1)
    write(stops, "beta", RAISING, order=2, what="raise KeyboardInterrupt")
    write(stops, "gamma", GOOD, order=3)
    assert main(["tour"]) == 130
    assert "Gamma" not in capsys.readouterr().err
    text = Path("out/tour.html").read_text()
    assert ">Alpha</h2>" in text and "interrupted" in text and ">Gamma</h2>" not in text


def test_only_some_stops(stops: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(stops, "alpha", GOOD)
    write(stops, "beta", GOOD)
    assert main(["tour", "--only", "beta"]) == 0
    assert "Alpha" not in capsys.readouterr().err
    assert main(["tour", "--only", "betta"]) == 2
    assert capsys.readouterr().err == "error: the tour has no stop 'betta'; did you mean 'beta'?\n"


def test_no_stop_at_all_is_a_clear_error(stops: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tour"]) == 4
    assert capsys.readouterr().err.startswith("error: this installation has no system to show")


def test_a_page_that_cannot_be_written_is_found_before_the_work(
    stops: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(stops, "alpha", GOOD)
    (tmp_path / "folder").mkdir()
    assert main(["tour", "--out", "folder"]) == 2
    _, err = capsys.readouterr()
    assert err == "error: cannot write folder: it is a folder; give the name of a file\n"


def test_every_stop_of_this_installation_keeps_the_convention() -> None:
    for name in _frame.find_stops("burnish.cli.tour"):
        module = __import__(name, fromlist=["stop"])
        assert isinstance(module.TITLE, str) and isinstance(module.ORDER, int) and callable(module.stop)
    assert command.__doc__
