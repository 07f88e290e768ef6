"""2-D star stencil over a square, as tasks over tiles.

    burnish run examples/stencil.py --n 2000 --tiles 4 --iterations 50 --workers 2

Each iteration launches two index launches: ``apply`` reads a tile and its halo and adds the stencil to the output
tile; ``increment`` adds one to the input. The input starts as ``i + j`` and the weights along each axis are
``+-1 / (2 k radius)``, so every interior point gains exactly 2 per iteration: the program checks its own answer.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from burnish import runtime as rt
from burnish.runtime import Read, ReadWrite, each, task

TOLERANCE = 1e-8


@task
def apply(out: ReadWrite, halo: Read, radius: int):
    """``out += stencil(halo)``, where ``halo`` is ``out``'s tile of the input, wider by ``radius`` on every side."""
    height, width = out.shape
    rows, columns = slice(radius, radius + height), slice(radius, radius + width)
    for k in range(1, radius + 1):
        weight = 1.0 / (2 * k * radius)
        out += weight * (
            halo[radius + k : radius + k + height, columns] - halo[radius - k : radius - k + height, columns]
        )
        out += weight * (halo[rows, radius + k : radius + k + width] - halo[rows, radius - k : radius - k + width])


@task
def increment(grid: ReadWrite):
    grid += 1.0


@task
def deviation(out: Read, expected: float) -> float:
    """Largest relative distance of a tile from the exact answer (0 for an empty tile)."""
    return float(np.abs(out / expected - 1.0).max(initial=0.0))


def run(n: int, tiles: int, iterations: int, radius: int = 2) -> tuple[rt.Region, float]:
    """Return the output region, shape (n, n), and the largest relative deviation of its interior from the answer."""
    grid, out = rt.region((n, n), "f8", name="grid"), rt.region((n, n), "f8", name="out", fill=0.0)
    with grid.host("w") as a:
        i, j = np.ogrid[:n, :n]
        a[:] = i + j
    colors, inside = (tiles, tiles), n - 2 * radius
    side = -(-inside // tiles)
    step = np.diag([side, side])
    interior = rt.restrict(out[radius : n - radius, radius : n - radius], colors, step, (side, side), offset=radius)
    halo = rt.restrict(grid, colors, step, (side + 2 * radius, side + 2 * radius))
    whole = rt.block(grid, colors)
    for _ in range(iterations):
        apply.map(colors, interior[each], halo[each], radius)
        increment.map(colors, whole[each])
    worst = deviation.map(colors, interior[each], 2.0 * iterations).reduce("max").get()
    return out, worst


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=200, help="points along one side of the square")
    parser.add_argument("--tiles", type=int, default=2, help="tiles along one side")
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--radius", type=int, default=2)
    options = parser.parse_args()
    if options.n <= 2 * options.radius or min(options.tiles, options.iterations, options.radius) < 1:
        parser.error("--n must exceed twice --radius; --tiles, --iterations and --radius must be at least 1")
    _, worst = run(options.n, options.tiles, options.iterations, options.radius)
    print(f"{options.iterations} iterations on {options.n}^2 points: largest relative deviation {worst:.1e}")
    return 0 if worst <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
