"""``burnish taskbench``: what a task runtime costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from burnish.cli import options
from burnish.cli.output import publish, remark, working
from burnish.core.budget import Budget
from burnish.core.io import write_atomic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from burnish.taskbench.graph import Graph
    from burnish.taskbench.kernel import Kernel
    from burnish.taskbench.metg import Absent
    from burnish.taskbench.records import Measurement, MetgResult

app = typer.Typer(no_args_is_help=True)

Format = Literal["text", "json", "original"]
Steps = Annotated[int, typer.Option("--steps", metavar="N", help="Steps of the graph.")]
Width = Annotated[int, typer.Option("--width", metavar="N", help="Points of a step.")]
Types = Annotated[str, typer.Option("--type", metavar="T[,T]", help="Pattern: name[:radix[:period[:fraction]]].")]
Radix = Annotated[int, typer.Option("--radix", help="Dependences per task of nearest, spread, random.")]
Period = Annotated[int, typer.Option("--period", help="Steps after which spread and random repeat.")]
Fraction = Annotated[float, typer.Option("--fraction", help="Share of dependences that random keeps.")]
Output = Annotated[int, typer.Option("--output", metavar="BYTES", help="Bytes that a task produces.")]
Scratch = Annotated[int, typer.Option("--scratch", metavar="BYTES", help="Memory that a task works on.")]
Shape = Annotated[str, typer.Option("--shape", metavar="AxB", help="Grid of stencil_2d, stencil_3d, sweep_2d.")]
KernelName = Annotated[str, typer.Option("--kernel", help="What a task computes.")]
Iterations = Annotated[int, typer.Option("--iter", metavar="N", help="Iterations of the kernel.")]
Samples = Annotated[int, typer.Option("--sample", help="Chunks of scratch (memory kernels).")]
Imbalance = Annotated[float, typer.Option("--imbalance", help="Spread of load_imbalance, 0 to 2.")]
Impl = Annotated[str, typer.Option("--impl", help="Language of the body: native, numba, numpy, python.")]
Validate = Annotated[bool, typer.Option("--validate/--no-validate", help="Check every input of every task.")]
Systems = Annotated[str, typer.Option("--systems", "--system", metavar="S[,S]", help="What executes the graph.")]
Nodes = Annotated[int, typer.Option("--nodes", help="Split dependences by this many nodes.")]


class _Original(TyperCommand):
    """Takes the original's single-dash options, and ``--and`` for a further graph."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        from burnish.taskbench.original import double_dashes, split_graphs

        rest, ctx.meta["further graphs"] = split_graphs(double_dashes(args))
        return super().parse_args(ctx, rest)


@app.command(cls=_Original)
def run(
    context: typer.Context,
    systems: Systems = "threads", steps: Steps = 4, width: Width = 4, type_: Types = "trivial", radix: Radix = 3,
    period: Period = 3, fraction: Fraction = 0.25, output: Output = 16, scratch: Scratch = 0, shape: Shape = "",
    kernel: KernelName = "empty", iterations: Iterations = 0, samples: Samples = 16, imbalance: Imbalance = 0.0,
    impl: Impl = "native", validate: Validate = True, nodes: Nodes = 0,
    verbose: Annotated[bool, typer.Option("-v", help="Print the points of every step (format original).")] = False,
    very_verbose: Annotated[bool, typer.Option("--very-verbose", "-vv", help="And who depends on them.")] = False,
    format_: Annotated[Format, typer.Option("--format", help="original: the report of Task Bench.")] = "text",
    engine: options.Engine = "local", workers: options.Workers = None, json: options.Json = False,
    html: options.Html = None, quiet: options.Quiet = False,
) -> int:  # fmt: skip
    """Execute graphs once on each system, validated. Task Bench's own options work: -steps 9 -type fft -and ..."""
    from burnish.taskbench.run import Request, print_runs

    first = _graph(type_, steps, width, radix, period, fraction, output, scratch, shape)
    graphs = (first, *_further(context.meta["further graphs"]))
    request = Request(
        _systems(systems, engine), graphs, _kernel(kernel, iterations, samples, imbalance, impl, validate), workers,
        nodes, verbose + 2 * very_verbose, "json" if json else format_, html is not None,
    )  # fmt: skip
    with working(quiet):
        report, text, failed = print_runs(request)
    if text:
        typer.echo(text, nl=False)
    elif report:
        publish(report, quiet=quiet)
    if html is not None and report:
        report.to_html(html)
        remark(f"wrote {html}", quiet)
    return 4 if failed else 0


