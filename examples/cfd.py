"""Channel flow: incompressible Navier-Stokes between two walls, driven by a body force, in plain array code.

    burnish run examples/cfd.py --nx 128 --ny 128 --steps 100

Every function below is written as one would with NumPy and knows nothing of tasks; the runtime overlaps the
operations and finds that one time step is the unit that repeats. Arrays have shape (ny, nx + 2): rows run from wall
to wall, the first and last column are halo columns that repeat the other end (the channel is periodic in x).

Method: explicit Euler in time, first-order upwind convection, central diffusion, and Jacobi sweeps on the pressure
Poisson equation whose source makes the next velocity free of divergence.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import burnish.runtime.array as bn


@dataclass(frozen=True)
class Channel:
    """Geometry and physics; SI units throughout."""

    nx: int = 64
    ny: int = 65
    length: float = 2.0
    height: float = 2.0
    density: float = 1.0
    viscosity: float = 0.1
    force: float = 1.0
    dt: float = 0.001
    sweeps: int = 10

    @property
    def dx(self) -> float:
        return self.length / self.nx

    @property
    def dy(self) -> float:
        return self.height / (self.ny - 1)


def inner(f):
    return f[1:-1, 1:-1]


def east(f):
    return f[1:-1, 2:]


def west(f):
    return f[1:-1, :-2]


def north(f):
    return f[2:, 1:-1]


def south(f):
    return f[:-2, 1:-1]


def ddx(f, dx):
    return (east(f) - west(f)) / (2 * dx)


def ddy(f, dy):
    return (north(f) - south(f)) / (2 * dy)


def laplacian(f, dx, dy):
    return (east(f) - 2 * inner(f) + west(f)) / dx**2 + (north(f) - 2 * inner(f) + south(f)) / dy**2


def upwind(f, u, v, dx, dy):
    """Convection of ``f`` by a flow that does not run backwards."""
    return inner(u) * (inner(f) - west(f)) / dx + inner(v) * (inner(f) - south(f)) / dy


def close_ends(f):
    """Refresh the halo columns."""
    f[:, 0] = f[:, -2]
    f[:, -1] = f[:, 1]


def pressure_source(u, v, c):
    ux, uy, vx, vy = ddx(u, c.dx), ddy(u, c.dy), ddx(v, c.dx), ddy(v, c.dy)
    return c.density * ((ux + vy) / c.dt - ux * ux - 2 * uy * vx - vy * vy)


def relax_pressure(p, source, c):
    """Jacobi sweeps in place; no pressure gradient across the walls."""
    dx2, dy2 = c.dx**2, c.dy**2
    scaled = source * (dx2 * dy2)
    for _ in range(c.sweeps):
        p[1:-1, 1:-1] = ((east(p) + west(p)) * dy2 + (north(p) + south(p)) * dx2 - scaled) / (2 * (dx2 + dy2))
        close_ends(p)
        p[0] = p[1]
        p[-1] = p[-2]


def advance(f, u, v, pressure_gradient, source, c):
    """The momentum equation for one velocity component; returns the new component, zero at the walls."""
    rate = c.viscosity * laplacian(f, c.dx, c.dy) - upwind(f, u, v, c.dx, c.dy) - pressure_gradient / c.density + source
    new = bn.zeros_like(f)
    new[1:-1, 1:-1] = inner(f) + c.dt * rate
    close_ends(new)
    return new


def step(u, v, p, c):
    """One time step: new u and v; ``p`` is updated in place."""
    relax_pressure(p, pressure_source(u, v, c), c)
    return (
        advance(u, u, v, ddx(p, c.dx), c.force, c),
        advance(v, u, v, ddy(p, c.dy), 0.0, c),
    )


def disturbed(c):
    """Initial u, v, p: half the steady profile, and a cross flow that is not free of divergence."""
    x = ((bn.arange(c.nx + 2) - 1.0) * c.dx).reshape(1, c.nx + 2)
    y = (bn.arange(c.ny) * c.dy).reshape(c.ny, 1)
    u = c.force / (4 * c.viscosity) * y * (c.height - y) + 0.0 * x
    v = bn.zeros_like(u)
    v[1:-1, :] = 0.1 * bn.sin(2 * bn.pi / c.length * x) * bn.sin(bn.pi / c.height * y[1:-1])
    close_ends(v)
    return u, v, bn.zeros_like(u)


def simulate(c, start, steps, report_every=0):
    """Advance ``start = (u, v, p)``, arrays of shape (ny, nx + 2); return the same after ``steps`` steps."""
    u, v, p = start[0], start[1], start[2].copy()
    for k in range(1, steps + 1):
        before = u
        u, v = step(u, v, p, c)
        if report_every and k % report_every == 0:
            print(f"step {k:6d}: largest change of u {float(bn.abs(u - before).max()):.3e}")
    return u, v, p


def use_numpy():
    """Let every function above work on NumPy arrays."""
    global bn
    import numpy as bn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nx", type=int, default=64, help="cells along the channel")
    parser.add_argument("--ny", type=int, default=65, help="rows from wall to wall")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--sweeps", type=int, default=10, help="pressure iterations per step")
    parser.add_argument("--dt", type=float, default=0.001, help="seconds per step")
    parser.add_argument("--report", type=int, default=20, metavar="N", help="print the change every N steps")
    parser.add_argument("--numpy", action="store_true", help="run the same code on NumPy, for comparison")
    options = parser.parse_args()
    if options.numpy:
        use_numpy()
    channel = Channel(nx=options.nx, ny=options.ny, dt=options.dt, sweeps=options.sweeps)
    u, v, _ = simulate(channel, disturbed(channel), options.steps, options.report)
    flux = float(inner(u).sum()) * channel.dy / channel.nx
    print(f"volume flux {flux:.12e} m^2/s after {options.steps} steps; largest |v| {float(bn.abs(v).max()):.1e} m/s")


if __name__ == "__main__":
    main()
