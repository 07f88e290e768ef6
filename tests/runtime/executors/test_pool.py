"""The pool under calls, deaths, stops and Ctrl-C; nothing may be left running."""

import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import psutil
import pytest

from burnish.runtime.executors import (
    Pool,
    WorkerLostError,
    WorkerStartError,
    WorkerTimeoutError,
    message,
    native,
    spawn,
)
from tests.runtime.executors.arena_arrays import describe, empty


def gone(pid, within=15.0):
    """True once the process has ended (a zombie that nobody reaps yet has ended too)."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def no_leftovers():
    before = {p.pid for p in psutil.Process().children(recursive=True)}
    fds, threads = psutil.Process().num_fds(), threading.active_count()
    yield
    gc.collect()
    after = {p.pid for p in psutil.Process().children(recursive=True)}
    assert after <= before
    assert psutil.Process().num_fds() <= fds and threading.active_count() <= threads


@pytest.fixture(scope="module")
def pool():
    with Pool(2) as pool:
        yield pool


def test_calls(pool, no_leftovers):
    assert pool.call(0, divmod, 17, 5) == (3, 2)
    assert pool.call(1, sorted, [3, 1, 2], reverse=True) == [3, 2, 1]
    captured = 41
    assert pool.call(0, lambda x: captured + x, 1) == 42
    pids = [pool.call(i, os.getpid) for i in (0, 1)]
    assert pids == [pool[0].pid, pool[1].pid] and os.getpid() not in pids
    with pytest.raises(ZeroDivisionError) as caught:
        pool.call(0, lambda: 1 // 0)
    assert "1 // 0" in str(caught.value.__cause__)


@pytest.mark.parametrize("size", [0, 1, 65_000, 65_535, 65_536, 65_537, 131_072, 1_000_003])
def test_messages_of_every_length(pool, size):
    data = random.Random(size).randbytes(size)
    assert pool.call(0, lambda d: d[::-1], data) == data[::-1]


def test_submit_uses_all_workers(pool):
    def meet(path, mine, other):
        open(os.path.join(path, mine), "w").close()
        deadline = time.monotonic() + 30
        while not os.path.exists(os.path.join(path, other)):
            assert time.monotonic() < deadline, "the other worker never came"
            time.sleep(0.001)
        return os.getpid()

    import tempfile

    with tempfile.TemporaryDirectory() as path:
        futures = [pool.submit(meet, path, "a", "b"), pool.submit(meet, path, "b", "a")]
        assert {f.result() for f in futures} == {pool[0].pid, pool[1].pid}
    assert [f.result() for f in [pool.submit(pow, 3, i) for i in range(40)]] == [3**i for i in range(40)]
    with pytest.raises(OverflowError):
        pool.submit(float, 10**400).result()


def test_death_in_a_call_is_told_and_the_worker_replaced(pool):
    with pytest.raises(WorkerLostError, match=r"^worker 0 \(pid \d+, exit code 7\) died in a call$"):
        pool.call(0, os._exit, 7)
    with pytest.raises(WorkerLostError, match=r"signal 9, maybe out of memory"):
        pool.call(0, lambda: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(WorkerLostError, match=r"signal 11\)"):
        pool.submit(lambda: os.kill(os.getpid(), signal.SIGSEGV)).result()
    assert pool.call(0, abs, -1) == 1


def test_death_between_calls_is_not_an_error(pool):
    old = pool.call(1, os.getpid)
    os.kill(old, signal.SIGKILL)
    assert gone(old)
    assert pool.call(1, os.getpid) != old


def test_late_call_is_ended(pool):
    old, generation = pool.call(0, os.getpid), pool[0].generation
    with pytest.raises(WorkerTimeoutError, match=r"worker 0 did not finish a call within 0.2 s"):
        pool.call(0, time.sleep, 600, timeout=0.2)
    assert gone(old)
    assert pool.call(0, abs, -2, timeout=30) == 2
    assert pool[0].generation == generation + 1


def test_interrupted_call_leaves_a_working_pool(pool):
    killer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    killer.start()
    with pytest.raises(KeyboardInterrupt):
        pool.call(0, time.sleep, 600)
    killer.join()
    assert pool.call(0, abs, -3) == 3


def test_workers_survive_ctrl_c(pool):
    pid = pool.call(0, os.getpid)
    os.kill(pid, signal.SIGINT)
    assert pool.call(0, os.getpid) == pid


def test_stopped_process_is_replaced(no_leftovers):
    with Pool(1, stuck_after=1.5) as pool:
        threading.Timer(0.2, os.kill, [pool[0].pid, signal.SIGSTOP]).start()
        with pytest.raises(WorkerLostError):
            pool.call(0, time.sleep, 600)
        assert pool.call(0, abs, -4) == 4


def test_a_long_call_is_no_reason_to_kill(no_leftovers):
    def hog(seconds):  # never lets another Python thread of its process run
        sys.setswitchinterval(1000)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pass
        return "done"

    with Pool(1, stuck_after=1.0) as pool:
        assert pool.call(0, hog, 2.0) == "done"


def test_initializer_runs_in_every_process(no_leftovers):
    with Pool(1, initializer=lambda: os.environ.__setitem__("PREPARED", "yes")) as pool:
        for _ in range(2):
            assert pool.call(0, os.getenv, "PREPARED") == "yes"
            pool.replace(0)
    with pytest.raises(ZeroDivisionError):
        Pool(1, initializer=lambda: 1 // 0)


def test_worker_that_cannot_start_shows_its_last_words(no_leftovers, monkeypatch):
    monkeypatch.setattr(spawn, "_BOOT", "import no_such_module_anywhere")
    with pytest.raises(WorkerStartError, match="ended with exit code 1") as caught:
        Pool(2)
    assert "No module named 'no_such_module_anywhere'" in str(caught.value)
    assert caught.value.exit_code == 4


def test_worker_that_never_answers(no_leftovers, monkeypatch):
    monkeypatch.setattr(spawn, "_BOOT", "import time; time.sleep(600)")
    with pytest.raises(WorkerStartError, match="did not answer in time and wrote nothing"):
        Pool(1, start_timeout=0.3)


def test_what_a_task_prints_is_seen(no_leftovers, capfd):
    with Pool(1) as pool:
        pool.call(0, lambda: (print("to stdout"), print("to stderr", file=sys.stderr)))
    out, err = capfd.readouterr()
    assert out == "to stdout\n" and err == "to stderr\n"


def test_stop_ends_busy_workers_and_cancels_what_has_not_begun(no_leftovers):
    pool = Pool(1)
    busy, waiting = pool.submit(time.sleep, 600), pool.submit(abs, -1)
    while not busy.running():
        time.sleep(0.01)
    time.sleep(0.1)
    pool.stop()
    pool.stop()
    assert waiting.cancelled()
    with pytest.raises(WorkerLostError):
        busy.result(5)
    with pytest.raises(WorkerStartError, match="stopped"):
        pool.call(0, abs, -1)
    assert pool.arena.stats()["used"] == 0


def test_forked_child_does_not_end_the_pool(pool):
    child = os.fork()
    if child == 0:
        pool.stop()
        os._exit(0)
    os.waitpid(child, 0)
    assert pool.call(0, abs, -5) == 5


MAIN_PROGRAM = """
import dataclasses, os
from burnish.runtime.executors import Pool
print("main runs in", os.getpid())

