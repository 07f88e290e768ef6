"""``burnish trace simulate``: what the recognizer finds in token files."""

from __future__ import annotations

import json as json_module
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

from burnish.cli import options
from burnish.cli.output import remark, working
from burnish.core.progress import track

app = typer.Typer(no_args_is_help=True, help="Recognize repeated sequences in token files.")


@app.callback()
def _group() -> None:
    """Recognize repeated sequences in token files."""


@app.command()
def simulate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Token files (.txt or .txt.gz).")],
    algorithm: Annotated[
        Literal["burnish", "apophenia", "off"], typer.Option("--algorithm", help="Ours, the published one, or none.")
    ] = "burnish",
    json: options.Json = False,
    html: options.Html = None,
    quiet: options.Quiet = False,
) -> None:
    """Run the recognizer over token files; one line (or JSON object) per file."""
    from burnish.report import Report
    from burnish.runtime import tracing

    config = tracing.TraceConfig(algorithm=algorithm, deterministic=True)
    report = Report("burnish trace simulate")
    rows: list[tuple[Any, ...]] = []
    with working(quiet):
        for path in track(files, "recognizing"):
            stream = tracing.read_stream(path)
            found = tracing.simulate(stream, config)
            name = path.name.partition(".")[0]
            if json:
                values = {k: v for k, v in asdict(found).items() if k != "trace"}
                typer.echo(json_module.dumps({"stream": name, "algorithm": algorithm, "length": len(stream), **values}))
            warmup = "never" if found.warmup is None else found.warmup
            rows.append(
                (name, len(stream), f"{found.tail_coverage:.3f}", f"{found.coverage:.3f}", warmup, found.replays,
                 f"{found.mean_length:.0f}", found.distinct)
            )  # fmt: skip
            if html is not None:
                other = tracing.simulate(stream, tracing.TraceConfig(algorithm="apophenia", deterministic=True))
                report.section(name)
                report.figure(
                    _strip(stream.separators, found.trace),
                    f"{name}: ops by trace",
                    "Grey: analysed; black: a blocking read.",
                )
                report.figure(
                    _coverage(found.trace, other.trace),
                    f"{name}: coverage",
                    "Share of the last 200 positions that were replayed.",
                )
    columns = ("stream", "positions", "tail", "total", "warm-up", "replays", "mean length", "traces")
    report.table(columns, rows, title=f"Coverage by {algorithm}")
    if html is not None:
        report.to_html(html)
        remark(f"wrote {html}", quiet)
    if not json:
        table = Report("burnish trace simulate")
        table.table(columns, rows, title=f"Coverage by {algorithm}")
        table.to_terminal()


def _strip(separators: Any, trace: Any) -> Any:
    from burnish.report.plots import PALETTE, figure

    fig, [ax] = figure(height=1.4)
    n = len(trace)
    ids = {t: k for k, t in enumerate(np.unique(trace[trace >= 0]).tolist())}
    step = max(1, n // 1500)
    position = np.arange(0, n, step)
    colors = [
        "#000000" if separators[i] else PALETTE[ids[int(trace[i])] % len(PALETTE)] if trace[i] >= 0 else "#808080"
        for i in position
    ]
    ax.vlines(position, 0, 1, colors=colors, linewidth=0.8)
    ax.set(xlabel="position", yticks=[], xlim=(0, max(1, n)))
    return fig


def _coverage(ours: Any, reference: Any) -> Any:
    from burnish.report.plots import figure, legend

    fig, [ax] = figure(height=2.2)
    for trace, label in ((ours, "ours"), (reference, "reference")):
        window = min(200, len(trace))
        if window:
            share = np.convolve(trace >= 0, np.ones(window) / window, "valid")
            step = max(1, len(share) // 2000)
            ax.plot((np.arange(len(share)) + window)[::step], share[::step], label=label)
    ax.set(xlabel="position", ylabel="coverage", ylim=(-0.02, 1.02))
    legend(ax)
    return fig
