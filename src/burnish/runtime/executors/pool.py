"""The local pool of worker processes: started once, replaced when dead or stuck, gone with the driver.

Three ways to use it. ``pool.call(i, f, ...)`` runs a function in worker ``i`` and waits; ``pool.submit(f, ...)`` takes
any idle worker and returns a future; the task runtime talks to ``pool[i].channel`` itself, from its own threads and
without the GIL, and calls ``pool.replace(i)`` after a death.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from burnish.runtime.executors import message, native, spawn
from burnish.runtime.executors.errors import WorkerLostError, WorkerStartError, WorkerTimeoutError

_POOL_ARENA_BYTES = 1 << 30  # address space, for pools whose users keep no data in shared memory


@dataclass
class Worker:
    """One place in the pool; the process behind it may change, the channel stays the same."""

    index: int
    channel: native.Channel
    channel_offset: int
    process: spawn.Process | None = None
    generation: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def pid(self) -> int:
        return self.process.pid if self.process else -1

    @property
    def pidfd(self) -> int:
        """Readable once the process is dead; another number after each replacement."""
        return self.process.pidfd if self.process else -1

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.alive()

    @property
    def beat_age(self) -> float:
        """Seconds since the process last showed that it gets the CPU (it does so every half second)."""
        return self.channel.beat_age()

    def epitaph(self) -> str:
        """Who died and how: ``worker 1 (pid 4242, signal 9, maybe out of memory)``."""
        code = self.process.popen.poll() if self.process else None
        return f"worker {self.index} (pid {self.pid}, {spawn.describe_exit(code)})"


class _Keeper:
    """A thread that lives as long as the pool and does all starting, since a worker ends with its starting thread."""

    def __init__(self, beat: Callable[[], None], period: float | None) -> None:
        self._jobs: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, args=(beat, period), name="burnish-pool-keeper", daemon=True)
        self._thread.start()

    def do(self, job: Callable[[], Any]) -> Any:
        future: Future[Any] = Future()
        self._jobs.put((future, job))
        return future.result()

    def end(self) -> None:
        self._jobs.put(None)
        self._thread.join()

    def _run(self, beat: Callable[[], None], period: float | None) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=period)
            except queue.Empty:
                beat()
                continue
            if job is None:
                return
            future, function = job
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)


class Pool:
    """``workers`` processes; use it as a context manager or call :meth:`stop`.

    ``arena``: shared memory for the channels and published objects (and the data of the task runtime), by default a
    private one. ``stuck_after``: kill a worker whose heartbeat is older than this many seconds (stopped or swapped out;
    a long call is no reason). ``initializer`` runs first in every process. ``spin_ns``: see ``Channel.set_spin``.
    Raises :class:`WorkerStartError` when a process does not come up within ``start_timeout`` seconds.
    """

    def __init__(
        self,
        workers: int,
        *,
        arena: native.Arena | None = None,
        initializer: Callable[[], object] | None = None,
        stuck_after: float | None = None,
        start_timeout: float = 60.0,
        spin_ns: int = 0,
    ) -> None:
        self.arena = arena if arena is not None else native.new_arena(_POOL_ARENA_BYTES)
        self._start_timeout, self._spin_ns, self._stuck_after = start_timeout, spin_ns, stuck_after
        self._initializer = _request(initializer, (), {}) if initializer else None
        self._decoder = native.decoder(self.arena)
        self._published: dict[bytes, native.ObjectRef] = {}
        self._state_lock = threading.Lock()
        self._owner = os.getpid()
        self._stopped = False
        self._tasks: queue.SimpleQueue[tuple[Future[Any], bytes] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._workers = tuple(self._new_worker(i) for i in range(workers))
        self._keeper = _Keeper(self._kill_stuck, stuck_after / 4 if stuck_after else None)
        atexit.register(self.stop)
        try:
            self._keeper.do(lambda: self._start(self._workers))
        except BaseException:
            self.stop()
            raise

    # --- life of the processes

    def _new_worker(self, index: int) -> Worker:
        offset = self.arena.alloc(native.CHANNEL_BYTES, 4096)
        channel = native.channel(self.arena, offset)
        channel.set_spin(self._spin_ns)
        return Worker(index, channel, offset)

    def _start(self, workers: tuple[Worker, ...]) -> None:
        """Start processes side by side and wait for all of them (keeper's thread)."""
        deadline = time.monotonic() + self._start_timeout
        for worker in workers:
            worker.channel.reset()
            worker.process = spawn.start(self.arena, worker.channel_offset, self._spin_ns)
            worker.generation += 1
        for worker in workers:
            assert worker.process is not None
            worker.process.wait_ready(deadline)
        if self._initializer is not None:
            for worker in workers:
                self._roundtrip(worker, self._initializer, self._start_timeout)

    def replace(self, index: int) -> Worker:
        """End the process of worker ``index`` if it still runs, start another on the same channel, wait for it."""
        worker = self._workers[index]
        if self._stopped:
            raise WorkerStartError("the pool has been stopped")
        if worker.process is not None:
            worker.process.kill()
            worker.process.close()
            worker.process = None
        self._keeper.do(lambda: self._start((worker,)))
        return worker

    def _kill_stuck(self) -> None:
        assert self._stuck_after is not None
        for worker in self._workers:
            process = worker.process
            if process is not None and worker.beat_age > self._stuck_after:
                process.popen.kill()  # whoever waits for it sees a death and replaces it

    def stop(self, timeout: float = 5.0) -> None:
        """End all workers: idle ones are asked to and get ``timeout`` seconds, busy ones are killed. Idempotent."""
        if os.getpid() != self._owner:  # a forked child of the driver
            return
        with self._state_lock:
            if self._stopped:
                return
            self._stopped = True
        atexit.unregister(self.stop)
        self._cancel_tasks()
        deadline = time.monotonic() + timeout
        processes = [worker.process for worker in self._workers if worker.process and self._ask_to_end(worker)]
        for process in processes:
            process.wait(deadline)
        self._kill_all()
        for thread in self._threads:
            thread.join()
        self._keeper.end()
        self._kill_all()  # one may have been in the middle of its start
        for worker in self._workers:
            if worker.process is not None:
                worker.process.close()
                worker.process = None
            self.arena.free(worker.channel_offset)
        for ref in self._published.values():
            self.arena.free(ref.offset)

    def _kill_all(self) -> None:
        for worker in self._workers:
            if worker.process is not None:
                worker.process.kill()

    def _cancel_tasks(self) -> None:
        while True:
            try:
                item = self._tasks.get_nowait()
            except queue.Empty:
                break
            if item is not None:
                item[0].cancel()
        for _ in self._threads:
            self._tasks.put(None)

    def _ask_to_end(self, worker: Worker) -> bool:
        if not worker.alive or not worker.lock.acquire(blocking=False):
            return False
        try:
            return worker.channel.send(native.request(message.pack).finish(), worker.pidfd, 1.0) == native.OK
        finally:
            worker.lock.release()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __len__(self) -> int:
        return len(self._workers)

    def __getitem__(self, index: int) -> Worker:
        return self._workers[index]

    def __iter__(self) -> Iterator[Worker]:
        return iter(self._workers)

    # --- objects that all workers share

    def publish(self, data: bytes) -> native.ObjectRef:
        """Put a pickled object into shared memory once; workers unpickle it when they first meet it, and keep it."""
        digest = hashlib.blake2b(data, digest_size=16).digest()
        with self._state_lock:
            if digest not in self._published:
                offset = self.arena.alloc(len(data))
                self.arena.write(offset, data)
                self._published[digest] = native.object_ref(int.from_bytes(digest[:8], "little"), offset, len(data))
            return self._published[digest]

    # --- calls

    def call(
        self, index: int, function: Callable[..., Any], /, *args: Any, timeout: float | None = None, **kwargs: Any
    ) -> Any:
        """Run ``function(*args, **kwargs)`` in worker ``index`` and return its result, or raise what it raised.

        One call at a time per worker, others wait. Raises :class:`WorkerLostError` when the process dies meanwhile and
        :class:`WorkerTimeoutError` after ``timeout`` seconds; the process is then ended, and the next call gets a
        fresh one.
        """
        return self._call(self._workers[index], _request(function, args, kwargs), timeout)

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run ``function(*args, **kwargs)`` in the first idle worker; :meth:`stop` cancels what has not begun."""
        request = _request(function, args, kwargs)
        future: Future[Any] = Future()
        with self._state_lock:
            if self._stopped:
                raise WorkerStartError("the pool has been stopped")
            if not self._threads:
                self._threads = [
                    threading.Thread(target=self._dispatch, args=(w,), name=f"burnish-pool-{w.index}", daemon=True)
                    for w in self._workers
                ]
                for thread in self._threads:
                    thread.start()
            self._tasks.put((future, request))
        return future

    def _dispatch(self, worker: Worker) -> None:
        while (item := self._tasks.get()) is not None:
            future, request = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(self._call(worker, request, None))
            except BaseException as error:
                future.set_exception(error)

    def _call(self, worker: Worker, request: bytes, timeout: float | None) -> Any:
        with worker.lock:
            if self._stopped:
                raise WorkerStartError("the pool has been stopped")
            if not worker.alive:
                self.replace(worker.index)
            return self._roundtrip(worker, request, timeout)

    def _roundtrip(self, worker: Worker, request: bytes, timeout: float | None) -> Any:
        process = worker.process
        assert process is not None
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            response = b""
            status = worker.channel.send(request, process.pidfd, -1.0 if timeout is None else timeout)
            if status == native.OK:
                left = -1.0 if deadline is None else max(0.0, deadline - time.monotonic())
                status, response = worker.channel.wait(process.pidfd, left)
        except BaseException:  # Ctrl-C: the channel is in the middle of a message
            process.kill()
            raise
        if status != native.OK:
            process.kill()
            if status == native.TIMEOUT:
                raise WorkerTimeoutError(f"worker {worker.index} did not finish a call within {timeout:g} s")
            raise WorkerLostError(f"{worker.epitaph()} died in a call")
        ((code, _, _, value),) = self._decoder.outcomes(response)
        if code != 0:
            raise message.rebuild_error(value)
        return value


def _request(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    name = getattr(function, "__qualname__", repr(function))
    request = native.request(message.pack)
    request.task(len(args))
    request.pickled(message.pack_function(partial(function, **kwargs) if kwargs else function, name))
    for arg in args:
        request.value(arg)
    return request.finish()
