"""Starting and stopping, waiting, statistics."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any, Literal

from burnish._native import runtime as _rt
from burnish.core.errors import BurnishError
from burnish.runtime import races
from burnish.runtime.errors import (
    ContextThreadError,
    RuntimeProblem,
    TraceError,
    TraceMismatchError,
    handles,
    line_of,
    where,
)
from burnish.runtime.executors.native import Arena, new_arena
from burnish.runtime.lineage import journal
from burnish.runtime.memory import parse_size

Engine = Literal["local", "ray"]
ExecutorName = Literal["auto", "serial", "threads", "processes"]


@dataclass(frozen=True)
class Settings:
    """What :func:`start` was given; also the defaults of an implicit start (``burnish run`` sets them)."""

    engine: str = "local"
    workers: int | None = None
    executor: str = "auto"
    check: bool = False
    trace: Any = True
    recovery: str = "none"
    window: int = 16384
    mapper: Any = None
    memory_limit: str | None = None
    profile: bool = False
    record_edges: bool = False
    chaos: int = 0
    lanes: int | None = None
    reduce_limit: int = 256 << 20
    log: str | None = None
    resume: bool = False
    checkpoint_every: float | None = None
    mtbf: float = 3600.0


@dataclass(frozen=True)
class RunReport:
    """What a context did: counters of launches, tasks, edges and replays; per task name launches and times."""

    counters: dict[str, Any]
    tasks: list[tuple[Any, ...]] = field(default_factory=list)


ENGINES = ("local",)
EXECUTORS = ("serial", "threads", "processes")
RECOVERIES = ("none", "retry", "lineage")

_defaults = Settings()
_settings: Settings | None = None
_switch_interval: float | None = None
_owner = ""  # name of the thread that started the context


class Context:
    """The running context; leaving a ``with`` block stops it."""

    @property
    def settings(self) -> Settings:
        if _settings is None:
            raise RuntimeProblem("no context is running; call start()")
        return _settings

    def __enter__(self) -> Context:
        return self

    def __exit__(self, kind: Any, error: Any, tb: Any) -> None:
        if kind is None:
            stop()
        else:
            abandon()


_context = Context()
_processes: Any = None
_observer: Callable[[], None] | None = None


def start(
    *,
    engine: Engine = "local",
    workers: int | None = None,
    executor: ExecutorName = "auto",
    check: bool = False,
    trace: Any = True,
    recovery: Literal["none", "retry", "lineage"] = "none",
    window: int = 16384,
    mapper: Any = None,
    memory_limit: str | None = None,
    profile: bool = False,
    record_edges: bool = False,
    chaos: int = 0,
    lanes: int | None = None,
    reduce_limit: int = 256 << 20,
    log: str | None = None,
    resume: bool = False,
    checkpoint_every: float | None = None,
    mtbf: float = 3600.0,
) -> Context:
    """Start a context on this thread (launches start one with defaults otherwise).

    workers: threads or processes that run tasks, the launching thread included (default: all cores).
    check: guard every body and every attached array; slower, finds what only shows as wrong results otherwise.
    window: launches in flight before the program waits. mapper: see :class:`Mapper`.
    memory_limit: ``"500MB"``, ``"2GiB"``: bytes in regions and reduction buffers before the program waits.
    profile: keep when each task ran, for :func:`profile`. record_edges: keep all dependences, for :func:`graph`.
    chaos: above 0, the seed of random delays and orders (tests). lanes: threads that may run Python bodies at once.
    reduce_limit: bytes in reduction buffers before they are folded.
    recovery: ``"retry"`` runs the tasks of a dead worker process again; ``"lineage"`` also keeps a journal with
    checkpoints in the directory ``log``, from which ``resume=True`` goes on after the program itself was killed.
    checkpoint_every: seconds between checkpoints (default: Young's formula from ``mtbf`` and their measured cost).

    Raises RuntimeProblem if a context is running or a setting is not possible.
    """
    return _start(
        Settings(
            engine=engine,
            workers=workers,
            executor=executor,
            check=check,
            trace=trace,
            recovery=recovery,
            window=window,
            mapper=mapper,
            memory_limit=memory_limit,
            profile=profile,
            record_edges=record_edges,
            chaos=chaos,
            lanes=lanes,
            reduce_limit=reduce_limit,
            log=log,
            resume=resume,
            checkpoint_every=checkpoint_every,
            mtbf=mtbf,
        )
    )


def _require_possible(settings: Settings) -> int:
    """Refuse settings that this installation does not have; returns the number of workers."""
    for name, value, possible in (
        ("engine", settings.engine, ENGINES),
        ("executor", settings.executor, ("auto", *EXECUTORS)),
        ("recovery", settings.recovery, RECOVERIES),
    ):
        if value not in possible:
            raise RuntimeProblem(f"{name}={value!r} is not available; there is {', '.join(map(repr, possible))}")
    workers = settings.workers if settings.workers is not None else (os.cpu_count() or 1)
    if workers < 1:
        raise RuntimeProblem(f"workers={workers} must be at least 1")
    if settings.window < 64:
        raise RuntimeProblem(f"window={settings.window} must be at least 64")
    if settings.check and settings.executor == "processes":
        raise RuntimeProblem("check=True runs all bodies in this process; use executor='threads' or 'serial' with it")
    return workers


def _start(settings: Settings) -> Context:
    global _settings, _switch_interval, _owner
    if _rt.running():
        raise RuntimeProblem("a context is running already; call stop() first")
    workers = _require_possible(settings)
    lanes = settings.lanes if settings.lanes is not None else 2
    _rt.start(
        workers,
        lanes,
        settings.executor == "serial",
        settings.check,
        settings.record_edges,
        settings.profile,
        settings.window,
        settings.chaos,
        settings.reduce_limit,
        parse_size(settings.memory_limit) if settings.memory_limit is not None else 0,
        _trace_options(settings.trace),
    )
    _settings, _owner = settings, threading.current_thread().name
    races.enabled = settings.check
    if settings.executor == "processes":
        _start_processes(settings, workers)
    if settings.recovery == "lineage":
        _start_journal(settings)
    # Bodies that release the GIL inside NumPy wait for it again while the program launches: hand over sooner.
    _switch_interval = sys.getswitchinterval()
    sys.setswitchinterval(2e-4)
    return _context


def _start_processes(settings: Settings, workers: int) -> None:
    global _processes
    from burnish.runtime.executors.processes import Processes

    try:
        _processes = Processes(workers, memory(), retry=settings.recovery != "none")
    except BaseException:
        _shut_down()
        raise


def _start_journal(settings: Settings) -> None:
    try:
        if settings.log is None:
            raise RuntimeProblem('recovery="lineage" needs log=DIRECTORY for its journal')
        journal.set_current(
            journal.Journal(
                Path(settings.log), resume=settings.resume, mtbf=settings.mtbf, period=settings.checkpoint_every
            )
        )
    except BaseException:
        _shut_down()
        raise


@functools.cache
def memory() -> Arena:
    """The arena of all regions of this process."""
    return new_arena()


def _trace_options(trace: Any) -> dict[str, Any]:
    options = {
        "algorithm": "burnish", "history": 8192, "ruler": 64, "min_length": 4, "max_length": None,
        "deterministic": False, "budget": 0.02, "parametric": True, "memory": 64 << 20,
    }  # fmt: skip
    if isinstance(trace, bool):
        return options if trace else {**options, "algorithm": "off"}
    return {**options, **{k: v for k, v in vars(trace).items() if k in options}}


@contextmanager
def trace(name: str, *, on_mismatch: Literal["raise", "analyze"] = "raise") -> Iterator[None]:
    """A manual trace: the launches inside are recorded the first time and replayed later.

    They must be the same each time (up to renaming regions); a deviation raises TraceMismatchError, or with
    ``on_mismatch="analyze"`` is analysed normally. Blocking calls inside split the trace.
    """
    if not _rt.begin_trace(name, on_mismatch == "raise"):
        raise TraceError(f"trace '{name}' starts inside another manual trace; traces cannot be nested")
    try:
        yield
    finally:
        _rt.end_trace()


def traces() -> list[dict[str, Any]]:
    """Known traces: length, replays, reliability, template bytes, task names and launch sites of their ops."""
    found: list[dict[str, Any]] = _rt.traces()
    return found


def start_default() -> None:
    """Called by the first launch of a program that started nothing."""
    _start(_defaults)


def set_defaults(settings: Settings) -> None:
    """Settings of the next implicit start."""
    global _defaults
    _defaults = settings
    races.enabled = settings.check


def set_observer(observe: Callable[[], None] | None) -> None:
    """What is called when a context has finished its launches, just before it ends."""
    global _observer
    _observer = observe


def current_settings() -> Settings:
    """Settings of the running context, or of the next implicit start."""
    return _settings or _defaults


def context() -> Context:
    """The running context (started with defaults if there is none)."""
    if not _rt.running():
        start_default()
    return _context


def fence() -> None:
    """Wait for all launches; raise the first task error in program order."""
    _rt.wait_all()
    races.look_at_all()


def stop() -> RunReport:
    """Wait for all launches, end the context, raise the first task error in program order."""
    if not _rt.running():
        return RunReport({})
    try:
        _rt.wait_all()
        races.look_at_all()
    finally:
        if _observer is not None:
            _observer()
        report = RunReport(_rt.counters(), _rt.task_table())
        _shut_down()
    return report


def abandon() -> None:
    """End the context after an error: wait for what runs, report nothing."""
    if _rt.running():
        with contextlib.suppress(Exception):
            _rt.wait_all()
        _shut_down()


def _shut_down() -> None:
    global _settings, _processes
    log = journal.current()
    if log is not None:
        journal.set_current(None)
        log.close()
    _rt.stop()
    _settings = None
    if _processes is not None:
        _processes.stop()
        _processes = None
    races.clear()
    races.enabled = _defaults.check
    if _switch_interval is not None:
        sys.setswitchinterval(_switch_interval)


def stats() -> dict[str, Any]:
    """Counters of the running context: launches, tasks, edges, edges_removed, folds, replayed, stolen, ..."""
    counters: dict[str, Any] = _rt.counters()
    return counters


def _op_text(info: Any, site: tuple[CodeType, int] | None) -> str:
    name = getattr(info, "name", "nothing (the trace was over)")
    return f"{name} at {where(site[0], line_of(*site))}" if site else name


@handles("trace_mismatch")
def _trace_mismatch(
    name: str, op: int, recorded: Any, recorded_site: Any, found: Any, found_site: Any
) -> TraceMismatchError:
    return TraceMismatchError(
        f"trace '{name}', op {op}: recorded {_op_text(recorded, recorded_site)}, now {_op_text(found, found_site)}; "
        "remove the bracket (automatic tracing handles varying sequences) or use another name"
    )


@handles("thread")
def _thread(launched: Any) -> ContextThreadError:
    what = f"launch of '{launched.name}'" if launched else "use of the runtime"
    return ContextThreadError(
        f"{what} from thread '{threading.current_thread().name}', but the context belongs to thread '{_owner}' "
        "that started it; launch there, or start the context in this thread"
    )


@atexit.register
def _at_exit() -> None:
    """Stop at interpreter exit; a task error that nobody has seen makes the program fail."""
    if sys.exc_info()[0] is not None or hasattr(sys, "last_value"):  # the program has failed already
        abandon()
        return
    try:
        stop()
    except Exception as error:
        if isinstance(error, BurnishError):
            print(f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)
        else:
            traceback.print_exception(error)
        sys.stdout.flush()
        sys.stderr.flush()
        atexit.unregister(_at_exit)
        atexit._run_exitfuncs()
        os._exit(error.exit_code if isinstance(error, BurnishError) else 1)  # Python ignores errors of exit functions
