"""Random programs for the runtime: a small language of launches, its generator, and a shrinker.

A program is a list of steps over up to three roots. Roots, partitions and futures are named by the step that makes
them, so that steps can be left out: what depends on a missing one is left out too.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from . import program_sets as sets
from .program_bodies import DTYPES, TaskSpec, Use
from .program_sets import Pieces, Points

# ---- the language ----
# A region is ("root", root) | ("child", partition, row-major color) | ("rect", region, lo, hi).
RegionRef = tuple[Any, ...]


@dataclass(frozen=True)
class MakeRoot:
    name: int
    shape: tuple[int, ...]
    fields: tuple[str, ...]


@dataclass(frozen=True)
class DropRoot:
    root: int


@dataclass(frozen=True)
class MakePartition:
    """builder: block(parent, colors) | restrict(parent, colors, T, extent, offset) | ghost(p, width, wrap, self) |
    by_color(parent, colors) | by_sets(parent, sets) | image(p, pointer, target) | preimage(p, pointer, source) | op(p, symbol, q)
    """

    name: int
    builder: str
    of: Any  # a region, or the name of a partition
    args: tuple[Any, ...]


@dataclass(frozen=True)
class Projection:
    """How a launch color picks a color of a partition: shift | axes (axis or None, offset per coordinate) | table."""

    partition: int
    kind: str
    args: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Launch:
    """A single launch (domain None) or an index launch. Arguments are regions or projections; scalars are literals or
    ("future", step, color or None). fails: bit set of colors whose bodies raise."""

    name: int
    task: TaskSpec
    domain: tuple[int, ...] | None
    args: tuple[Any, ...]
    scalars: tuple[Any, ...] = ()
    edge: str = "error"
    when: Any = None
    fails: int = 0


@dataclass(frozen=True)
class FoldFutures:
    """FutureMap.reduce of an index launch."""

    name: int
    launch: int
    op: str


@dataclass(frozen=True)
class Fill:
    region: RegionRef
    field: str
    value: Any


@dataclass(frozen=True)
class Host:
    """Host access; the data read are compared. r | w (overwrite all) | rw (change some)."""

    region: RegionRef
    field: str
    mode: str
    seed: int


@dataclass(frozen=True)
class Get:
    future: tuple[Any, ...]


@dataclass(frozen=True)
class Fence:
    pass


@dataclass(frozen=True)
class Mark:
    """The start or end of one pass of a manual trace."""

    trace: str
    begins: bool


Step = MakeRoot | DropRoot | MakePartition | Launch | FoldFutures | Fill | Host | Get | Fence | Mark
Program = tuple[Step, ...]

FIELD_SETS = (("i",), ("x",), ("i", "x"), ("x", "y", "z"), ("i", "j", "x", "y", "z"), ("j", "i", "x"))


# ---- a fixed pool of tasks (definitions live as long as the process) ----
def _uses(rng: random.Random, native: bool) -> tuple[Use, ...]:
    kinds = ["r", "r", "w", "rw", "rw", "+", "*", "min"] + ([] if native else ["weave", "max"])
    if not native and rng.random() < 0.25:
        kind = rng.choice(kinds)
        return (Use(kind),)
    names = rng.sample(sorted(DTYPES), rng.choice((1, 1, 1, 2, 2, 3)))
    uses: list[Use] = []
    for name in names:
        if uses and rng.random() < 0.5:
            uses[-1] = Use(uses[-1].kind, (*uses[-1].fields, name))
        else:
            uses.append(Use(rng.choice(kinds), (name,)))
    return tuple(uses)


def make_pool(seed: int, size: int) -> tuple[TaskSpec, ...]:
    rng = random.Random(seed)
    pool = []
    for k in range(size):
        native = rng.random() < 0.45
        params = tuple(_uses(rng, native) for _ in range(rng.choice((1, 1, 2, 2, 3, 4))))
        scalars = rng.choice(("", "", "", "i", "f", "if"))
        returns = rng.choice(("", "", "i", "f", "b"))
        pool.append(TaskSpec(f"t{k}", rng.getrandbits(63), params, scalars, returns, native))
    wide = tuple((Use(k, (f,)),) for k, f in zip(("r", "rw", "r", "w", "+", "r", "rw", "min"), "ijxyzijx", strict=True))
    pool.append(TaskSpec("wide", rng.getrandbits(63), wide, "iiiifffffiiiiiffff", "i"))
    pool.append(TaskSpec("wide_native", rng.getrandbits(63), wide, "iiiifffffiiiiiffff", "f", native=True))
    return tuple(pool)


POOL = make_pool(1, 90)


@functools.cache
def fitting_tasks(layouts: frozenset[tuple[str, ...]]) -> list[TaskSpec]:
    """Tasks of the pool each of whose parameters finds its fields in one of the layouts."""
    return [
        t for t in POOL if all(any({f for u in uses for f in u.fields} <= set(l) for l in layouts) for uses in t.params)
    ]


# ---- geometry of a program under construction, or under the oracle ----
class Geometry:
    """Points of roots, partitions and region references."""

    def __init__(self) -> None:
        self.roots: dict[int, Points] = {}
        self.fields: dict[int, tuple[str, ...]] = {}
        self.partitions: dict[int, Pieces] = {}
        self.partition_root: dict[int, int] = {}
        self.partition_parent: dict[int, Points] = {}

    def root_of(self, region: RegionRef) -> int:
        if region[0] == "root":
            root: int = region[1]
            return root
        return self.partition_root[region[1]] if region[0] == "child" else self.root_of(region[1])

    def points(self, region: RegionRef) -> Points:
        if region[0] == "root":
            return self.roots[region[1]]
        if region[0] == "child":
            return self.partitions[region[1]].sets[region[2]]
        return self.points(region[1]) & Points.rect(self.roots[self.root_of(region)].shape, region[2], region[3])

    def has(self, region: RegionRef) -> bool:
        if region[0] == "root":
            return region[1] in self.roots
        return region[1] in self.partitions if region[0] == "child" else self.has(region[1])

    def make_root(self, step: MakeRoot) -> None:
        self.roots[step.name] = Points.everything(step.shape)
        self.fields[step.name] = step.fields

    def drop_root(self, root: int) -> None:
        for p in [p for p, r in self.partition_root.items() if r == root]:
            del self.partitions[p], self.partition_root[p], self.partition_parent[p]
        del self.roots[root]

    def needs(self, step: MakePartition) -> bool:
        """Whether everything that the partition is made from exists."""
        ok = step.of in self.partitions if isinstance(step.of, int) else self.has(step.of)
        if step.builder in ("image", "preimage"):
            ok = ok and self.has(step.args[1])
        return ok and (step.builder != "op" or step.args[1] in self.partitions)

    def make_partition(self, step: MakePartition) -> None:
        if isinstance(step.of, int):
            parts, root = self.partitions[step.of], self.partition_root[step.of]
            parent = self.partition_parent[step.of]
            if step.builder == "ghost":
                made = sets.ghost(parent, parts, *step.args)
            elif step.builder == "op":
                made, parent = sets.combine(parts, self.partitions[step.args[1]], step.args[0]), self.roots[root]
            else:
                parent, root = self.points(step.args[1]), self.root_of(step.args[1])
                made = {"image": sets.image, "preimage": sets.preimage}[step.builder](parts, step.args[0], parent)
        else:
            parent, root = self.points(step.of), self.root_of(step.of)
            if step.builder == "by_sets":
                made = Pieces((len(step.args[0]),), tuple(Points.of(parent.shape, s) for s in step.args[0]))
            else:
                build: Callable[..., Pieces] = {
                    "block": sets.block,
                    "restrict": sets.restrict,
                    "by_color": sets.by_color,
                }[step.builder]
                made = build(parent, *step.args)
        self.partitions[step.name], self.partition_root[step.name] = made, root
        self.partition_parent[step.name] = parent

    def project(self, p: Projection, color: tuple[int, ...], edge: str) -> int | str | None:
        """Row-major color of the partition; None: skip; "error": outside."""
        colors = self.partitions[p.partition].colors
        if p.kind == "table":
            target = p.args[0][color]
        elif p.kind == "axes":
            target = tuple((0 if axis is None else color[axis]) + offset for axis, offset in p.args[0])
        else:
            target = tuple(c + o for c, o in zip(color, p.args or (0,) * len(color), strict=True))
        inside = []
        for x, n in zip(target, colors, strict=True):
            if not 0 <= x < n:
                if edge == "skip":
                    return None
                if edge == "error" or n == 0:
                    return "error"
                x = min(max(x, 0), n - 1) if edge == "clip" else x % n
            inside.append(x)
        return sets.position(colors, inside)

    def point_tasks(self, launch: Launch) -> tuple[list[tuple[int, list[RegionRef]]] | None, str | None]:
        """(row-major color, regions) of each point of a launch, or the name of the error that refuses it."""
        if launch.domain is None:
            points = [(-1, list(launch.args))]
        else:
            points = []
            for flat, color in enumerate(sets.colors_of(launch.domain)):
                regions: list[RegionRef] = []
                for arg in launch.args:
                    if not isinstance(arg, Projection):
                        regions.append(arg)
                        continue
                    target = self.project(arg, color, launch.edge)
                    if target == "error":
                        return None, "ProjectionError"
                    if target is None:
                        break
                    regions.append(("child", arg.partition, target))
                if len(regions) == len(launch.args):
                    points.append((flat, regions))
        return points, self.conflict(launch.task, points)

    def conflict(self, task: TaskSpec, points: list[tuple[int, list[RegionRef]]]) -> str | None:
        """Which errors the overlaps of a launch's arguments call for: none, one, or either of two."""
        uses = []
        for n, (_, regions) in enumerate(points):
            for arg, (region, spec) in enumerate(zip(regions, task.params, strict=True)):
                bits = self.points(region).bits
                root = self.root_of(region)
                if bits:
                    uses += [(n, arg, root, set(u.fields or self.fields[root]), u.kind, bits) for u in spec]
        found = set()
        for i, (n, arg, root, fields, kind, bits) in enumerate(uses):
            for m, other, root2, fields2, kind2, bits2 in uses[:i]:
                same = n == m and arg == other
                if same or root != root2 or not bits & bits2 or not fields & fields2:
                    continue
                if kind == kind2 and kind not in ("w", "rw"):
                    continue
                found.add("AliasError" if n == m else "InterferenceError")
        return " or ".join(sorted(found)) or None


