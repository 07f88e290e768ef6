"""Measures and reports: what is counted adds up; what is printed parses."""

from __future__ import annotations

import json
import math
import re

import pytest

from burnish.core.budget import Budget
from burnish.taskbench import Graph, GraphError, Kernel, compare, metg, session
from burnish.taskbench import measures as m
from burnish.taskbench.metg import Absent, metg_of
from burnish.taskbench.original import configuration, double_dashes, report, split_graphs
from burnish.taskbench.page import comparison_report, metg_report
from burnish.taskbench.records import Measurement, MetgResult
from burnish.taskbench.slots import Slots, measure_peak

SMALL = Graph(20, 4)


def test_metg_of_a_real_system_is_consistent() -> None:
    result = metg("serial", SMALL, "busy_wait", budget=Budget(seconds=2.5), workers=1, mode="cpu")
    assert isinstance(result, MetgResult) and result.samples
    for sample in result.samples:
        assert sample.tasks == 4 * sample.steps and sample.work == sample.tasks * sample.iterations
        assert sample.efficiency() == pytest.approx(sample.work / sample.elapsed / (sum(sample.peaks) / 2))
        assert sample.granularity() == pytest.approx(sample.elapsed / sample.tasks)
        assert sample.efficiency("cpu") > 0
    line = json.loads(result.json_line())
    assert line["system"] == "serial" and line["slots"] == len(result.samples) and line["mode"] == "cpu"
    if result.value is not None and result.interval[0] is not None:
        assert result.interval[0] <= result.value <= result.interval[1]  # type: ignore[operator]
    assert {item.strength for item in result.evidence} == {"measured", "tested"}


def test_absent_systems_appear_with_their_reason(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")  # no mpiexec
    monkeypatch.setitem(__import__("sys").modules, "dask", None)
    monkeypatch.setitem(__import__("sys").modules, "dask.threaded", None)
    results = metg_of(["dask"], SMALL, budget=Budget(seconds=1))
    assert results == [Absent("dask", "system 'dask' needs dask: pip install 'burnish[taskbench]'")]
    assert "needs dask" in metg_report(results).to_json()


def test_empty_kernel_has_no_efficiency() -> None:
    with pytest.raises(GraphError, match="efficiency needs a kernel that works; use --kernel compute_bound"):
        metg("serial", SMALL, "empty")


def test_peak_grows_with_the_work_it_counts() -> None:
    graph = Graph(1, 1)
    for impl in ("native", "numpy"):
        peak = measure_peak(graph, Kernel("compute_bound", 50, impl=impl), 1, 0.01)  # type: ignore[arg-type]
        assert peak.rate > 0 and 0 < peak.cpu < 1


def test_slots_make_runs_long_enough() -> None:
    with session("serial", 1) as opened:
        slots = Slots(opened, [SMALL], Kernel("compute_bound"))
        sample = slots.sample(100)
        assert sample.elapsed >= 0.05 or sample.steps == 20 << 12
        assert sample.steps >= 20 and sample.iterations == 100


@pytest.mark.parametrize("measure", ["tasks", "latency", "startup", "memory", "history", "imbalance"])
def test_measure(measure: str) -> None:
    result = compare(["serial", "threads"], SMALL, measure, budget=Budget(seconds=2), workers=2)
    assert [type(item) for item in result.results] == [Measurement] * len(result.results)
    for item in result.results:
        assert isinstance(item, Measurement)
        line = json.loads(item.json_line())
        assert line["measure"] == measure and line["tasks"] == item.graphs[0].counts().tasks
        assert len(line["elapsed"]) == len(line["cpu"]) >= 1 and line["validated"] is True
        assert {"system", "version", "impl", "kernel", "workers", "dependences", "load"} <= line.keys()
    page = comparison_report(result)
    assert len(page.figures) == 1


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["hiding", "scaling", "radix", "metg"])
def test_long_measure(measure: str) -> None:
    result = compare(["serial"], Graph(20, 10), measure, budget=Budget(seconds=10), workers=2)
    assert comparison_report(result).figures


def test_per_task_takes_the_least() -> None:
    from burnish.taskbench.session import Run

    runs = [Run(2.0, 4.0, 1.0, 10), Run(1.0, 5.0, None, 10)]
    assert m.per_task(runs) == pytest.approx({"wall_us": 1e5, "cpu_us": 4e5, "launch_us": 1e5})


