"""The root: a table of contents, near names suggested, every failure one line and an exit code."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from burnish.cli import main, options
from burnish.cli.nouns import NOUNS, Noun
from burnish.core.errors import BudgetExhausted, BurnishError, EnvironmentProblem, MissingExtraError, Place


class PrivilegeLikeError(BurnishError):
    """A system's own error."""


RAISES: dict[str, Callable[[], BaseException]] = {
    "bad": lambda: BurnishError("no such graph 'fif'", hint="did you mean 'fft'?"),
    "place": lambda: BurnishError("unknown key", place=Place("a.toml", 3, 5, "    widht = 8", 5)),
    "own": lambda: PrivilegeLikeError("task 'f' wrote to 'a'"),
    "budget": lambda: BudgetExhausted("no answer within 5 s"),
    "environment": lambda: EnvironmentProblem("no CUDA device"),
    "extra": lambda: MissingExtraError("burnish.query needs polars: pip install 'burnish[query]'"),
    "file": lambda: FileNotFoundError(2, "No such file or directory", "missing.txt"),
    "defect": lambda: RuntimeError("boom\nsecond line"),
    "empty": lambda: ZeroDivisionError(),
    "hostile": lambda: BurnishError("bad token '\x1b[2J'"),
    "ctrl-c": lambda: KeyboardInterrupt(),
}

app = typer.Typer()


@app.command("fail")
def _fail(how: str) -> None:
    raise RAISES[how]()


@app.command("give")
def _give(
    code: int = 0,
    seed: options.Seed = 0,
    budget: options.Seconds = None,
    engine: options.Engine = "local",
    workers: options.Workers = None,
    out: options.Out = None,
    html: options.Html = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    check: options.Check = False,
) -> int:
    print(json.dumps([seed, budget, engine, workers, str(out), str(html), as_json, quiet, check]))
    return code


@pytest.fixture(autouse=True)
def lab(monkeypatch: pytest.MonkeyPatch) -> None:
    """A noun of the tests' own: this module."""
    noun = Noun("Tests", "lab", __name__, "Only in tests.")
    for module in ("burnish.cli.nouns", "burnish.cli.entry"):
        monkeypatch.setattr(f"{module}.NOUNS", (*NOUNS, noun))
    monkeypatch.delenv("BURNISH_DEBUG", raising=False)


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    code = main(list(args))
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("args", [["--help"], []])
def test_help_reads_like_a_table_of_contents(capsys: pytest.CaptureFixture[str], args: list[str]) -> None:
    code, out, err = run(capsys, *args)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    for noun in NOUNS:
        heading = next(i for i, line in enumerate(lines) if line == f"{noun.group}:")
        entry = next(i for i, line in enumerate(lines) if line.split()[:1] == [noun.name])
        assert heading < entry and lines[entry].endswith(noun.help)
    for option in ("--version", "--debug", "--install-completion", "--show-completion"):
        assert option in out


def test_every_noun_is_one_line_and_loads(capsys: pytest.CaptureFixture[str]) -> None:
    assert len({noun.name for noun in NOUNS}) == len(NOUNS)
    for noun in NOUNS:
        assert len(noun.help) <= 66 and noun.help.endswith(".") and noun.help[0].isupper()
        code, out, _ = run(capsys, noun.name, "--help")
        assert code == 0 and noun.help in " ".join(out.split()) and "--debug" in out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    import burnish

    assert run(capsys, "--version") == (0, f"burnish {burnish.__version__}\n", "")


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (["lba"], "error: burnish: no such command 'lba'; did you mean 'lab'? see burnish --help"),
        (["--verson"], "error: burnish: no such option: --verson; did you mean --version? see burnish --help"),
        (["lab", "fial"], "error: burnish lab: no such command 'fial'; did you mean 'fail'? see burnish lab --help"),
        (
            ["lab", "give", "--sed", "3"],
            "error: burnish lab give: no such option: --sed; did you mean --seed? see burnish lab give --help",
        ),
        (["lab"], "error: burnish lab: missing command; choose from fail, give; see burnish lab --help"),
        (["lab", "fail"], "error: burnish lab fail: missing argument 'how'; see burnish lab fail --help"),
        (["lab", "give", "--budget", "soon"], "error: 'soon' is not a duration; write 90, 90s, 250ms, 10m or 1.5h"),
    ],
)
def test_usage_errors_are_one_line_with_the_near_name(
    capsys: pytest.CaptureFixture[str], args: list[str], line: str
) -> None:
    assert run(capsys, *args) == (2, "", line + "\n")


