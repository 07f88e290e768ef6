"""memory_limit: allocation waits for space, and says what takes it when there is none to come."""

from __future__ import annotations

import gc
import logging
import time

import numpy as np
import pytest

from burnish import runtime as rt
from burnish._native import runtime as _rt
from burnish.runtime import Read, ReadWrite, Reduce, each, task
from burnish.runtime.errors import RuntimeProblem
from burnish.runtime.memory import parse_size, size_text

MB = 10**6


@task
def touch(x: ReadWrite):
    x += 1


@task
def count(x: Reduce["+"]):
    x += 1


def limit(megabytes: float) -> str:
    """A limit of so many MB above what other tests' regions take."""
    return str(_rt.memory_used() + int(megabytes * MB))


@pytest.mark.parametrize(
    ("text", "size"),
    [("500MB", 500 * MB), ("2GiB", 2 << 30), ("1e6", MB), ("1.5 kb", 1500), ("7", 7), ("3tb", 3 * 10**12)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "many", "-1GB", "0", "1 parsec", "1.2.3MB"])
def test_bad_sizes(text: str) -> None:
    with pytest.raises(RuntimeProblem, match="write 500MB, 2GiB or a number of bytes"):
        rt.start(memory_limit=text)


def test_sizes_are_read_by_people() -> None:
    assert [size_text(n) for n in (12, 1500, 80 * MB, 3 * 10**9)] == ["12 bytes", "1.5 kB", "80 MB", "3 GB"]


def test_a_region_that_cannot_fit_names_the_largest() -> None:
    with rt.start(memory_limit=limit(10)):
        small, large = rt.region(100_000, "f8"), rt.region(1_000_000, "f4")
        with pytest.raises(RuntimeProblem) as caught:
            third = rt.region(800_000, "f8")
            del third
        message = str(caught.value)
        assert message.startswith("region 'third' needs 6.4 MB, but ")
        assert message.index("'large' (4 MB)") < message.index("'small' (800 kB)")
        del small, large


def test_a_region_waits_for_the_tasks_of_dropped_ones(caplog: pytest.LogCaptureFixture) -> None:
    """The memory of a dropped region is free when its last task has run."""

    @task
    def slow(x: ReadWrite):
        time.sleep(0.1)

    with rt.start(memory_limit=limit(10), workers=2), caplog.at_level(logging.WARNING, "burnish.runtime"):
        u = rt.region(1_000_000, "f8")
        slow(u)
        del u
        v = rt.region(1_000_000, "f8")  # waits
        assert v.numpy()[0] == 0
    assert "waiting for tasks to finish; the largest regions are" in caplog.text


def test_reductions_stay_below_the_limit(caplog: pytest.LogCaptureFixture) -> None:
    """Each launch would take a buffer as large as the region; the limit has room for a few."""
    with rt.start(memory_limit=limit(5), workers=2), caplog.at_level(logging.WARNING, "burnish.runtime"):
        u = rt.region(100_000, "f8")
        most = 0
        for _ in range(40):
            count(u)
            most = max(most, _rt.memory_used())
        assert most <= _rt.memory_limit()
        assert (u.numpy() == 40).all()
    assert "launch of 'count' with its reduction buffers needs 800 kB" in caplog.text


def test_an_index_launch_that_cannot_fit() -> None:
    with rt.start(memory_limit=limit(3)):
        u = rt.region(100_000, "f8")
        with pytest.raises(RuntimeProblem, match="launch of 'count' with its reduction buffers needs 6.4 MB"):
            count.map(8, u)
        assert (u.numpy() == 0).all()


def test_no_limit_no_waiting(caplog: pytest.LogCaptureFixture) -> None:
    with rt.start(workers=2), caplog.at_level(logging.WARNING, "burnish.runtime"):
        u = rt.region(100_000, "f8")
        for _ in range(40):
            count(u)
        assert np.all(u.numpy() == 40)
    assert not caplog.text


def test_used_memory_returns_to_where_it_was() -> None:
    before = _rt.memory_used()
    with rt.start(workers=2):
        u = rt.region(100_000, "f8")
        p = rt.block(u, 4)
        for _ in range(10):
            count(u)
            touch.map(4, p[each])
        assert (u.numpy() == 20).all()
        del u, p
    gc.collect()
    with rt.start():
        rt.fence()
    assert _rt.memory_used() <= before + 4096


def test_readers_do_not_count() -> None:
    @task
    def total(x: Read) -> float:
        return float(x.sum())

    with rt.start(memory_limit=limit(1.5)):
        u = rt.region(100_000, "f8", fill=1.0)
        assert [total(u).get() for _ in range(20)] == [100_000.0] * 20