def test_history_ratio_by_hand() -> None:
    with session("serial", 1, records=4000) as opened:
        (result,) = m.history(opened, Graph(20, 4), 0.2)
        ends = opened.records()[:, 1]
        tenth = len(ends) // 10
        assert result.extra["last_over_first"] == pytest.approx((ends[-1] - ends[-1 - tenth]) / (ends[tenth] - ends[0]))


def test_unknown_measure() -> None:
    with pytest.raises(GraphError, match="unknown measure 'speed'"):
        compare(["serial"], SMALL, "speed")


# --- the original's command line and report ----------------------------------------------------------------------

#: What the original's scripts look for in its report.
COLUMNS = {
    "elapsed": r"^\s*Elapsed Time ([0-9.e+-]+) seconds$",
    "iterations": r"^\s*Iterations: ([0-9]+)$",
    "output": r"^\s*Output Bytes: ([0-9]+)$",
    "steps": r"^\s*Time Steps: ([0-9]+)$",
    "tasks": r"^\s*Total Tasks ([0-9]+)$",
    "flops": r"^\s*Total FLOPs ([0-9]+)$",
    "bytes": r"^\s*Total Bytes ([0-9]+)$",
    "width": r"^\s*Max Width: ([0-9]+)$",
}


def test_report_has_the_columns_that_scripts_look_for() -> None:
    graphs = [Graph(50, 31, "random_nearest", 5, 3, 0.7, output=32), Graph(50, 31, "fft", index=1, output=32)]
    kernels = [Kernel("compute_bound", 1024)] * 2
    text = configuration(graphs, kernels) + report(graphs, kernels, 0.0125, nodes=4)
    found = {name: re.findall(pattern, text, re.MULTILINE) for name, pattern in COLUMNS.items()}
    assert found == {
        "elapsed": ["1.250000e-02"], "iterations": ["1024"] * 2, "output": ["32"] * 2, "steps": ["50"] * 2,
        "tasks": ["3100"], "flops": [str(3100 * (2 * 64 * 1024 + 64))], "bytes": ["0"], "width": ["31"] * 2,
    }  # fmt: skip
    local, other = (int(n) for n in re.findall(r"ocal Dependencies (\d+) \(estimated\)", text))
    assert local + other == sum(graph.counts().dependencies for graph in graphs)
    assert f"  Nonlocal Bytes {other * 32}" in text
    rate = re.search(r"^FLOP/s (\S+)$", text, re.MULTILINE)
    assert rate and math.isclose(float(rate[1]), 3100 * (2 * 64 * 1024 + 64) / 0.0125, rel_tol=1e-6)


def test_verbose_lists_steps_as_the_original_does() -> None:
    text = configuration([Graph(3, 3, "dom")], [Kernel()], verbose=2)
    assert "      Timestep 1 (offset 1, width 2, last offset 0, last width 1):\n        Points: 1 2\n" in text
    assert "          Point 1: 0\n          Point 2:" in text


def test_single_dashes() -> None:
    given = "-steps 9 -width 4 -type fft -kernel empty -iter 3 -v -vv -and -sample 4 -skip-graph-validation --quiet -q"
    ours = "--steps 9 --width 4 --type fft --kernel empty --iter 3 -v --very-verbose --and --sample 4 --no-validate --quiet -q"
    assert double_dashes(given.split()) == ours.split()
    assert double_dashes(["-imbalance", "-1"]) == ["--imbalance", "-1"]


def test_graphs_after_and() -> None:
    rest, graphs = split_graphs(
        [
            "--steps",
            "3",
            "--kernel",
            "empty",
            "--and",
            "--type=tree",
            "--steps",
            "5",
            "--quiet",
            "--and",
            "--kernel",
            "empty",
        ]
    )
    assert rest == ["--steps", "3", "--kernel", "empty", "--quiet"] and graphs == [{"type": "tree", "steps": "5"}, {}]
    with pytest.raises(GraphError, match="same kernel, but --iter is 3 and 4"):
        split_graphs(["--iter", "3", "--and", "--iter", "4"])
    with pytest.raises(GraphError, match="--steps needs a value"):
        split_graphs(["--and", "--steps"])