@pytest.mark.parametrize(
    "args", [["--engine", "mars"], ["--workers", "0"], ["--seed", "x"], ["surplus"], ["--seed"], ["--json=7"]]
)
def test_other_usage_errors_are_one_line_too(capsys: pytest.CaptureFixture[str], args: list[str]) -> None:
    code, out, err = run(capsys, "lab", "give", *args)
    assert (code, out) == (2, "") and err.startswith("error: ") and err.count("\n") == 1
    assert args[0].partition("=")[0] in err


@pytest.mark.parametrize(
    ("how", "code", "err"),
    [
        ("bad", 2, "error: no such graph 'fif'; did you mean 'fft'?\n"),
        ("place", 2, "error: a.toml:3:5: unknown key\n        widht = 8\n        ^^^^^\n"),
        ("own", 2, "PrivilegeLikeError: task 'f' wrote to 'a'\n"),
        ("budget", 3, "error: no answer within 5 s\n"),
        ("environment", 4, "error: no CUDA device\n"),
        ("extra", 4, "error: burnish.query needs polars: pip install 'burnish[query]'\n"),
        ("file", 2, "error: missing.txt: No such file or directory\n"),
        ("defect", 70, "internal error: RuntimeError: boom; run with --debug for the traceback\n"),
        ("empty", 70, "internal error: ZeroDivisionError; run with --debug for the traceback\n"),
        ("hostile", 2, "error: bad token '\ufffd[2J'\n"),
        ("ctrl-c", 130, "interrupted\n"),
    ],
)
def test_failures_are_one_line_and_an_exit_code(
    capsys: pytest.CaptureFixture[str], how: str, code: int, err: str
) -> None:
    assert run(capsys, "lab", "fail", how) == (code, "", err)


@pytest.mark.parametrize("args", [["--debug", "lab", "fail", "bad"], ["lab", "fail", "bad", "--debug"]])
def test_debug_shows_the_traceback_wherever_it_stands(capsys: pytest.CaptureFixture[str], args: list[str]) -> None:
    code, _, err = run(capsys, *args)
    assert code == 2 and "Traceback" in err and err.splitlines()[-1].startswith("error: no such graph")
    _, _, err = run(capsys, "lab", "fail", "bad")  # and only for that command
    assert "Traceback" not in err


def test_debug_by_environment(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BURNISH_DEBUG", "1")
    assert "Traceback" in run(capsys, "lab", "fail", "defect")[2]
    monkeypatch.setenv("BURNISH_DEBUG", "0")
    assert "Traceback" not in run(capsys, "lab", "fail", "defect")[2]


def test_shared_options_parse(capsys: pytest.CaptureFixture[str]) -> None:
    args = [
        "--seed",
        "3",
        "--budget",
        "1.5m",
        "--engine",
        "ray",
        "--workers",
        "4",
        "-o",
        "a",
        "--html",
        "b",
        "--json",
        "-q",
        "--check",
        "--code",
        "1",
    ]
    code, out, err = run(capsys, "lab", "give", *args)
    assert (code, err) == (1, "")
    assert json.loads(out) == [3, 90.0, "ray", 4, "a", "b", True, True, True]
    code, out, _ = run(capsys, "lab", "give")
    assert code == 0 and json.loads(out) == [0, None, "local", None, "None", "None", False, False, False]


def test_a_command_that_returns_nothing_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "lab", "give", "--help")[0] == 0


def shell(*args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *args], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )


@pytest.mark.parametrize("module", ["burnish", "burnish.cli"])
def test_runs_as_a_module(module: str) -> None:
    done = shell(module, "nonsense")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: burnish: no such command 'nonsense'")


def test_completion_offers_nouns_and_options_and_a_script() -> None:
    nouns_offered = shell("burnish", _BURNISH_COMPLETE="complete_bash", COMP_WORDS="burnish do", COMP_CWORD="1")
    assert nouns_offered.stdout.split() == ["doctor"]
    options_offered = shell("burnish", _BURNISH_COMPLETE="complete_bash", COMP_WORDS="burnish tour --w", COMP_CWORD="2")
    assert options_offered.stdout.split() == ["--workers"]
    assert "_BURNISH_COMPLETE" in shell("burnish", "--show-completion", "bash").stdout


def test_help_imports_no_noun_and_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; from burnish.cli import main; main(['--help']);"
        "heavy = {'numpy', 'numba', 'matplotlib', 'rich', 'ray', 'dask'} & set(sys.modules);"
        f"nouns = {[noun.module for noun in NOUNS]!r};"
        "sys.exit(repr((heavy, set(nouns) & set(sys.modules))) if heavy or set(nouns) & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_pipe_that_is_closed_early_is_no_traceback() -> None:
    code = "import sys; from burnish.cli import main; sys.exit(main(['--help']))"
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-c", code], stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert "Traceback" not in done.stderr and done.returncode != 0
