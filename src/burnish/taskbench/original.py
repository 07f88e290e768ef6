"""Task Bench's own command line and report, so that scripts written for it keep working."""

from __future__ import annotations

from collections.abc import Sequence

from burnish.taskbench.errors import GraphError
from burnish.taskbench.graph import PERIODIC, Graph
from burnish.taskbench.kernel import Kernel

#: Single-dash spellings with a value, and without; ``-v`` and ``-vv`` stay as they are.
VALUED = (
    "steps", "width", "type", "radix", "period", "fraction", "kernel", "iter", "output", "scratch", "sample",
    "imbalance", "nodes",
)  # fmt: skip
FLAGS = {"and": "--and", "skip-graph-validation": "--no-validate", "vv": "--very-verbose"}


def double_dashes(arguments: Sequence[str]) -> list[str]:
    """The arguments with the original's single-dash options written as ours.

    >>> double_dashes(["-steps", "9", "-type", "fft", "-and", "-skip-graph-validation"])
    ['--steps', '9', '--type', 'fft', '--and', '--no-validate']
    """
    out, value_next = [], False
    for argument in arguments:
        name = argument[1:]
        if value_next or not argument.startswith("-") or argument.startswith("--"):
            out.append(argument)
            value_next = False
        elif name in VALUED:
            out.append("-" + argument)
            value_next = True
        else:
            out.append(FLAGS.get(name, argument))
    return out


def configuration(graphs: Sequence[Graph], kernels: Sequence[Kernel], verbose: int = 0) -> str:
    """What the original prints before a run; with ``verbose`` the points and dependences of every step."""
    lines = ["Running Task Benchmark", "  Configuration:"]
    for number, (graph, kernel) in enumerate(zip(graphs, kernels, strict=True), 1):
        lines += [
            f"    Task Graph {number}:",
            f"      Time Steps: {graph.steps}",
            f"      Max Width: {graph.width}",
            f"      Dependence Type: {graph.type}",
            f"      Radix: {graph.radix}",
            f"      Period: {graph.period if graph.type in PERIODIC else 0}",
            f"      Fraction Connected: {graph.fraction:f}",
            "      Kernel:",
            f"        Type: {kernel.name}",
            f"        Iterations: {kernel.iterations}",
            f"        Samples: {kernel.samples}",
            f"        Imbalance: {kernel.imbalance:f}",
            f"      Output Bytes: {graph.output}",
            f"      Scratch Bytes: {graph.scratch}",
        ]
        if verbose:
            for t in range(graph.steps):
                lines += _step(graph, t, verbose)
    return "\n".join(lines) + "\n"


def _step(graph: Graph, t: int, verbose: int) -> list[str]:
    now, before = graph.points(t), graph.points(t - 1)
    lines = [
        f"      Timestep {t} (offset {now.start}, width {len(now)}, "
        f"last offset {before.start}, last width {len(before)}):",
        "        Points:" + "".join(f" {p}" for p in now),
        "        Dependencies:",
    ]
    lines += [f"          Point {p}:" + "".join(f" {q}" for q in graph.inputs(t, p)) for p in now]
    if verbose > 1:
        lines.append("        Reverse Dependencies:")
        for q in before:
            users = [p for a, b in graph.reverse_dependencies(t - 1, q) for p in range(a, b + 1)]
            lines.append(f"          Point {q}:" + "".join(f" {p}" for p in users))
    return lines


def report(graphs: Sequence[Graph], kernels: Sequence[Kernel], elapsed: float, nodes: int = 0) -> str:
    """What the original prints after a run of ``elapsed`` seconds; ``nodes`` splits dependences by owner."""
    counts = [graph.counts(nodes) for graph in graphs]
    pairs = list(zip(graphs, kernels, strict=True))
    flops, moved = (sum(getattr(kernel, what)(graph) for graph, kernel in pairs) for what in ("flops", "bytes"))
    local, other = sum(c.local for c in counts), sum(c.nonlocal_ for c in counts)
    lines = [
        f"Total Tasks {sum(c.tasks for c in counts)}",
        f"Total Dependencies {sum(c.dependencies for c in counts)}",
    ]
    if nodes > 0:
        lines += [
            f"  Local Dependencies {local} (estimated)",
            f"  Nonlocal Dependencies {other} (estimated)",
            f"  Number of Nodes (used for estimate) {nodes}",
        ]
    else:
        lines.append("  Unable to estimate local/nonlocal dependencies")
    lines += [
        f"Total FLOPs {flops}",
        f"Total Bytes {moved}",
        f"Elapsed Time {elapsed:e} seconds",
        f"FLOP/s {flops / elapsed:e}",
        f"B/s {moved / elapsed:e}",
        "Transfer (estimated):",
    ]
    if nodes > 0:
        local_bytes = sum(c.local * graph.output for c, graph in zip(counts, graphs, strict=True))
        other_bytes = sum(c.nonlocal_ * graph.output for c, graph in zip(counts, graphs, strict=True))
        lines += [
            f"  Local Bytes {local_bytes}",
            f"  Nonlocal Bytes {other_bytes}",
            f"  Local Bandwidth {local_bytes / elapsed:e} B/s",
            f"  Nonlocal Bandwidth {other_bytes / elapsed:e} B/s",
        ]
    else:
        lines.append("  Unable to estimate local/nonlocal transfer")
    return "\n".join(lines) + "\n"


#: What ``--and`` starts anew, and what all graphs of a run share.
GRAPH_OPTIONS = ("steps", "width", "type", "radix", "period", "fraction", "output", "scratch", "shape")
KERNEL_OPTIONS = ("kernel", "iter", "sample", "imbalance", "impl")


def split_graphs(arguments: Sequence[str]) -> tuple[list[str], list[dict[str, str]]]:
    """Cut at ``--and``: the arguments without the further graphs' options, and those options graph by graph.

    Raises GraphError if the graphs ask for different kernels.

    >>> split_graphs(["--type", "fft", "--and", "--type", "tree", "--quiet"])
    (['--type', 'fft', '--quiet'], [{'type': 'tree'}])
    """
    segments: list[list[str]] = [[]]
    for argument in arguments:
        if argument == "--and":
            segments.append([])
        else:
            segments[-1].append(argument)
    rest, graphs = list(segments[0]), []
    kernel = _take(list(segments[0]), KERNEL_OPTIONS)
    for segment in segments[1:]:
        graphs.append(_take(segment, GRAPH_OPTIONS))
        own = _take(segment, KERNEL_OPTIONS)
        for name in own:
            if name in kernel and own[name] != kernel[name]:
                raise GraphError(
                    f"all graphs of a run have the same kernel, but --{name} is {kernel[name]} and {own[name]}"
                )
            if name not in kernel:
                rest += [f"--{name}", own[name]]
        kernel = own | kernel
        rest += segment
    return rest, graphs


def _take(arguments: list[str], names: Sequence[str]) -> dict[str, str]:
    """Remove the options ``names`` from ``arguments``; their values."""
    taken, at = {}, 0
    while at < len(arguments):
        name, equals, value = arguments[at].removeprefix("--").partition("=")
        if arguments[at].startswith("--") and name in names:
            if not equals and at + 1 == len(arguments):
                raise GraphError(f"--{name} needs a value")
            taken[name] = value if equals else arguments[at + 1]
            del arguments[at : at + (1 if equals else 2)]
        else:
            at += 1
    return taken