@dataclasses.dataclass(frozen=True)
class Point:
    x: float
    def moved(self, by):
        return Point(self.x + by)

class Off(Exception):
    pass

SHIFT = 2.5

def move(p):
    if p.x > 100:
        raise Off("too far")
    return p.moved(SHIFT)

with Pool(1) as pool:
    back = pool.call(0, move, Point(1.0))
    assert back == Point(3.5) and type(back) is Point
    try:
        pool.call(0, move, Point(101.0))
    except Off as error:
        assert f'File "{__file__}", line 19' in str(error.__cause__), error.__cause__
        print("caught", error)
"""


def test_what_the_main_program_defines_travels_by_value(tmp_path):
    """There is no ``if __name__ == "__main__"`` guard: workers do not import the program."""
    program = tmp_path / "prog.py"
    program.write_text(MAIN_PROGRAM)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    assert done.stdout.count("main runs in") == 1 and done.stdout.endswith("caught too far\n")


DRIVER = """
import os, signal, sys, time
from burnish.runtime.executors import Pool
pool = Pool(2)
pool.submit(time.sleep, 600)
print(pool[0].pid, pool[1].pid, flush=True)
{end}
"""


@pytest.mark.parametrize(
    "end",
    [
        "os.kill(os.getpid(), signal.SIGKILL)",
        "os.kill(pool[1].pid, signal.SIGSTOP); os.kill(os.getpid(), signal.SIGKILL)",
        "sys.exit(0)",
        "raise ValueError",
        "os._exit(1)",
    ],
)
def test_workers_go_with_their_driver(end):
    code = DRIVER.format(end=end)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=os.environ)
    pids = [int(word) for word in done.stdout.split()]
    assert len(pids) == 2, done.stderr
    assert all(gone(pid) for pid in pids)


def test_kill_at_random_moments_of_a_call(pool):
    """Requests and answers of many parts, so that kills hit every phase of a transfer."""
    rng, lost = random.Random(5), 0
    data = rng.randbytes(700_000)
    for _ in range(6):
        pool.call(0, abs, 0)
        killer = threading.Timer(rng.uniform(0.0, 0.02), os.kill, [pool[0].pid, signal.SIGKILL])
        killer.start()
        try:
            while True:
                assert pool.call(0, bytes.__add__, data, b"!") == data + b"!"
                if not killer.is_alive():
                    break
        except WorkerLostError:
            lost += 1
        killer.join()
    assert pool.call(0, abs, -6) == 6


def crawl(a, b, rounds):
    """In place and not idempotent: running it twice, or half of it once more, changes the result."""
    for _ in range(rounds):
        for i in range(len(a)):
            a[i] = a[i] * 3 + b[i]
            b[i] = a[i] ^ b[i]


def test_retry_with_undo_equals_an_undisturbed_run(pool):
    rng, deaths = random.Random(11), 0
    base = empty(pool.arena, (2, 400), "i8")
    base[:] = np.arange(800).reshape(2, 400)
    expected = base.copy()
    function = pool.publish(message.pack_function(crawl, "crawl"))
    for _ in range(3):
        with np.errstate(over="ignore"):
            crawl(expected[0, ::2], expected[1, ::2], 8)
        pieces = [describe(pool.arena, base[0, ::2]), describe(pool.arena, base[1, ::2])]
        request = native.request(message.pack)
        request.task(3)
        request.object(function)
        for piece in pieces:
            request.array(piece)
        request.value(8)
        undo = native.undo(pool.arena)
        undo.save(pieces)
        for attempt in range(100):
            worker = pool[0] if pool[0].alive else pool.replace(0)
            killer = threading.Timer(rng.uniform(0.0, 0.02), os.kill, [worker.pid, signal.SIGKILL])
            if attempt < 2:
                killer.start()
            status = worker.channel.send(worker_request := request.finish(), worker.pidfd)
            if status == native.OK:
                status, _ = worker.channel.wait(worker.pidfd, 60.0)
            if attempt < 2:
                killer.join()
            if status == native.OK:
                break
            assert status == native.DIED and worker_request
            deaths += 1
            undo.restore()
        undo.release()
        assert (base == expected).all()
    assert deaths > 0