# ---- the generator ----
class Generator:
    """Makes one random program from a seed. ``failures``: some bodies raise. ``loops``: some launches repeat, for traces."""

    def __init__(
        self,
        seed: int,
        max_launches: int = 40,
        failures: bool = False,
        small: bool = False,
        loops: bool = False,
        blocking: bool = True,
    ) -> None:
        self.rng = random.Random(seed)
        self.geometry = Geometry()
        self.steps: list[Step] = []
        self.maps: dict[int, Launch] = {}  # launches with futures
        self.singles: dict[int, tuple[str, bool]] = {}  # steps that make one future: kind, may be None
        self.failures, self.small, self.loops = failures, small, loops
        self.blocking = blocking and not failures  # whether the program waits for data on its way
        self.twin: dict[int, int] = {}  # roots and partitions that are alike, both ways
        self.count = 0
        self.launches = 0
        self.max_launches = max_launches

    def fresh(self) -> int:
        self.count += 1
        return self.count

    def program(self) -> Program:
        rng = self.rng
        for _ in range(rng.choice((1, 1, 2, 2, 3))):
            self.add_root()
        if self.loops and rng.random() < 0.6:
            self.add_root(like=rng.choice(sorted(self.geometry.roots)))
        for _ in range(rng.randint(1, 5)):
            self.add_partition()
        if self.loops:
            for _ in range(rng.choice((1, 1, 2))):
                self.add_loop()
        target = min(self.max_launches, self.launches + rng.choice((2, 4, 7, 7, 10, 12, 16, self.max_launches)))
        for _ in range(8 * target):
            if self.launches >= target:
                break
            self.add_step()
        return tuple(self.steps)

    def add_step(self) -> None:
        roll = self.rng.random()
        if roll < 0.08:
            self.add_partition()
        elif roll < 0.68:
            self.add_map()
        elif roll < 0.82:
            self.add_single()
        elif roll < 0.88:
            self.add_fill()
        elif roll < 0.94:
            if self.blocking:
                self.add_host()
        elif roll < 0.97:
            self.add_future_step()
        elif roll < 0.98:
            if self.blocking:
                self.steps.append(Fence())
        elif roll < 0.99 and len(self.geometry.roots) > 1:
            root = self.rng.choice(sorted(self.geometry.roots))
            self.geometry.drop_root(root)
            self.twin.clear()
            self.steps.append(DropRoot(root))
            self.add_root()

    # loops
    def add_loop(self) -> None:
        """A few launches, many times; with twin roots, on one and the other in turn."""
        rng = self.rng
        start, before = len(self.steps), self.launches
        wanted = before + rng.randint(1, 4)
        for _ in range(30):
            if self.launches >= wanted:
                break
            kinds = [self.add_map, self.add_single, self.add_fill] if rng.random() < 0.5 else [self.add_map]
            rng.choice(kinds)()
        body = [s for s in self.steps[start:] if isinstance(s, (Launch, Fill, FoldFutures))]
        turns = bool(self.twin) and rng.random() < 0.6
        trace = f"loop {self.fresh()}" if rng.random() < 0.3 else None
        if trace:
            self.steps[start:] = [s for s in self.steps[start:] if s not in body]
            self.steps += [Mark(trace, True), *body, Mark(trace, False)]
        for k in range(1, rng.randint(3, 9)):
            rename: dict[int, int] = {}
            copy = [self.renamed(s, rename, self.twin if turns and k % 2 else {}) for s in body]
            self.steps += [Mark(trace, True), *copy, Mark(trace, False)] if trace else copy
            if self.blocking and rng.random() < 0.1:
                self.steps.append(Fence())

    def renamed(self, step: Any, futures: dict[int, int], twin: dict[int, int]) -> Any:
        """The step once more: with a new name, futures of this pass, and roots replaced by their twins."""

        def scalar(s: Any) -> Any:
            return ("future", futures.get(s[1], s[1]), s[2]) if isinstance(s, tuple) else s

        if isinstance(step, Fill):
            return replace(step, region=swapped(step.region, twin))
        futures[step.name] = name = self.fresh()
        if isinstance(step, FoldFutures):
            return replace(step, name=name, launch=futures.get(step.launch, step.launch))
        args = tuple(
            replace(a, partition=twin.get(a.partition, a.partition)) if isinstance(a, Projection) else swapped(a, twin)
            for a in step.args
        )
        made = replace(step, name=name, args=args, scalars=tuple(map(scalar, step.scalars)), when=scalar(step.when))
        if not made.task.returns or self.geometry.point_tasks(made)[1]:
            return made
        if made.domain is None:
            self.singles[name] = (made.task.returns, False)
        else:
            self.maps[name] = made
        return made

    # regions
    def add_root(self, like: int | None = None) -> None:
        rng = self.rng
        dims = rng.choice((1, 1, 1, 2, 2, 3))
        top = {1: 14 if self.small else 40, 2: 4 if self.small else 7, 3: 3 if self.small else 4}[dims]
        shape = tuple(rng.randint(1, top) for _ in range(dims))
        if rng.random() < 0.02:
            shape = (0,) * dims
        step = MakeRoot(self.fresh(), shape, rng.choice(FIELD_SETS))
        if like is not None:
            step = replace(step, shape=self.geometry.roots[like].shape, fields=self.geometry.fields[like])
            self.twin.update({like: step.name, step.name: like})
        self.geometry.make_root(step)
        self.steps.append(step)
        for field in step.fields:
            if self.blocking and rng.random() < 0.8:
                self.steps.append(Host(("root", step.name), field, "w", rng.getrandbits(60)))

    def any_region(self, root: int | None = None) -> RegionRef:
        rng, g = self.rng, self.geometry
        root = rng.choice(sorted(g.roots)) if root is None else root
        parts = [p for p, r in g.partition_root.items() if r == root and g.partitions[p].sets]
        region: RegionRef = ("root", root)
        if parts and rng.random() < 0.75:
            part = rng.choice(parts)
            region = ("child", part, rng.randrange(len(g.partitions[part].sets)))
        if rng.random() < 0.2:
            lo, hi = g.points(region).bounds
            cut = [sorted((rng.randint(l, h), rng.randint(l, h))) for l, h in zip(lo, hi, strict=True)]
            region = ("rect", region, tuple(c[0] for c in cut), tuple(c[1] for c in cut))
        return region

    def colors(self, dims: int) -> tuple[int, ...]:
        top = {1: 6, 2: 3, 3: 2}[dims]
        return tuple(self.rng.randint(0 if self.rng.random() < 0.04 else 1, top) for _ in range(dims))

    def pointer(self, size: int, into: int) -> tuple[int, ...]:
        return tuple(self.rng.randint(-1, into - 1) for _ in range(size))

    def add_partition(self) -> None:
        rng, g = self.rng, self.geometry
        builder = rng.choice(
            ("block", "block", "block", "restrict", "ghost", "ghost", "by_color", "by_sets", "image", "preimage", "op")
        )
        parent = self.any_region()
        points = g.points(parent)
        dims = len(points.shape)
        of: Any = parent
        args: tuple[Any, ...]
        if builder == "block":
            args = (self.colors(dims if points.dense else 1),)
        elif builder == "restrict":
            colors = self.colors(rng.randint(1, min(dims, 3)))
            matrix = tuple(tuple(rng.randint(-1, 3) for _ in colors) for _ in range(dims))
            args = (
                colors,
                matrix,
                tuple(rng.randint(0, 5) for _ in range(dims)),
                tuple(rng.randint(-1, 3) for _ in range(dims)),
            )
        elif builder == "by_color":
            top = rng.randint(0, 4)
            args = (tuple(rng.randint(-1 if rng.random() < 0.3 else 0, top) for _ in range(points.volume)),)
        elif builder == "by_sets":
            ids = points.ids.tolist()
            args = (tuple(tuple(sorted(rng.sample(ids, rng.randint(0, len(ids))))) for _ in range(rng.randint(1, 5))),)
        else:
            if not g.partitions:
                return
            of = rng.choice(sorted(g.partitions))
            if builder == "ghost":
                args = (
                    tuple(rng.randint(0, 2) for _ in g.partition_parent[of].shape),
                    rng.random() < 0.4,
                    rng.random() < 0.6,
                )
            elif builder == "op":
                mates = [
                    q for q, r in g.partition_root.items()
                    if r == g.partition_root[of] and g.partitions[q].colors == g.partitions[of].colors
                ]  # fmt: skip
                args = (rng.choice("|&-"), rng.choice(mates))
            else:
                over = self.any_region()
                here, there = math.prod(g.partition_parent[of].shape), math.prod(g.points(over).shape)
                args = (self.pointer(here, there) if builder == "image" else self.pointer(there, here), over)
        step = MakePartition(self.fresh(), builder, of, args)
        g.make_partition(step)
        self.steps.append(step)
        if g.partition_root[step.name] in self.twin:
            if builder == "op":
                args = (args[0], self.twin.get(args[1], args[1]))
            elif builder in ("image", "preimage"):
                args = (args[0], swapped(args[1], self.twin))
            over = self.twin.get(of, of) if isinstance(of, int) else swapped(of, self.twin)
            copy = MakePartition(self.fresh(), builder, over, args)
            g.make_partition(copy)
            self.steps.append(copy)
            self.twin.update({step.name: copy.name, copy.name: step.name})

    # launches
    def tasks(self) -> list[TaskSpec]:
        """Those of the pool that find their fields in some root."""
        return fitting_tasks(frozenset(self.geometry.fields[r] for r in self.geometry.roots))

    def add_map(self) -> None:
        rng, g = self.rng, self.geometry
        if not g.partitions:
            return self.add_partition()
        for _ in range(8):
            base = g.partitions[rng.choice(sorted(g.partitions))]
            domain = base.colors if rng.random() < 0.9 else self.colors(rng.randint(1, 2))
            task = rng.choice(self.tasks())
            args = [self.map_argument(uses, domain) for uses in task.params]
            if None not in args and self.accept(task, domain, tuple(args)):
                return None
        return None

    def map_argument(self, uses: tuple[Use, ...], domain: tuple[int, ...]) -> Any:
        rng, g = self.rng, self.geometry
        needed = {f for u in uses for f in u.fields}
        fitting = [r for r in g.roots if needed <= set(g.fields[r])]
        if not fitting:
            return None
        root = rng.choice(fitting)
        parts = [p for p, r in g.partition_root.items() if r == root]
        writes = any(u.kind in ("w", "rw") for u in uses)
        if writes and rng.random() < 0.9:
            parts = [p for p in parts if g.partitions[p].disjoint and g.partitions[p].colors == domain]
            return Projection(rng.choice(parts), "shift") if parts else None
        if not parts or rng.random() < (0.02 if writes else 0.1):
            return self.any_region(root)
        return self.projection(rng.choice(parts), domain)

    def projection(self, part: int, domain: tuple[int, ...]) -> Projection:
        rng = self.rng
        colors = self.geometry.partitions[part].colors
        if len(colors) == len(domain) and rng.random() < 0.75:
            shifted = rng.random() < 0.4
            return Projection(part, "shift", tuple(rng.randint(-1, 1) for _ in colors) if shifted else ())
        if len(colors) > 1 and rng.random() < 0.6:
            axes = [(rng.randrange(len(domain)) if rng.random() < 0.7 else None) for _ in colors]
            if any(a is not None for a in axes) and all(colors):
                offsets = [
                    rng.randint(-1, 1) if a is not None else rng.randrange(n) for a, n in zip(axes, colors, strict=True)
                ]
                return Projection(part, "axes", (tuple(zip(axes, offsets, strict=True)),))
        stray = 1 if rng.random() < 0.1 else 0
        table = {c: tuple(rng.randint(-stray, max(n - 1 + stray, 0)) for n in colors) for c in sets.colors_of(domain)}
        return Projection(part, "table", (table,))

    def add_single(self) -> None:
        for _ in range(8):
            task = self.rng.choice(self.tasks())
            args = []
            for uses in task.params:
                needed = {f for u in uses for f in u.fields}
                fitting = [r for r in self.geometry.roots if needed <= set(self.geometry.fields[r])]
                args.append(self.any_region(self.rng.choice(fitting)) if fitting else None)
            if None not in args and self.accept(task, None, tuple(args)):
                return

    def accept(self, task: TaskSpec, domain: tuple[int, ...] | None, args: tuple[Any, ...]) -> bool:
        """Adds the launch, unless it would be refused (a few refused ones are kept)."""
        rng = self.rng
        edge = rng.choice(("skip", "clip", "wrap", "wrap")) if domain is not None else "error"
        launch = Launch(0, task, domain, args, edge=edge)
        points, refused = self.geometry.point_tasks(launch)
        if refused and rng.random() < 0.95:
            return False
        if (
            domain is not None
            and rng.random() < 0.3
            and self.geometry.point_tasks(replace(launch, edge="error"))[1] == refused
        ):
            launch = replace(launch, edge="error")
        scalars = tuple(self.scalar(kind, task.native) for kind in task.scalars)
        when = self.future(("i", "b", "f"), none=True) if domain is not None and rng.random() < 0.12 else None
        fails = 0
        if self.failures and not task.native and rng.random() < 0.15:
            fails = 1 << rng.randrange(max(math.prod(domain), 1) if domain else 1)
        name = self.fresh()
        launch = replace(launch, name=name, scalars=scalars, when=when, fails=fails)
        self.steps.append(launch)
        self.launches += 1
        if task.returns and not refused:
            if domain is None:
                self.singles[name] = (task.returns, False)
            else:
                self.maps[name] = launch
        return True

    # futures
    def future(self, kinds: tuple[str, ...], none: bool) -> Any:
        """A reference to some future of one of these kinds; with ``none``, also one that may hold None."""
        options = [n for n, (k, maybe) in self.singles.items() if k in kinds and (none or not maybe)]
        options += [n for n, m in self.maps.items() if m.task.returns in kinds and (none or m.when is None)]
        if not options:
            return None
        name = self.rng.choice(options)
        if name in self.singles:
            return ("future", name, None)
        points = self.geometry_points(self.maps[name])
        return ("future", name, self.rng.choice(points)) if points else None

    def geometry_points(self, launch: Launch) -> list[int]:
        """Colors at which an accepted launch ran; none if its partitions are gone."""
        live = [a for a in launch.args if not isinstance(a, Projection) or a.partition in self.geometry.partitions]
        if len(live) < len(launch.args) or not all(self.geometry.has(a) for a in live if not isinstance(a, Projection)):
            return []
        return [flat for flat, _ in self.geometry.point_tasks(launch)[0] or []]

    def scalar(self, kind: str, native: bool) -> Any:
        rng = self.rng
        if rng.random() < 0.35:
            found = self.future(("i", "b") if kind == "i" else ("f",), none=not native)
            if found:
                return found
        return rng.getrandbits(40) if kind == "i" else rng.random()

    def add_future_step(self) -> None:
        rng = self.rng
        whole = [n for n, launch in self.maps.items() if launch.when is None]
        launch = rng.choice(whole) if whole and rng.random() < 0.7 else None
        if launch is not None and self.geometry_points(self.maps[launch]):
            kind = self.maps[launch].task.returns
            step = FoldFutures(self.fresh(), launch, rng.choice(("+", "min", "max") + (("*",) if kind == "f" else ())))
            self.steps.append(step)
            self.singles[step.name] = (
                "f" if kind == "f" else "wide",
                False,
            )  # sums may exceed 64 bits: Python scalars only
        elif self.blocking and (future := self.future(("i", "b", "f", "wide"), none=True)):
            self.steps.append(Get(future))

    # data from outside tasks
    def region_and_field(self) -> tuple[RegionRef, str]:
        region = self.any_region()
        return region, self.rng.choice(self.geometry.fields[self.geometry.root_of(region)])

    def add_fill(self) -> None:
        region, field = self.region_and_field()
        self.steps.append(
            Fill(region, field, self.rng.randint(-99, 99) if DTYPES[field][0] == "i8" else self.rng.random() + 0.5)
        )

    def add_host(self) -> None:
        region, field = self.region_and_field()
        self.steps.append(Host(region, field, self.rng.choice(("r", "r", "w", "rw")), self.rng.getrandbits(60)))