@app.command(cls=_Original)
def metg(
    context: typer.Context,
    systems: Systems = "threads", steps: Steps = 20, width: Width = 8, type_: Types = "stencil_1d", radix: Radix = 3,
    period: Period = 3, fraction: Fraction = 0.25, output: Output = 16, scratch: Scratch = 0, shape: Shape = "",
    kernel: KernelName = "compute_bound", samples: Samples = 16, imbalance: Imbalance = 0.0, impl: Impl = "native",
    validate: Validate = True,
    threshold: Annotated[float, typer.Option("--threshold", min=0.01, max=0.99, help="Fraction of peak.")] = 0.5,
    cpu_time: Annotated[bool, typer.Option("--cpu-time", help="Search by CPU time: for loaded machines.")] = False,
    engine: options.Engine = "local", workers: options.Workers = None, budget: options.Seconds = None,
    seed: options.Seed = 0, json: options.Json = False, html: options.Html = None, quiet: options.Quiet = False,
) -> int:  # fmt: skip
    """Minimum effective task granularity: how small tasks may be before half of the machine is wasted."""
    from burnish.taskbench.metg import Absent, metg_of
    from burnish.taskbench.page import metg_report

    if context.meta["further graphs"]:
        raise typer.BadParameter("metg takes one graph at a time; list several with --type a,b")
    chosen = _kernel(kernel, 0, samples, imbalance, impl, validate)
    graphs = [_graph(t, steps, width, radix, period, fraction, output, scratch, shape) for t in type_.split(",")]
    whole, results = Budget(seconds=budget or 60.0, seed=seed).start(), []
    with working(quiet):
        for at, graph in enumerate(graphs):
            share = Budget(seconds=max(0.5, whole.left() / (len(graphs) - at)), seed=seed)
            mode: Literal["cpu", "wall"] = "cpu" if cpu_time else "wall"
            results += metg_of(_systems(systems, engine), graph, chosen, threshold, share, workers, mode)
    report = metg_report(results)
    if json:
        for result in results:
            typer.echo(_absent_line(result) if isinstance(result, Absent) else result.json_line())
    else:
        publish(report, quiet=quiet)
    if html is not None:
        report.to_html(html)
        remark(f"wrote {html}", quiet)
    return _exit_code(results)


@app.command(cls=_Original)
def compare(
    context: typer.Context,
    measure: Annotated[str, typer.Option("--measure", help="What to compare; see `burnish taskbench list`.")] = "tasks",
    systems: Systems = "serial,threads", steps: Steps = 20, width: Width = 8, type_: Types = "stencil_1d",
    radix: Radix = 3, period: Period = 3, fraction: Fraction = 0.25, output: Output = 16, shape: Shape = "",
    engine: options.Engine = "local", workers: options.Workers = None, budget: options.Seconds = None,
    seed: options.Seed = 0, json: options.Json = False, html: options.Html = None, quiet: options.Quiet = False,
) -> int:  # fmt: skip
    """One measure of several systems in one table."""
    from burnish.taskbench.compare import compare as compare_systems
    from burnish.taskbench.metg import Absent
    from burnish.taskbench.page import comparison_report

    graphs = [_graph(t, steps, width, radix, period, fraction, output, 0, shape) for t in type_.split(",")]
    with working(quiet):
        limit = Budget(seconds=budget or 60.0, seed=seed)
        result = compare_systems(_systems(systems, engine), graphs, measure, budget=limit, workers=workers)
    report = comparison_report(result)
    if json:
        for item in result.results:
            typer.echo(_absent_line(item) if isinstance(item, Absent) else item.json_line())
    else:
        publish(report, quiet=quiet)
    if html is not None:
        report.to_html(html)
        remark(f"wrote {html}", quiet)
    return _exit_code(result.results)


