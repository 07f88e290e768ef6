"""``burnish run PROGRAM.py``: run a program on the task runtime; show its task graph, timeline and traces."""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from burnish.cli import options
from burnish.cli.output import publish, remark
from burnish.core.errors import EXIT_NO, EXIT_OK, BurnishError
from burnish.core.io import check_writable

CONTEXT_SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}


def command(
    context: typer.Context,
    program: Annotated[Path, typer.Argument(metavar="PROGRAM.py", help="The program; what follows are its arguments.")],
    engine: options.Engine = "local",
    workers: options.Workers = None,
    executor: Annotated[
        Literal["auto", "serial", "threads", "processes"],
        typer.Option("--executor", help="How tasks run on this machine."),
    ] = "auto",
    check: Annotated[
        bool, typer.Option("--check", help="Guard every body: wrong accesses become errors (slow).")
    ] = False,
    recovery: Annotated[
        Literal["none", "retry", "lineage"], typer.Option("--recovery", help="What happens when a worker dies.")
    ] = "none",
    log: Annotated[
        Path | None, typer.Option("--log", metavar="DIR", help="Where recovery=lineage keeps its journal.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option("--resume", metavar="DIR", help="Go on with a killed program from its journal.")
    ] = None,
    trace: Annotated[str, typer.Option("--trace", metavar="on|off", help="Automatic tracing.")] = "on",
    explain: Annotated[bool, typer.Option("--explain", help="Say what ran, what was traced, what it cost.")] = False,
    graph: Annotated[Path | None, typer.Option("--graph", metavar="SVG", help="Draw the task graph.")] = None,
    json: options.Json = False,
    html: options.Html = None,
    quiet: options.Quiet = False,
) -> int:
    """Run PROGRAM.py on the task runtime. Options come before the program's name, its own arguments after it
    (burnish's own options may stand among them too)."""
    arguments, late = _split(context.args)
    values: dict[str, Any] = dict(
        engine=engine, workers=workers, executor=executor, check=check, recovery=recovery, trace=trace,
        log=log, resume=resume, explain=explain, graph=graph, json=json, html=html, quiet=quiet,
    )  # fmt: skip
    values.update(late)
    return run(program, arguments, **values)


_FLAGS = {"--check": "check", "--explain": "explain", "--json": "json", "--quiet": "quiet"}
_VALUES: dict[str, tuple[str, Any]] = {
    "--engine": ("engine", str), "--workers": ("workers", int), "--executor": ("executor", str),
    "--recovery": ("recovery", str), "--log": ("log", Path), "--resume": ("resume", Path), "--trace": ("trace", str), "--graph": ("graph", Path), "--html": ("html", Path),
}  # fmt: skip


def _split(arguments: list[str]) -> tuple[list[str], dict[str, Any]]:
    """Our own options among the program's arguments; after ``--`` everything is the program's."""
    rest: list[str] = []
    found: dict[str, Any] = {}
    i = 0
    while i < len(arguments):
        word, equals, inline = arguments[i].partition("=")
        if word == "--":
            rest += arguments[i + 1 :]
            break
        if word in _FLAGS and not equals:
            found[_FLAGS[word]] = True
        elif word in _VALUES:
            name, convert = _VALUES[word]
            if not equals and i + 1 >= len(arguments):
                raise BurnishError(f"{word} needs a value")
            text = inline if equals else arguments[i := i + 1]
            try:
                found[name] = convert(text)
            except ValueError:
                raise BurnishError(f"{word} {text}: expected {convert.__name__}") from None
        else:
            rest.append(arguments[i])
        i += 1
    return rest, found


def run(
    program: Path,
    arguments: list[str],
    *,
    engine: str,
    workers: int | None,
    executor: str,
    check: bool,
    recovery: str,
    log: Path | None,
    resume: Path | None,
    trace: str,
    explain: bool,
    graph: Path | None,
    json: bool,
    html: Path | None,
    quiet: bool,
) -> int:
    """Run the program with these settings as defaults; returns the exit code."""
    if not program.is_file():
        raise BurnishError(f"{program}: no such program")
    _one_of("--engine", engine, ("local", "ray"))
    _one_of("--executor", executor, ("auto", "serial", "threads", "processes"))
    _one_of("--recovery", recovery, ("none", "retry", "lineage"))
    _one_of("--trace", trace, ("on", "off"))
    for path in (graph, html):
        if path is not None:
            check_writable(path)
    from burnish.runtime import recording
    from burnish.runtime.context import Settings, set_defaults, set_observer, start_default, stop

    directory = resume or log
    if resume is not None:
        recovery = "lineage"
    elif recovery == "lineage" and log is None:
        raise BurnishError("--recovery lineage needs --log DIR, where it keeps its journal")
    looks = explain or json or html is not None or graph is not None
    set_defaults(
        Settings(
            engine=engine,
            workers=workers,
            executor=executor,
            check=check,
            trace=trace == "on",
            recovery=recovery,
            profile=looks,
            record_edges=looks,
            log=None if directory is None else str(directory),
            resume=resume is not None,
        )  # fmt: skip
    )
    recorded: list[recording.Recording] = []
    if looks:
        set_observer(lambda: recorded.append(recording.record()))
    if recovery == "lineage":
        start_default()  # the journal begins with the program's first region
    code = _execute(program, arguments, stop)
    if code == EXIT_OK and looks:
        from burnish.cli import run_page

        merged = recorded[-1] if recorded else recording.Recording()
        if graph is not None:
            run_page.draw_graph(merged).savefig(graph)
            remark(f"wrote {graph}", quiet)
        if explain or json or html is not None:
            publish(run_page.page(program.name, merged), json=json, html=html, quiet=quiet)
    return code


def _one_of(option: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise BurnishError(f"{option} {value}: choose {', '.join(allowed[:-1])} or {allowed[-1]}")


def _execute(program: Path, arguments: list[str], stop: Any) -> int:
    """The program as ``__main__``; its own errors are shown with their traceback, ours as one line."""
    argv, path = sys.argv, list(sys.path)
    sys.argv = [str(program), *arguments]
    sys.path.insert(0, str(program.resolve().parent))
    try:
        runpy.run_path(str(program), run_name="__main__")
        stop()
    except SystemExit as leaving:
        stop()
        if leaving.code is None or isinstance(leaving.code, int):
            return leaving.code or EXIT_OK
        typer.echo(leaving.code, err=True)
        return EXIT_NO
    except (BurnishError, KeyboardInterrupt):
        raise
    except Exception as error:
        _show(error, program)
        return EXIT_NO
    finally:
        sys.argv, sys.path[:] = argv, path
    return EXIT_OK


def _show(error: Exception, program: Path) -> None:
    """The traceback from the program's first frame on."""
    tb = error.__traceback__
    while tb is not None and os.path.abspath(tb.tb_frame.f_code.co_filename) != str(program.resolve()):
        tb = tb.tb_next
    traceback.print_exception(type(error), error, tb or error.__traceback__)
