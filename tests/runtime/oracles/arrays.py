"""Plain NumPy versions of the array examples: channel flow, conjugate gradients, Jacobi, shallow water.

Written with padding and explicit shifts instead of the slices and helper functions of the examples, so that a wrong
index on one side shows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass
class Flow:
    """Velocity (u, v) and pressure p on a (ny, nx) grid; row 0 and row ny-1 are the walls, columns are periodic."""

    u: Array
    v: Array
    p: Array


def channel_flow(
    start: Flow,
    steps: int,
    *,
    length: float = 2.0,
    height: float = 2.0,
    rho: float = 1.0,
    nu: float = 0.1,
    force: float = 1.0,
    dt: float = 0.01,
    iterations: int = 50,
) -> Flow:
    """Incompressible Navier-Stokes in a periodic channel driven by a body force.

    Explicit Euler, upwind convection, central diffusion, pressure Poisson equation by Jacobi sweeps; cells of
    ``length / nx`` by ``height / (ny - 1)``.
    """
    u, v, p = start.u, start.v, start.p
    ny, nx = u.shape
    dx, dy = length / nx, height / (ny - 1)
    rows = slice(1, -1)

    def at(f: Array, di: int, dj: int) -> Array:
        """Interior rows of ``f`` shifted by ``di`` rows and ``dj`` (periodic) columns."""
        return np.roll(np.roll(f, -di, axis=0), -dj, axis=1)[rows]

    for _ in range(steps):
        ux, uy = (at(u, 0, 1) - at(u, 0, -1)) / (2 * dx), (at(u, 1, 0) - at(u, -1, 0)) / (2 * dy)
        vx, vy = (at(v, 0, 1) - at(v, 0, -1)) / (2 * dx), (at(v, 1, 0) - at(v, -1, 0)) / (2 * dy)
        b = rho * ((ux + vy) / dt - ux**2 - 2 * uy * vx - vy**2)
        for _ in range(iterations):
            new = p.copy()
            new[rows] = (
                (at(p, 0, 1) + at(p, 0, -1)) * dy**2 + (at(p, 1, 0) + at(p, -1, 0)) * dx**2 - b * dx**2 * dy**2
            ) / (2 * (dx**2 + dy**2))
            new[0], new[-1] = new[1], new[-2]
            p = new
        px, py = (at(p, 0, 1) - at(p, 0, -1)) / (2 * dx), (at(p, 1, 0) - at(p, -1, 0)) / (2 * dy)
        un, vn = np.zeros_like(u), np.zeros_like(v)
        for f, new, gradient, source in ((u, un, px, force), (v, vn, py, 0.0)):
            c = f[rows]
            convection = u[rows] * (c - at(f, 0, -1)) / dx + v[rows] * (c - at(f, -1, 0)) / dy
            diffusion = (at(f, 0, 1) - 2 * c + at(f, 0, -1)) / dx**2 + (at(f, 1, 0) - 2 * c + at(f, -1, 0)) / dy**2
            new[rows] = c + dt * (-convection - gradient / rho + nu * diffusion + source)
        u, v = un, vn
    return Flow(u, v, p)


def poiseuille(ny: int, height: float, nu: float, force: float) -> Array:
    """Steady velocity profile of the driven channel, (ny,): ``force / (2 nu) y (height - y)``."""
    y = np.linspace(0.0, height, ny)
    return force / (2 * nu) * y * (height - y)


def laplacian_matrix(n: int) -> Array:
    """Dense five-point operator (4 on the diagonal, -1 for neighbours, Dirichlet border) on an n x n grid."""
    line = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    return np.kron(line, np.eye(n)) + np.kron(np.eye(n), line)


def conjugate_gradients(matrix: Array, b: Array, iterations: int) -> Array:
    """``iterations`` steps from 0 for a symmetric positive definite matrix."""
    x, r = np.zeros_like(b), b.copy()
    p, rr = r.copy(), float(b @ b)
    for _ in range(iterations):
        q = matrix @ p
        alpha = rr / float(p @ q)
        x, r = x + alpha * p, r - alpha * q
        rr, old = float(r @ r), rr
        p = r + (rr / old) * p
    return x


def jacobi(matrix: Array, b: Array, iterations: int) -> Array:
    """``iterations`` sweeps of ``x = (b - R x) / d`` from 0, with d the diagonal of ``matrix`` and R the rest."""
    d = np.diag(matrix)
    x = np.zeros_like(b)
    for _ in range(iterations):
        x = x + (b - matrix @ x) / d
    return x


@dataclass
class Water:
    """Layer depth h and momenta hu, hv on a doubly periodic (n, n) grid."""

    h: Array
    hu: Array
    hv: Array


def shallow_water(start: Water, steps: int, dx: float, dt: float, gravity: float = 1.0) -> Water:
    """Conservative shallow-water equations, Rusanov fluxes, Heun's two-stage Runge-Kutta."""

    def rate(q: Array) -> Array:
        out = np.zeros_like(q)
        for axis in (0, 1):
            h = q[0]
            normal = q[1 + axis] / h
            flux = q * normal
            flux[1 + axis] += gravity * h**2 / 2
            speed = np.abs(normal) + np.sqrt(gravity * h)
            right, flux_right = np.roll(q, -1, axis=1 + axis), np.roll(flux, -1, axis=1 + axis)
            face = (flux + flux_right) / 2 - np.maximum(speed, np.roll(speed, -1, axis=axis)) * (right - q) / 2
            out -= (face - np.roll(face, 1, axis=1 + axis)) / dx
        return out

    q = np.stack([start.h, start.hu, start.hv])
    for _ in range(steps):
        first = q + dt * rate(q)
        q = (q + first + dt * rate(first)) / 2
    return Water(*q)
