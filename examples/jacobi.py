"""Jacobi iteration ``x = (b - R @ x) / d`` on a dense, diagonally dominant system, in plain array code.

    burnish run examples/jacobi.py --n 1000 --iterations 200

Each iteration makes new arrays, so the buffers behind the name ``x`` change all the time; the runtime still finds
that three operations repeat.
"""

from __future__ import annotations

import argparse

import burnish.runtime.array as bn


def dominant_system(n, seed):
    """Random off-diagonal part R >= 0, its diagonal d (1.25 times the row sums) and a right-hand side b."""
    rng = bn.random.default_rng(seed)
    off_diagonal = rng.random((n, n)) * (1.0 - bn.eye(n))
    return off_diagonal, 1.25 * off_diagonal.sum(axis=1), rng.random(n)


def iterate(off_diagonal, d, b, iterations):
    x = bn.zeros_like(b)
    for _ in range(iterations):
        x = (b - off_diagonal @ x) / d
    return x


def use_numpy():
    """Let every function above work on NumPy arrays."""
    global bn
    import numpy as bn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=200, help="unknowns")
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--numpy", action="store_true", help="run the same code on NumPy, for comparison")
    options = parser.parse_args()
    if options.numpy:
        use_numpy()
    off_diagonal, d, b = dominant_system(options.n, options.seed)
    x = iterate(off_diagonal, d, b, options.iterations)
    residual = float(bn.abs(b - off_diagonal @ x - d * x).max())
    print(f"largest |b - A x| {residual:.2e} after {options.iterations} iterations")


if __name__ == "__main__":
    main()
