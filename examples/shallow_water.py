"""Shallow water on a doubly periodic square, composed of small library functions, in plain array code.

    burnish run examples/shallow_water.py --n 256 --steps 200

Conservative form in depth h and momenta hu, hv; Rusanov (local Lax-Friedrichs) fluxes between cells, Heun's
two-stage Runge-Kutta in time. A drop falls into still water; mass is conserved to rounding.
"""

from __future__ import annotations

import argparse

import burnish.runtime.array as bn

GRAVITY = 1.0


def after(f, axis):
    """The value in the next cell along ``axis``."""
    return bn.roll(f, -1, axis)


def divergence(face, axis, dx):
    """Face ``i`` lies between cells ``i`` and ``i + 1``."""
    return (face - bn.roll(face, 1, axis)) / dx


def wave_speed(h, normal_velocity):
    return bn.abs(normal_velocity) + bn.sqrt(GRAVITY * h)


def rusanov(q, flux, fastest, axis):
    return 0.5 * (flux + after(flux, axis)) - 0.5 * fastest * (after(q, axis) - q)


def axis_rate(water, axis, dx):
    """What the fluxes along ``axis`` add to (h, hu, hv) per unit of time, negated."""
    h, momentum = water[0], water[1 + axis]
    velocity = momentum / h
    speed = wave_speed(h, velocity)
    fastest = bn.maximum(speed, after(speed, axis))
    out = []
    for component, q in enumerate(water):
        flux = q * velocity
        if component == 1 + axis:
            flux = flux + 0.5 * GRAVITY * h * h
        out.append(divergence(rusanov(q, flux, fastest, axis), axis, dx))
    return out


def rate(water, dx):
    along_x, along_y = axis_rate(water, 0, dx), axis_rate(water, 1, dx)
    return [-(a + b) for a, b in zip(along_x, along_y, strict=True)]


def euler(water, change, dt):
    return [q + dt * dq for q, dq in zip(water, change, strict=True)]


def heun(water, dx, dt):
    predicted = euler(water, rate(water, dx), dt)
    corrected = euler(predicted, rate(predicted, dx), dt)
    return [0.5 * (q + new) for q, new in zip(water, corrected, strict=True)]


def simulate(water, steps, dx, dt):
    """Advance ``water = [h, hu, hv]``, three (n, n) arrays; return the same after ``steps`` steps."""
    for _ in range(steps):
        water = heun(water, dx, dt)
    return water


def drop(n):
    """Still water of depth 1 with a Gaussian hump in the middle."""
    x = (bn.arange(n) + 0.5) / n - 0.5
    distance2 = x.reshape(n, 1) ** 2 + x.reshape(1, n) ** 2
    return [1.0 + 0.1 * bn.exp(-100.0 * distance2), bn.zeros((n, n)), bn.zeros((n, n))]


def use_numpy():
    """Let every function above work on NumPy arrays."""
    global bn
    import numpy as bn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=64, help="cells along one side")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--courant", type=float, default=0.4, help="time step in units of dx / wave speed")
    parser.add_argument("--numpy", action="store_true", help="run the same code on NumPy, for comparison")
    options = parser.parse_args()
    if options.numpy:
        use_numpy()
    dx = 1.0 / options.n
    start = drop(options.n)
    end = simulate(start, options.steps, dx, options.courant * dx)
    before, now = float(start[0].sum()), float(end[0].sum())
    print(f"highest wave {float(end[0].max()):.9f}, mass changed by {abs(now - before) / before:.1e} (relative)")


if __name__ == "__main__":
    main()
