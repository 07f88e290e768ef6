"""Runs random programs on burnish and compares what they show with the oracle."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from burnish import runtime as rt
from burnish.core.errors import BurnishError
from burnish.runtime import each

from . import program_bodies
from .program_bodies import DTYPES, make_task
from .program_oracle import Outcome, changed
from .random_programs import (
    DropRoot,
    Fence,
    Fill,
    FoldFutures,
    Get,
    Host,
    Launch,
    MakePartition,
    MakeRoot,
    Mark,
    Program,
    Projection,
    RegionRef,
)


@dataclass(frozen=True)
class Setting:
    """How a program is run."""

    executor: str = "threads"
    workers: int = 2
    chaos: int = 0
    window: int = 16384
    lanes: int = 2
    reduce_limit: int = 256 << 20
    record_edges: bool = False
    trace: bool = False

    def start(self) -> None:
        eager = SimpleNamespace(min_length=2, ruler=8, deterministic=True, budget=1.0)
        program_bodies.pause = self.chaos != 0
        program_bodies.native_pause[0] = self.chaos != 0
        rt.start(
            executor=self.executor, workers=self.workers, chaos=self.chaos, window=self.window, lanes=self.lanes,
            reduce_limit=self.reduce_limit, record_edges=self.record_edges, trace=eager if self.trace else False,
        )  # type: ignore[arg-type]  # fmt: skip


def setting(seed: int, trace: bool = False) -> Setting:
    """An adversarial setting for a seed: 1 to 8 workers, small and large windows, lanes and reduction limits."""
    rng = np.random.default_rng(seed)
    return Setting(
        workers=int(rng.choice([1, 2, 2, 3, 4, 8])),
        chaos=seed * 2 + 1,
        window=int(rng.choice([64, 64, 16384])),
        lanes=int(rng.integers(1, 4)),
        reduce_limit=int(rng.choice([0, 2000, 256 << 20], p=[0.15, 0.15, 0.7])),
        trace=trace,
    )


AXES = (each.x, each.y, each.z, each.w)


class Runner:
    """One run of a program; regions, partitions and futures of the running program by name."""

    def __init__(self) -> None:
        self.roots: dict[int, Any] = {}
        self.fields: dict[int, tuple[str, ...]] = {}
        self.partitions: dict[int, Any] = {}
        self.owner: dict[int, int] = {}
        self.futures: dict[int, Any] = {}
        self.outcome = Outcome()

    def run(self, program: Program) -> None:
        for step in program:
            self.step(step)

    def region(self, ref: RegionRef) -> Any:
        if ref[0] == "root":
            return self.roots[ref[1]]
        if ref[0] == "child":
            part = self.partitions[ref[1]]
            color = tuple(int(c) for c in np.unravel_index(ref[2], part.colors))
            return part[color if len(color) > 1 else color[0]]
        return self.region(ref[1])[rt.Rect(ref[2], ref[3])]

    def root_of(self, ref: RegionRef) -> int:
        if ref[0] == "root":
            root: int = ref[1]
            return root
        return self.owner[ref[1]] if ref[0] == "child" else self.root_of(ref[1])

    def argument(self, arg: Any) -> Any:
        if not isinstance(arg, Projection):
            return self.region(arg)
        part = self.partitions[arg.partition]
        if arg.kind == "shift":
            return part[each + (arg.args if len(arg.args) > 1 else arg.args[0])] if arg.args else part[each]
        if arg.kind == "axes":
            return part[tuple(o if a is None else AXES[a] + o for a, o in arg.args[0])]
        table = {c if len(c) > 1 else c[0]: t if len(t) > 1 else t[0] for c, t in arg.args[0].items()}
        return part[each.map(table.__getitem__)]

    def future(self, ref: Any) -> Any:
        made = self.futures[ref[1]]
        return made if ref[2] is None else made[ref[2]]

    def step(self, step: Any) -> None:
        if isinstance(step, MakeRoot):
            spec = {f: (DTYPES[f][0], DTYPES[f][1]) if DTYPES[f][1] else DTYPES[f][0] for f in step.fields}
            self.roots[step.name] = rt.region(step.shape, spec, name=f"u{step.name}")
            self.fields[step.name] = step.fields
        elif isinstance(step, DropRoot):
            del self.roots[step.root]
            for p in [p for p, r in self.owner.items() if r == step.root]:
                del self.partitions[p], self.owner[p]
        elif isinstance(step, MakePartition):
            self.make_partition(step)
        elif isinstance(step, Launch):
            try:
                self.launch(step)
            except BurnishError as error:
                self.outcome.refused[step.name] = type(error).__name__
        elif isinstance(step, FoldFutures):
            self.futures[step.name] = self.futures[step.launch].reduce(step.op)
        elif isinstance(step, Fill):
            self.region(step.region).fill(step.value, step.field)
        elif isinstance(step, Host):
            self.host(step)
        elif isinstance(step, Get):
            self.outcome.seen.append(self.future(step.future).get())
        elif isinstance(step, Fence):
            rt.fence()
        else:
            assert isinstance(step, Mark)
            if step.begins:
                self.trace = rt.trace(step.trace, on_mismatch="analyze")
                self.trace.__enter__()
            else:
                self.trace.__exit__(None, None, None)

    def make_partition(self, step: MakePartition) -> None:
        if isinstance(step.of, int):
            part = self.partitions[step.of]
            root = self.owner[step.of]
            if step.builder == "ghost":
                width, wrap, include_self = step.args
                made = rt.ghost(part, width, wrap=wrap, include_self=include_self)
            elif step.builder == "op":
                other = self.partitions[step.args[1]]
                made = {"|": part.__or__, "&": part.__and__, "-": part.__sub__}[step.args[0]](other)
            else:
                build = {"image": rt.image, "preimage": rt.preimage}[step.builder]
                made, root = (
                    build(part, np.array(step.args[0], np.int64), self.region(step.args[1])),
                    self.root_of(step.args[1]),
                )
        else:
            parent, root = self.region(step.of), self.root_of(step.of)
            if step.builder == "by_sets":
                made = rt.by_sets(parent, [np.array(s, np.int64) for s in step.args[0]])
            else:
                made = {"block": rt.block, "restrict": rt.restrict, "by_color": rt.by_color}[step.builder](
                    parent, *step.args
                )
        self.partitions[step.name], self.owner[step.name] = made, root

    def launch(self, step: Launch) -> None:
        task = make_task(step.task)
        args = [self.argument(a) for a in step.args]
        args += [self.future(s) if isinstance(s, tuple) else s for s in step.scalars]
        if not step.task.native:
            domain = step.domain or ()
            args += [-1 if step.domain is None else each, domain, step.fails]
        if step.domain is None:
            made = task(*args)
        else:
            domain_arg = step.domain if len(step.domain) > 1 else step.domain[0]
            options = {"when": self.future(step.when)} if step.when else {}
            made = task.map(domain_arg, *args, edge=step.edge, **options)
        if step.task.returns:
            self.futures[step.name] = made

    def host(self, step: Host) -> None:
        region = self.region(step.region)
        with region.host(step.mode, step.field) as a:  # type: ignore[arg-type]
            flat = np.array(a).reshape((region.volume, *DTYPES[step.field][1]))
            if step.mode != "w":
                self.outcome.seen.append(flat)
            if step.mode != "r":
                a[...] = changed(flat, step.mode, step.seed).reshape(a.shape)

    def finish(self) -> None:
        """Reads everything that is left: all roots, all futures."""
        for root, region in self.roots.items():
            for name in self.fields[root]:
                self.outcome.contents[root, name] = region.numpy(name).reshape((region.volume, *DTYPES[name][1]))
        for name, made in self.futures.items():
            if isinstance(made, rt.FutureMap):
                for color, future in enumerate(made):
                    if future is not None:
                        self.outcome.futures[name, color] = future.get()
            else:
                self.outcome.futures[name, None] = made.get()


def run(program: Program, how: Setting) -> Outcome:
    """Runs a program without planned failures."""
    how.start()
    runner = Runner()
    try:
        runner.run(program)
        runner.finish()
    finally:
        rt.stop()
    return runner.outcome


def same(a: Any, b: Any) -> bool:
    """Equal to the last bit."""
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return type(a) is type(b) and a == b


def differences(expected: Outcome, got: Outcome) -> list[str]:
    """What differs between two outcomes, one line each."""
    found = []
    for name in sorted(expected.refused.keys() | got.refused.keys()):
        want, have = expected.refused.get(name), got.refused.get(name)
        if want is None or have is None or have not in want:
            found.append(f"launch {name}: expected {want or 'to be accepted'}, got {have or 'accepted'}")
    if len(expected.seen) != len(got.seen):
        found.append(f"{len(got.seen)} values seen on the way, expected {len(expected.seen)}")
    for n, (a, b) in enumerate(zip(expected.seen, got.seen, strict=False)):
        if not same(a, b):
            found.append(f"value {n} seen on the way differs: {a!r} != {b!r}")
    for what in ("contents", "futures"):
        want_all, have_all = getattr(expected, what), getattr(got, what)
        for key in sorted(want_all.keys() | have_all.keys(), key=str):
            if key not in want_all or key not in have_all or not same(want_all[key], have_all[key]):
                found.append(f"{what}[{key}] differ: {want_all.get(key)!r} != {have_all.get(key)!r}")
    return found
