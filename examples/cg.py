"""Conjugate gradients on the five-point Laplacian of a square, in plain array code.

    burnish run examples/cg.py --n 256

The matrix is never formed: ``laplacian`` applies it with shifted views. Step lengths stay 0-d arrays, so the program
only waits where it reads the residual (every ``--check-every`` iterations).
"""

from __future__ import annotations

import argparse

import burnish.runtime.array as bn


def laplacian(p):
    """Apply the operator with 4 on the diagonal and -1 for each of the four neighbours (zero outside the square)."""
    q = 4.0 * p
    q[1:, :] -= p[:-1, :]
    q[:-1, :] -= p[1:, :]
    q[:, 1:] -= p[:, :-1]
    q[:, :-1] -= p[:, 1:]
    return q


def inner_product(a, b):
    return (a * b).sum()


def solve(b, tolerance=1e-10, limit=10_000, check_every=1):
    """Return (x, iterations, residual norm relative to that of ``b``)."""
    x, r, p = bn.zeros_like(b), b.copy(), b.copy()
    rr = inner_product(r, r)
    start = float(rr)
    reached = start
    for k in range(1, limit + 1):
        q = laplacian(p)
        alpha = rr / inner_product(p, q)
        x = x + alpha * p
        r = r - alpha * q
        rr, before = inner_product(r, r), rr
        if k % check_every == 0:
            reached = float(rr)
            if reached <= tolerance**2 * start:
                return x, k, (reached / start) ** 0.5
        p = r + (rr / before) * p
    return x, limit, (reached / start) ** 0.5


def use_numpy():
    """Let every function above work on NumPy arrays."""
    global bn
    import numpy as bn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=64, help="points along one side of the square")
    parser.add_argument("--tolerance", type=float, default=1e-10, help="relative residual")
    parser.add_argument("--limit", type=int, default=10_000, help="most iterations")
    parser.add_argument("--check-every", type=int, default=1, help="read the residual every N iterations")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--numpy", action="store_true", help="run the same code on NumPy, for comparison")
    options = parser.parse_args()
    if options.numpy:
        use_numpy()
    b = bn.random.default_rng(options.seed).random((options.n, options.n))
    x, iterations, residual = solve(b, options.tolerance, options.limit, options.check_every)
    true_residual = float(bn.abs(b - laplacian(x)).max())
    print(f"{iterations} iterations, relative residual {residual:.2e}, largest |b - A x| {true_residual:.2e}")


if __name__ == "__main__":
    main()
