"""The task runtime: two programs, sequential, parallel and traced; one of their workers is killed on the way."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
import numpy as np
import psutil

import burnish
from burnish.cli.run_page import draw_strip, draw_timeline
from burnish.cli.tour import TourSettings
from burnish.core.errors import EnvironmentProblem
from burnish.core.evidence import Evidence
from burnish.report import Report
from burnish.report.plots import figure, legend

TITLE = "Task runtime and automatic tracing"
ORDER = 10

Arrays = tuple[np.ndarray[Any, Any], ...]


@dataclass(frozen=True)
class Program:
    """An example program that returns all arrays by which two runs are compared, bit for bit."""

    name: str
    what: str
    run: Callable[[], Arrays]


def example(name: str) -> ModuleType:
    """An example program as a module; its tasks travel to worker processes by value."""
    package = Path(burnish.__file__).parent
    places = [package / "examples", package.parents[1] / "examples"]
    path = next((p / f"{name}.py" for p in places if (p / f"{name}.py").is_file()), None)
    if path is None:
        raise EnvironmentProblem(f"the example {name}.py is not installed", hint="run the tour from a checkout")
    spec = importlib.util.spec_from_file_location(f"burnish_example_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    cloudpickle.register_pickle_by_value(module)
    return module


def programs() -> list[Program]:
    stencil, circuit = example("stencil"), example("circuit")
    inputs = circuit.random_circuit(8, 64, 256, 0.8, 0)

    def run_stencil() -> Arrays:
        out, worst = stencil.run(256, 3, 120)
        return out.numpy(), np.array([worst])

    def run_circuit() -> Arrays:
        made = circuit.Circuit(inputs, 8)
        for _ in range(60):
            made.loop(4, 1e-6)
        return made.nodes.numpy("voltage"), made.wires.numpy("I"), made.wires.numpy("U")

    return [
        Program("stencil", "2-D star stencil of radius 2 on 256 x 256 points, 9 tiles, 120 iterations", run_stencil),
        Program("circuit", "circuit of 512 nodes and 2048 wires in 8 pieces, 60 loops with shared nodes", run_circuit),
    ]


@dataclass(frozen=True)
class Run:
    """One execution: seconds, microseconds per launch, share of launches replayed, arrays, what was recorded."""

    seconds: float
    launch: float
    coverage: float
    arrays: Arrays
    recording: Any


def execute(program: Program, **settings: Any) -> Run:
    from burnish import runtime as rt
    from burnish.runtime.recording import record

    with rt.start(profile=True, **settings):
        start = time.perf_counter()
        arrays = program.run()
        seconds = time.perf_counter() - start
        recording = record()
    counters = recording.counters
    launch = counters["launch_ns"] / counters["launches"] / 1000
    return Run(seconds, launch, recording.coverage, arrays, recording)


def _same(a: Arrays, b: Arrays) -> bool:
    return all(x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))


def stop(report: Report, settings: TourSettings) -> str:
    rows: list[tuple[Any, ...]] = []
    all_same = True
    speedups = []
    for program in programs():
        serial = execute(program, executor="serial", trace=False)
        plain = execute(program, executor="threads", workers=settings.workers, trace=False)
        traced = execute(program, executor="threads", workers=settings.workers, trace=True)
        for label, run in (("sequential", serial), ("parallel, untraced", plain), ("parallel, auto-traced", traced)):
            same = _same(run.arrays, serial.arrays)
            all_same &= same
            rows.append(
                (program.name, label, f"{run.seconds:.3f}", f"{serial.seconds / run.seconds:.2f}", f"{run.launch:.1f}",
                 f"{run.coverage:.0%}", "yes" if same else "NO")
            )  # fmt: skip
        speedups.append(serial.seconds / traced.seconds)
        report.text(f"**{program.name}**: {program.what}.")
        report.figure(
            draw_timeline(traced.recording), f"{program.name}: who ran what", "One row per worker, auto-traced run."
        )
        report.figure(
            draw_strip(traced.recording),
            f"{program.name}: its launches in program order",
            "Coloured: replayed from a trace that the runtime found by itself.",
        )
    columns = ("program", "how", "seconds", "speed-up", "us per launch", "replayed", "same bits")
    report.table(columns, rows, title="Same program, same bits")
    killed, survived = _kill_one(settings)
    all_same &= survived
    report.evidence(
        Evidence("parallel, traced and recovered runs equal the sequential run bit for bit", "tested",
                 f"{len(rows) + 1} runs of 2 programs compared byte by byte, {killed} worker killed with SIGKILL")
    )  # fmt: skip
    _launch_picture(report, rows)
    if not all_same:
        raise AssertionError("a run differs from the sequential one")
    return f"2 programs, 3 ways each, same bits; {killed} worker killed and replaced; speed-ups {', '.join(f'{s:.2f}' for s in speedups)}"


def _kill_one(settings: TourSettings) -> tuple[int, bool]:
    """The circuit in worker processes, one of which is killed while it works."""
    from burnish import runtime as rt

    program = programs()[1]
    expected = execute(program, executor="serial", trace=False).arrays
    killed: list[int] = []

    def kill() -> None:
        time.sleep(0.15)
        for child in psutil.Process().children():
            if child.status() != psutil.STATUS_ZOMBIE:
                os.kill(child.pid, signal.SIGKILL)
                killed.append(child.pid)
                return

    with rt.start(executor="processes", workers=settings.workers, recovery="retry"):
        killer = threading.Thread(target=kill)
        killer.start()
        arrays = program.run()
        killer.join()
        if killed:  # work for the replacement, if the program was done before
            again = program.run()
            arrays = arrays if _same(again, arrays) else again
    return len(killed), _same(arrays, expected)


def _launch_picture(report: Report, rows: list[tuple[Any, ...]]) -> None:
    fig, [ax] = figure(height=2.6)
    names = list(dict.fromkeys(r[0] for r in rows))
    for k, how in enumerate(dict.fromkeys(r[1] for r in rows)):
        heights = [float(next(r[4] for r in rows if r[0] == name and r[1] == how)) for name in names]
        ax.bar(np.arange(len(names)) + 0.27 * (k - 1), heights, 0.25, label=how)
    ax.set(xticks=np.arange(len(names)), xticklabels=names, ylabel="us per launch (all points)")
    legend(ax)
    report.figure(
        fig, "What a launch costs", "Argument decoding, analysis or replay, issue. Sequential: with the bodies."
    )
