"""verify(): equal programs pass with counts, unequal ones are told apart by what differs."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest

from burnish import runtime as rt
from burnish.runtime import Read, ReadWrite, Reduce, each, task
from burnish.runtime.errors import RuntimeProblem


@task
def add(x: ReadWrite, k: float) -> float:
    x += k
    return float(x.sum())


@task
def count(x: Read, total: Reduce["+"]):
    total += x.sum() * 1.1


@dataclass(frozen=True)
class Result:
    sums: object
    total: object


def program() -> Result:
    u, total = rt.region(64, "f8", name="u"), rt.region(1, "f8", name="total")
    p = rt.block(u, 8)
    sums = [add.map(8, p[each], 0.1 * k) for k in range(5)]
    count.map(8, p[each], total)
    return Result(sums, total)


def test_an_honest_program() -> None:
    evidence = rt.verify(program, workers=(1, 3), executors=("serial", "threads"), schedules=3)
    assert evidence.strength == "tested"
    assert evidence.claim == "program gives bitwise the results of its launches run one after another"
    assert evidence.detail["runs"] == 1 + 2 * 3 == len(evidence.detail["settings"])
    assert "executor='threads', workers=3, chaos=2" in evidence.detail["settings"]
    # 40 sums, their number and that of each map; the returned region, and both regions again as they were left
    assert evidence.detail["results"] == 1 + 5 * (1 + 8) + 1 + 1
    assert evidence.detail["tasks"] > 7 * 48
    assert not rt.stats()  # no context is left


def test_regions_that_are_not_returned_count_while_they_live() -> None:
    kept = []

    def leave_something():
        u = rt.region(8, "f8", name="u")
        add(u, float(len(kept)))
        kept.append(u)

    with pytest.raises(
        rt.EquivalenceError, match=r"region 0 \('u'\) differs from executor='serial' \(\d+ of \d+ bytes\)"
    ):
        rt.verify(leave_something, workers=(1,), executors=("threads",))


def test_another_value_is_found() -> None:
    runs = itertools.count()
    with pytest.raises(
        rt.EquivalenceError, match=r"with executor='serial', workers=1, the returned value\[1\] differs.*\(7 became 8\)"
    ) as caught:
        rt.verify(lambda: ("a", 7 + next(runs)), workers=(1,))
    assert caught.value.exit_code == 1


def test_the_smallest_difference_of_a_float_is_found() -> None:
    values = iter([np.zeros(4), np.array([0.0, 0.0, -0.0, 0.0])])
    with pytest.raises(rt.EquivalenceError, match="the returned value differs"):
        rt.verify(lambda: next(values), workers=(1,))


def test_errors_are_results() -> None:
    @task
    def fail(x: ReadWrite, c: int):
        if c >= 2:
            raise ValueError(f"color {c}")

    def failing():
        fail.map(4, rt.block(rt.region(8, "f8"), 4)[each], each)
        rt.fence()

    assert rt.verify(failing, executors=("serial", "threads")).detail["results"] == 1


def test_verify_starts_its_own_contexts() -> None:
    with rt.start():
        with pytest.raises(RuntimeProblem, match="call stop\\(\\) first"):
            rt.verify(program)


@pytest.mark.slow
def test_worker_processes() -> None:
    assert rt.verify(program, workers=(2,), executors=("processes",)).detail["runs"] == 1
