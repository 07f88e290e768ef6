"""Index-space algebra and partition builders against the best NumPy formulation we know of, same input, same run.

One JSON line per measurement: name, points, the CPU seconds of burnish and of each NumPy form (least of several
repetitions, all threads counted), and ratio = fastest NumPy form / burnish.

    python benchmarks/runtime_partitions.py --points 1000000 --out figures.jsonl
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from burnish import _native

isp = _native.ispace
Run = Callable[[], object]


@dataclass(frozen=True)
class Case:
    name: str
    burnish: Run
    numpy: dict[str, Run]


def random_pointers(n: int, reach: int, random: np.random.Generator) -> np.ndarray:
    """Pointers near their own position, as meshes and circuits have them; int64 of shape (n,)."""
    return np.clip(np.arange(n) + random.integers(-reach, reach + 1, n), 0, n - 1)


def image_cases(n: int, random: np.random.Generator) -> Iterator[Case]:
    line = isp.rect([0], [n], [0], [n])
    for colors in (16, 1024):
        edges = [c * n // colors for c in range(colors + 1)]
        pieces = isp.block(line, [colors])[0]
        for kind, pointer in (("random", random.integers(0, n, n)), ("local", random_pointers(n, 1000, random))):

            def unique(pointer: np.ndarray = pointer, edges: list[int] = edges) -> object:
                return [np.unique(pointer[a:b]) for a, b in itertools.pairwise(edges)]

            def mask(pointer: np.ndarray = pointer, edges: list[int] = edges) -> object:
                found = []
                for a, b in itertools.pairwise(edges):
                    part = pointer[a:b]
                    low = part.min()
                    bits = np.zeros(part.max() - low + 1, dtype=bool)
                    bits[part - low] = True
                    found.append(np.flatnonzero(bits) + low)
                return found

            def sort_by_owner(pointer: np.ndarray = pointer, edges: list[int] = edges, colors: int = colors) -> object:
                owner = np.repeat(np.arange(colors), np.diff(edges))[pointer]
                return np.split(np.argsort(owner, kind="stable"), np.cumsum(np.bincount(owner, minlength=colors))[:-1])

            yield Case(
                f"image {kind} {colors}",
                lambda p=pieces, q=pointer: isp.image(p, q, line),
                {"unique": unique, "mask": mask},
            )
            yield Case(
                f"preimage {kind} {colors}",
                lambda p=pieces, q=pointer: isp.preimage(p, q, line),
                {"owner+argsort": sort_by_owner},
            )


def by_color_cases(n: int, random: np.random.Generator) -> Iterator[Case]:
    line = isp.rect([0], [n], [0], [n])
    for colors in (16, 1024):
        for run in (1, 100):
            color = np.repeat(random.integers(0, colors, n // run), run)
            color = np.append(color, np.zeros(n - color.size, dtype=color.dtype))

            def argsort(color: np.ndarray = color, colors: int = colors) -> object:
                return np.split(np.argsort(color, kind="stable"), np.cumsum(np.bincount(color, minlength=colors))[:-1])

            def narrow(color: np.ndarray = color, colors: int = colors) -> object:  # 16-bit keys get NumPy's radix sort
                order = np.argsort(color.astype(np.uint16), kind="stable")
                return np.split(order, np.cumsum(np.bincount(color, minlength=colors))[:-1])

            yield Case(
                f"by_color run {run} {colors}",
                lambda c=color, k=colors: isp.by_color(line, c, k),
                {"argsort": argsort, "argsort16": narrow},
            )


def algebra_cases(n: int, random: np.random.Generator) -> Iterator[Case]:
    for share, label in ((0.5, "half"), (0.05, "sparse")):
        x, y = (np.flatnonzero(random.random(n) < share) for _ in range(2))
        a, b = (isp.points([0], [n], v) for v in (x, y))
        p, q = (np.isin(np.arange(n), v) for v in (x, y))
        yield Case(
            f"points {label}",
            lambda v=random.permutation(x): isp.points([0], [n], v),
            {"unique": lambda v=random.permutation(x): np.unique(v)},
        )
        yield Case(f"intersection {label}", lambda a=a, b=b: isp.intersection(a, b),
                   {"intersect1d": lambda x=x, y=y: np.intersect1d(x, y, assume_unique=True), "mask": lambda p=p, q=q: np.flatnonzero(p & q)})  # fmt: skip
        yield Case(f"difference {label}", lambda a=a, b=b: isp.difference(a, b),
                   {"setdiff1d": lambda x=x, y=y: np.setdiff1d(x, y, assume_unique=True), "mask": lambda p=p, q=q: np.flatnonzero(p & ~q)})  # fmt: skip
        yield Case(f"unite {label}", lambda a=a, b=b: isp.unite(a, b),
                   {"union1d": lambda x=x, y=y: np.union1d(x, y), "mask": lambda p=p, q=q: np.flatnonzero(p | q)})  # fmt: skip
        yield Case(
            f"overlap_volume {label}",
            lambda a=a, b=b: isp.overlap_volume(a, b),
            {"mask": lambda p=p, q=q: np.count_nonzero(p & q)},
        )


def least_cpu(run: Run, repetitions: int) -> float:
    best = float("inf")
    for _ in range(repetitions):
        start = time.process_time()
        result = run()
        best = min(best, time.process_time() - start)
        del result
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--only", default="", help="run the cases whose name contains this")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=argparse.FileType("w"), default=sys.stdout)
    args = parser.parse_args()
    for cases in (image_cases, by_color_cases, algebra_cases):
        for case in cases(args.points, np.random.default_rng(args.seed)):
            if args.only not in case.name:
                continue
            ours = least_cpu(case.burnish, args.repetitions)
            theirs = {name: least_cpu(run, args.repetitions) for name, run in case.numpy.items()}
            line = {"name": case.name, "points": args.points, "burnish_s": ours}
            line |= {f"{name}_s": t for name, t in theirs.items()} | {"ratio": min(theirs.values()) / ours}
            print(
                json.dumps({k: round(v, 6) if isinstance(v, float) else v for k, v in line.items()}),
                file=args.out,
                flush=True,
            )


if __name__ == "__main__":
    main()