def swapped(region: Any, twin: dict[int, int]) -> Any:
    """A region on the twin of its root; anything else as it is."""
    if not isinstance(region, tuple) or not region or region[0] not in ("root", "child", "rect"):
        return region
    if region[0] == "rect":
        return ("rect", swapped(region[1], twin), *region[2:])
    return (region[0], twin.get(region[1], region[1]), *region[2:])


def generate(seed: int, **options: Any) -> Program:
    return Generator(seed, **options).program()


# ---- leaving out steps ----
def without_orphans(program: Program) -> Program:
    """The steps whose roots, partitions and futures exist."""
    g, futures, kept = Geometry(), set(), []

    def live(ref: Any) -> bool:
        if isinstance(ref, Projection):
            return ref.partition in g.partitions
        return ref[1] in futures if ref[0] == "future" else g.has(ref)

    for step in program:
        if isinstance(step, MakeRoot):
            g.make_root(step)
        elif isinstance(step, DropRoot):
            if step.root not in g.roots:
                continue
            g.drop_root(step.root)
        elif isinstance(step, MakePartition):
            if not g.needs(step):
                continue
            g.make_partition(step)
        elif isinstance(step, Launch):
            refs = [*step.args, *(s for s in step.scalars if isinstance(s, tuple)), *([step.when] if step.when else [])]
            if not all(map(live, refs)):
                continue
            if step.task.returns and not g.point_tasks(step)[1]:
                futures.add(step.name)
        elif isinstance(step, FoldFutures):
            if step.launch not in futures:
                continue
            futures.add(step.name)
        elif isinstance(step, (Fill, Host)):
            if not g.has(step.region):
                continue
        elif isinstance(step, Get) and not live(step.future):
            continue
        kept.append(step)
    return tuple(kept)


def shrunk(program: Program, fails: Callable[[Program], bool]) -> Program:
    """A smaller program for which ``fails`` still holds."""

    def shorter(p: Program) -> Iterator[Program]:
        size = len(p) // 2
        while size:
            for at in range(len(p) - size, -1, -size):
                yield without_orphans(p[:at] + p[at + size :])
            size //= 2

    while True:
        for smaller in shorter(program):
            if len(smaller) < len(program) and fails(smaller):
                program = smaller
                break
        else:
            return program
