"""Starting, watching and ending one worker process."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

from burnish.runtime.executors.errors import WorkerStartError
from burnish.runtime.executors.native import Arena

# sys.path is taken over before anything of burnish is imported; the program's __main__ is not imported at all, since
# cloudpickle sends what it defines by value.
_BOOT = """
import json, os, sys
with open(int(sys.argv[1])) as settings: settings = json.load(settings)
sys.path[:] = settings.pop("path")
from burnish.runtime.executors import _worker
_worker.main(_worker.Settings(**settings))
"""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_STDERR_LINES = 12


@dataclass
class Process:
    """A worker process; ``pidfd`` becomes readable when it ends. ``close`` after its end."""

    popen: subprocess.Popen[bytes]
    pidfd: int
    death_fd: int
    ready_fd: int
    stderr_fd: int

    @property
    def pid(self) -> int:
        return self.popen.pid

    def alive(self) -> bool:
        return self.popen.poll() is None

    def kill(self) -> None:
        """SIGKILL, and wait until the process is gone."""
        if self.alive():
            self.popen.kill()
        self.popen.wait()

    def wait(self, deadline: float) -> None:
        """Wait for the end of the process, at most until ``deadline`` on the monotonic clock."""
        _readable(self.pidfd, deadline)

    def wait_ready(self, deadline: float) -> None:
        """Wait for the worker's first sign; raises :class:`WorkerStartError` with the end of its stderr."""
        readable = _readable(self.ready_fd, deadline)
        word = os.read(self.ready_fd, 1) if readable else b""
        os.close(self.ready_fd)
        self.ready_fd = -1
        if word:
            return
        self.kill()
        why = f"ended with {describe_exit(self.popen.returncode)}" if readable else "did not answer in time"
        tail = self._stderr_tail()
        raise WorkerStartError(
            f"worker process {self.pid} {why}" + (f"; its last words:\n{tail}" if tail else " and wrote nothing"),
        )

    def _stderr_tail(self) -> str:
        text = os.pread(self.stderr_fd, 1 << 20, 0).decode(errors="replace")
        return "\n".join("    " + line for line in text.splitlines()[-_STDERR_LINES:])

    def close(self) -> None:
        for name in ("pidfd", "death_fd", "ready_fd", "stderr_fd"):
            if getattr(self, name) >= 0:
                os.close(getattr(self, name))
                setattr(self, name, -1)


def _readable(fd: int, deadline: float) -> bool:
    poll = select.poll()  # select() is limited to 1024 descriptors
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))


def describe_exit(code: int | None) -> str:
    """How a process ended, from ``Popen.returncode``."""
    if code is None:
        return "no exit status"
    if code >= 0:
        return f"exit code {code}"
    return f"signal {-code}" + (", maybe out of memory" if -code == signal.SIGKILL else "")


def start(arena: Arena, channel_offset: int, spin_ns: int) -> Process:
    """Start a worker on a reset channel; returns at once, see :meth:`Process.wait_ready`.

    The worker ends with the thread that calls this, hence call it from one that lives as long as the pool.
    """
    death_read, death_write = os.pipe()
    ready_read, ready_write = os.pipe()
    settings_fd, stderr_fd = os.memfd_create("burnish-settings"), os.memfd_create("burnish-stderr")
    theirs = [death_read, ready_write, settings_fd]
    try:
        real_stderr = _stderr()
        theirs.append(real_stderr)
        settings = {
            "path": sys.path,
            "parent": os.getpid(),
            "arena_fd": arena.fd,
            "arena_bytes": arena.capacity,
            "channel_offset": channel_offset,
            "spin_ns": spin_ns,
            "death_fd": death_read,
            "ready_fd": ready_write,
            "stderr_fd": real_stderr,
        }
        os.pwrite(settings_fd, json.dumps(settings).encode(), 0)
        popen = subprocess.Popen(
            [sys.executable, *_interpreter_flags(), "-c", _BOOT, str(settings_fd)],
            stdin=subprocess.DEVNULL,
            stderr=stderr_fd,
            pass_fds=[arena.fd, *theirs],
            env={**dict.fromkeys(_THREADS, "1"), **os.environ},
        )
        pidfd = os.pidfd_open(popen.pid)
    except OSError as error:
        for fd in (death_write, ready_read, stderr_fd):
            os.close(fd)
        raise WorkerStartError(f"cannot start a worker process: {error}") from error
    finally:
        for fd in theirs:
            os.close(fd)
    return Process(popen, pidfd, death_write, ready_read, stderr_fd)


def _stderr() -> int:
    try:
        return os.dup(2)
    except OSError:  # a driver without stderr, such as a daemon
        return os.open(os.devnull, os.O_WRONLY)


def _interpreter_flags() -> list[str]:
    flags = [f"-W{option}" for option in sys.warnoptions]
    for name, value in sys._xoptions.items():
        flags += ["-X", name if value is True else f"{name}={value}"]
    if sys.flags.optimize:
        flags.append("-" + "O" * sys.flags.optimize)
    return flags