@app.command(cls=_Original)
def show(
    steps: Steps = 9, width: Width = 8, type_: Types = "stencil_1d", radix: Radix = 3, period: Period = 3,
    fraction: Fraction = 0.25, shape: Shape = "",
    svg: Annotated[bool, typer.Option("--svg", help="Print the picture as SVG.")] = False, out: options.Out = None,
    quiet: options.Quiet = False,
) -> None:  # fmt: skip
    """Show a task graph: one line per point with its dependences, or a picture."""
    from burnish.taskbench.errors import GraphError
    from burnish.taskbench.plots import LARGEST_PICTURE, graph_picture

    graph = _graph(type_, steps, width, radix, period, fraction, 16, 0, shape)
    if not svg and out is None:
        typer.echo(graph.listing(), nl=False)
        return
    if graph.counts().tasks > LARGEST_PICTURE:
        raise GraphError(f"a picture of {graph.counts().tasks} tasks shows nothing; draw at most {LARGEST_PICTURE}")
    if svg:
        from burnish.report.plots import css
        from burnish.report.plots import svg as to_svg

        text = to_svg(graph_picture(graph), "graph")
        text = text.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
        text = text.replace(">", f"><style>{css()}</style>", 1)
        typer.echo(text) if out is None else write_atomic(out, text)
    elif out is not None:
        from burnish.report import Figure

        Figure(graph_picture(graph)).savefig(out)
    if out is not None:
        remark(f"wrote {out}", quiet)


@app.command("list")
def list_(json: options.Json = False, html: options.Html = None, quiet: options.Quiet = False) -> None:
    """Types, kernels, systems and measures."""
    from burnish.report import Report
    from burnish.taskbench.compare import DESCRIPTIONS
    from burnish.taskbench.graph import TYPES
    from burnish.taskbench.kernel import KERNELS
    from burnish.taskbench.systems import SYSTEMS

    report = Report("taskbench")
    report.table(["type", "dependences of point p"], TYPES.items())
    report.table(["kernel", "work"], KERNELS.items())
    report.table(["system", "what it is"], [(name, text) for name, (_, _, text) in SYSTEMS.items()])
    report.table(["measure", "what it says"], DESCRIPTIONS.items())
    publish(report, json=json, html=html, quiet=quiet)


def _graph(
    type_: str, steps: int, width: int, radix: int, period: int, fraction: float, output: int, scratch: int, shape: str
) -> Graph:
    from burnish.taskbench.graph import Graph, parse_shape, parse_type

    base = Graph(steps, width, "trivial", radix, period, fraction, output, scratch)
    return parse_type(type_, base, parse_shape(shape))


def _further(graphs: list[dict[str, str]]) -> list[Graph]:
    from burnish.taskbench.graph import graph_from_text

    return [graph_from_text(values, index) for index, values in enumerate(graphs, 1)]


def _kernel(name: str, iterations: int, samples: int, imbalance: float, impl: str, validate: bool) -> Kernel:
    from burnish.taskbench.kernel import Kernel

    return Kernel(name, iterations, samples, imbalance, impl, validate)  # type: ignore[arg-type]


def _systems(text: str, engine: str) -> list[str]:
    from burnish.taskbench.systems import load

    names = ["ray"] if engine == "ray" else [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        load(name)  # an unknown name is an error before anything starts
    return names


def _absent_line(absent: Any) -> str:
    import json

    return json.dumps({"system": absent.system, "reason": absent.reason})


def _exit_code(results: Sequence[Measurement | MetgResult | Absent]) -> int:
    """4 if no system is here, 3 if the budget gave no figure at all."""
    from burnish.core.errors import EXIT_BUDGET, EXIT_OK
    from burnish.taskbench.metg import Absent

    absent = [result.exit_code for result in results if isinstance(result, Absent)]
    if len(absent) == len(results):
        return min(absent)
    unknown = [getattr(result, "value", 0.0) is None for result in results if not isinstance(result, Absent)]
    return EXIT_BUDGET if all(unknown) else EXIT_OK
