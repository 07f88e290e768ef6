"""Worker processes: the same bits as in sequence, also when workers are killed; nothing is left running."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from burnish import runtime as rt
from burnish.runtime import Read, ReadWrite, Reduce, Write, each, task
from burnish.runtime.executors import TaskTransferError, WorkerLostError


@task
def grow(x: ReadWrite, k: int):
    x += k
    x *= 1.0000001


@task
def average(out: Write, left: Read, mid: Read, right: Read):
    out[:] = (left[-1] + mid + right[0]) / 3


@task
def count(w: Read["to"], into: Reduce["+", "n"], color: int):
    rt.scatter_add(w.to, float(color + 1), into.n)


@task
def read(nodes: Read["n"], w: Read["to"], out: Write):
    out[:] = rt.gather(w.to, nodes.n)


@task
def total(x: Read) -> float:
    return float(x.sum())


@task
def suicide(x: ReadWrite):
    os.kill(os.getpid(), signal.SIGKILL)


@task
def broken(x: ReadWrite):
    raise LookupError("no such thing")


def program() -> list[bytes]:
    """Dense and sparse pieces, ghosts, reductions, futures, colors."""
    u, v = rt.region(1200, "f8", name="u", fill=1.0), rt.region(1200, "f8", name="v")
    pu, pv = rt.block(u, 6), rt.block(v, 6)
    nodes = rt.region(50, {"n": "f8"}, name="nodes", fill=0.0)
    wires = rt.region(300, {"to": "i8"}, name="wires")
    seen = rt.region(300, "f8", name="seen")
    with wires.host("w", "to") as to:
        to[:] = np.random.default_rng(3).integers(0, 50, 300)
    pw = rt.block(wires, 6)
    touched = rt.image(pw, "to", nodes)
    ps = rt.block(seen, 6)
    sums = []
    for k in range(20):
        grow.map(6, pu[each], k)
        average.map(6, pv[each], pu[each - 1], pu[each], pu[each + 1], edge="wrap")
        count.map(6, pw[each], touched[each], each)
        read.map(6, touched[each], pw[each], ps[each])
        sums.append(total.map(6, pv[each]).reduce("+"))
    values = np.array([s.get() for s in sums])
    return [values.tobytes(), u.numpy().tobytes(), v.numpy().tobytes(), nodes.numpy().tobytes(), seen.numpy().tobytes()]


@pytest.fixture(scope="module")
def expected() -> list[bytes]:
    with rt.start(executor="serial"):
        return program()


def test_the_same_bits_as_in_sequence(expected: list[bytes]) -> None:
    with rt.start(executor="processes", workers=2):
        assert program() == expected
    assert not [c for c in psutil.Process().children() if c.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("trial", [pytest.param(t, marks=[] if t < 2 else pytest.mark.slow) for t in range(40)])
def test_killed_workers_are_replaced_and_their_tasks_repeated(expected: list[bytes], trial: int) -> None:
    rng, stop, kills = random.Random(trial), threading.Event(), []

    def killer() -> None:
        while not stop.wait(rng.uniform(0.01, 0.15)):
            workers = [c.pid for c in psutil.Process().children() if c.status() != psutil.STATUS_ZOMBIE]
            if workers and len(kills) < 4:
                kills.append(rng.choice(workers))
                os.kill(kills[-1], signal.SIGKILL)

    with rt.start(executor="processes", workers=2, recovery="retry"):
        thread = threading.Thread(target=killer)
        thread.start()
        try:
            while not kills:
                assert program() == expected
        finally:
            stop.set()
            thread.join()


def test_without_recovery_the_error_says_what_was_lost() -> None:
    with pytest.raises(
        WorkerLostError, match=r"worker \d \(pid \d+, signal 9.*died in task 'suicide'; region pu\[1\] lost"
    ):
        with rt.start(executor="processes", workers=2):
            u = rt.region(8, "f8", name="u")
            pu = rt.block(u, 2)
            suicide(pu[1])
            rt.fence()
    assert not [c for c in psutil.Process().children() if c.status() != psutil.STATUS_ZOMBIE]


def test_errors_of_bodies_come_back_with_their_traceback() -> None:
    with rt.start(executor="processes", workers=2):
        u = rt.region(8, "f8", name="u")
        broken(u)
        with pytest.raises(LookupError, match="no such thing") as caught:
            u.numpy()
        assert any("in task 'broken'" in note for note in caught.value.__notes__)


def test_what_cannot_be_sent_is_named() -> None:
    lock = threading.Lock()

    @task
    def locked(x: ReadWrite):
        with lock:
            x += 1

    with rt.start(executor="processes", workers=2):
        with pytest.raises(TaskTransferError, match="task 'locked' cannot be sent: it closes over <lock>"):
            locked(rt.region(4, "f8"))


RESUMABLE = """
import sys, time
from burnish import runtime as rt
from burnish.runtime import Read, ReadWrite, each, task

@task
def step(x: ReadWrite, k: int):
    x += k; x *= 1.0000001; time.sleep(0.001)

@task
def total(x: Read) -> float:
    return float(x.sum())

u = rt.region(400, "f8", name="u")
p = rt.block(u, 2)
seen = 0.0
pending = None
for k in range(int(sys.argv[1])):
    step.map(2, p[each], k)
    if k % 40 == 20:
        pending = total.map(2, p[each]).reduce("+")
    if k % 40 == 39:
        seen += pending.get()
print(repr(seen), repr(float(u.numpy().sum())))
"""


def _run(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "burnish", "run", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in range(1, 5))])
def test_a_killed_program_is_resumed_to_the_same_answer(tmp_path: Path, seed: int) -> None:
    program_file = tmp_path / "steps.py"
    program_file.write_text(
        RESUMABLE.replace(
            "u = rt.region",
            "rt.start(recovery='lineage', log=sys.argv[2], resume=len(sys.argv) > 3, checkpoint_every=0.1)\nu = rt.region",
        )
    )
    plain = tmp_path / "plain.py"
    plain.write_text(RESUMABLE)
    answer, _ = _run(str(plain), "500").communicate(timeout=60)
    log = str(tmp_path / "log")
    first = _run(str(program_file), "500", log)
    deadline = time.monotonic() + 30
    while not list((tmp_path / "log").glob("checkpoint-*/futures")) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(random.Random(seed).uniform(0.0, 0.3))
    first.kill()
    first.communicate()
    again, errors = _run(str(program_file), "500", log, "resume").communicate(timeout=60)
    assert again == answer, errors


def test_another_program_is_refused_at_its_first_different_launch(tmp_path: Path) -> None:
    program_file = tmp_path / "steps.py"
    program_file.write_text(
        RESUMABLE.replace(
            "u = rt.region",
            "rt.start(recovery='lineage', log=sys.argv[2], resume=len(sys.argv) > 3, checkpoint_every=0.01)\nu = rt.region",
        )
    )
    log = str(tmp_path / "log")
    _run(str(program_file), "100", log).communicate(timeout=60)
    program_file.write_text(program_file.read_text().replace("step.map(2, p[each], k)\n", "total.map(2, p[each])\n"))
    _, errors = _run(str(program_file), "100", log, "resume").communicate(timeout=60)
    assert "LineageMismatchError: event 1: the recorded run launched step here, this one launches total" in errors
