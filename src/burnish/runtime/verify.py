"""Does a program give the same bits however it runs? Run it in many ways and compare."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from burnish._native import runtime as _rt
from burnish.core.errors import EXIT_NO
from burnish.core.evidence import Evidence
from burnish.runtime.context import abandon, start, stop
from burnish.runtime.errors import RuntimeProblem
from burnish.runtime.future import Future, FutureMap
from burnish.runtime.region import Region


class EquivalenceError(RuntimeProblem):
    """A program gave other results than when its launches ran one after another."""

    exit_code = EXIT_NO


@dataclasses.dataclass(frozen=True)
class _Outcome:
    """Everything a run left behind, as (where, bytes)."""

    parts: tuple[tuple[str, bytes], ...]
    counters: dict[str, Any]

    @property
    def bytes(self) -> int:
        return sum(len(data) for _, data in self.parts)


def _flatten(where: str, value: Any) -> Iterator[tuple[str, bytes]]:
    """A value as named bytes; floats and arrays bit by bit."""
    if isinstance(value, (Future, FutureMap)):
        yield from _flatten(where, value.get())
    elif isinstance(value, Region):
        yield from _contents(where, value)
    elif isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__array__"):
        array = np.asarray(value)
        yield where, repr((array.dtype.str, array.shape)).encode() + array.tobytes()
    elif isinstance(value, float):
        yield where, np.float64(value).tobytes()
    elif isinstance(value, complex):
        yield where, np.complex128(value).tobytes()
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _flatten(f"{where}[{key!r}]", item)
    elif isinstance(value, (list, tuple)):
        yield where, str(len(value)).encode()
        for i, item in enumerate(value):
            yield from _flatten(f"{where}[{i}]", item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _flatten(f"{where}.{field.name}", getattr(value, field.name))
    else:
        yield where, repr(value).encode()


def _contents(where: str, region: Region) -> Iterator[tuple[str, bytes]]:
    for field in region.fields:
        label = where if len(region.fields) == 1 else f"{where}.{field.name}"
        yield from _flatten(label, region.numpy(field.name))


def _run(program: Callable[[], object], **settings: Any) -> _Outcome:
    """One run from start to stop: its value (or error), and the contents of the regions it leaves."""
    gc.collect()
    before = {id_ for id_, _, _ in _rt.live_roots()}
    start(**settings)
    try:
        try:
            parts = list(_flatten("the returned value", program()))
        except Exception as error:
            parts = [("the error", f"{type(error).__name__}: {error}".encode())]
            abandon()
            return _Outcome(tuple(parts), {})
        gc.collect()
        for position, (_, region, _) in enumerate(r for r in _rt.live_roots() if r[0] not in before):
            parts.extend(_contents(f"region {position} ('{region.name}')", region))
        return _Outcome(tuple(parts), stop().counters)
    except BaseException:
        abandon()
        raise


def _compare(serial: _Outcome, other: _Outcome, how: str) -> None:
    for (where, expected), (there, found) in zip(serial.parts, other.parts, strict=False):
        if where != there:
            raise EquivalenceError(
                f"with {how}, the program leaves {there} where it leaves {where} with executor='serial'"
            )
        if expected != found:
            raise EquivalenceError(f"with {how}, {where} differs from executor='serial' {_first(expected, found)}")
    if len(serial.parts) != len(other.parts):
        raise EquivalenceError(
            f"with {how}, the program leaves {len(other.parts)} results, with executor='serial' {len(serial.parts)}"
        )


def _first(expected: bytes, found: bytes) -> str:
    """Where two byte strings differ, for a message."""
    if len(expected) < 200 and len(found) < 200 and expected.isascii() and expected.decode().isprintable():
        return f"({expected.decode()} became {found.decode(errors='replace')})"
    n = min(len(expected), len(found))
    a, b = np.frombuffer(expected[:n], np.uint8), np.frombuffer(found[:n], np.uint8)
    different = np.flatnonzero(a != b)
    return f"({different.size} of {n} bytes)" if different.size else f"({len(expected)} bytes became {len(found)})"


def verify(
    program: Callable[[], object],
    *,
    workers: Sequence[int] = (1, 2, 4),
    executors: Sequence[str] = ("serial", "threads", "processes"),
    schedules: int = 2,
    mapper: Any = None,
) -> Evidence:
    """Run ``program`` serially, then under each executor with each number of workers, and compare all bits.

    Compared are what the program returns (futures, regions, arrays and containers of them) or the error it raises, and
    the contents of all regions that are alive when it ends. ``schedules``: runs per setting of threads, the first
    undisturbed, the others with random delays and orders. ``program`` takes no arguments, starts no context itself, and
    does the same each time it is called.

    Returns ``tested`` evidence with counts; raises EquivalenceError, with what differs first, if a run differs.
    """
    if _rt.running():
        raise RuntimeProblem("verify() starts contexts of its own; call stop() first")
    expected = _run(program, executor="serial", mapper=mapper)
    runs: list[str] = []
    tasks = 0
    for executor in executors:
        for n in workers if executor != "serial" else (1,):
            for seed in range(schedules if executor == "threads" else 1):
                how = f"executor='{executor}', workers={n}" + (f", chaos={seed}" if seed else "")
                found = _run(program, executor=executor, workers=n, chaos=seed, mapper=mapper)
                _compare(expected, found, how)
                runs.append(how)
                tasks += found.counters.get("tasks", 0)
    name = getattr(program, "__name__", "the program")
    detail = {
        "runs": len(runs),
        "settings": tuple(runs),
        "results": len(expected.parts),
        "bytes": expected.bytes,
        "tasks": tasks,
    }
    return Evidence(
        f"{name} gives bitwise the results of its launches run one after another",
        "tested",
        f"{len(runs)} runs, {len(expected.parts)} results of {expected.bytes} bytes compared",
        detail,
    )
