"""PENNANT: staggered-grid Lagrangian hydrodynamics in cylindrical symmetry on a 2-D unstructured mesh, plain NumPy.

Vectors are complex numbers x + iy: ``cross(a, b)`` is ``Im(conj(a) b)`` and ``dot(a, b)`` its real part, which keeps
the formulas short and shares no expression with the task program.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.float64]
Complex = NDArray[np.complex128]
Index = NDArray[np.int64]

DEFAULTS: dict[str, float] = {
    "alfa": 0.5, "cfl": 0.6, "cflv": 0.1, "dtfac": 1.2, "dtinit": 1e99, "dtmax": 1e99, "gamma": 5 / 3,
    "q1": 0.0, "q2": 2.0, "rinit": 1.0, "einit": 0.0, "rinitsub": 0.0, "einitsub": 0.0, "ssmin": 0.0,
    "uinitradial": 0.0, "tstop": 1e99, "cstop": 999999,
}  # fmt: skip


@dataclass
class Deck:
    """The numbers of an input file."""

    scalars: dict[str, float] = field(default_factory=lambda: dict(DEFAULTS))
    lists: dict[str, list[float]] = field(default_factory=dict)
    meshtype: str = "rect"

    def __getattr__(self, name: str) -> float:
        return self.scalars[name]


def read_deck(path: Path) -> Deck:
    deck = Deck()
    for line in path.read_text().splitlines():
        key, *values = line.split() or [""]
        if key == "meshtype":
            deck.meshtype = values[0]
        elif key in DEFAULTS:
            deck.scalars[key] = float(values[0])
        elif key:
            deck.lists[key] = [float(v) for v in values]
    return deck


def mesh_points_and_zones(deck: Deck) -> tuple[Complex, list[tuple[int, ...]]]:
    """Point positions and the counter-clockwise point lists of the zones."""
    params = deck.lists["meshparams"]
    nzx = int(params[0])
    nzy = int(params[1]) if len(params) > 1 else nzx
    pie = deck.meshtype == "pie"
    lenx = params[2] if len(params) > 2 else (90.0 if pie else 1.0)
    leny = params[3] if len(params) > 3 else 1.0
    npx = nzx + 1
    if pie:
        angles = np.radians(lenx) * (nzx - np.arange(npx)) / nzx
        radii = np.arange(1, nzy + 1) * leny / nzy
        points = np.concatenate([[0j], (radii[:, None] * np.exp(1j * angles)).ravel()])
        zones: list[tuple[int, ...]] = [(0, i + 2, i + 1) for i in range(nzx)]
        corner = [j * npx + i - (npx - 1) for j in range(1, nzy) for i in range(nzx)]
    else:
        x, y = lenx * np.arange(npx) / nzx, leny * np.arange(nzy + 1) / nzy
        points = (x[None, :] + 1j * y[:, None]).ravel()
        zones, corner = [], [j * npx + i for j in range(nzy) for i in range(nzx)]
    return points, zones + [(p, p + 1, p + npx + 1, p + npx) for p in corner]


def dot(a: Complex, b: Complex) -> Real:
    return (np.conj(a) * b).real


def cross(a: Complex, b: Complex) -> Real:
    return (np.conj(a) * b).imag


@dataclass
class Geometry:
    zone_x: Complex
    edge_x: Complex
    side_area: Real
    side_volume: Real
    zone_area: Real
    zone_volume: Real


class Hydro:
    """The state of a run; arrays are named as in the literature on staggered Lagrangian hydrodynamics."""

    def __init__(self, deck: Deck) -> None:
        self.deck = deck
        self.P, zones = mesh_points_and_zones(deck)
        self.n = np.array([len(z) for z in zones])
        self.p1 = np.concatenate([np.array(z) for z in zones])
        self.p2 = np.concatenate([np.roll(z, -1) for z in zones])
        self.z = np.repeat(np.arange(len(zones)), self.n)
        first = np.cumsum(self.n) - self.n
        local = np.arange(len(self.z)) - first[self.z]
        self.s3 = first[self.z] + (local - 1) % self.n[self.z]
        self.s4 = first[self.z] + (local + 1) % self.n[self.z]
        x, y = self.P.real, self.P.imag
        self.fixed_x = np.isclose(x[:, None], deck.lists.get("bcx", []), rtol=0, atol=1e-12).any(axis=1)
        self.fixed_y = np.isclose(y[:, None], deck.lists.get("bcy", []), rtol=0, atol=1e-12).any(axis=1)
        self._initial_state()

    def _initial_state(self) -> None:
        d, g = self.deck, self.geometry(self.P)
        self.smf = g.side_area / g.zone_area[self.z]
        self.zr, self.ze = np.full(len(self.n), d.rinit), np.full(len(self.n), d.einit)
        if "subregion" in d.lists:
            x0, x1, y0, y1 = d.lists["subregion"]
            x, y = g.zone_x.real, g.zone_x.imag
            inside = (x > x0 - 1e-12) & (x < x1 + 1e-12) & (y > y0 - 1e-12) & (y < y1 + 1e-12)
            self.zr[inside], self.ze[inside] = d.rinitsub, d.einitsub
        self.zm, self.zvol = self.zr * g.zone_volume, g.zone_volume
        self.zetot = self.ze * self.zm
        self.zwrate, self.zp = np.zeros(len(self.n)), np.zeros(len(self.n))
        size = np.abs(self.P)
        self.u = d.uinitradial * np.divide(self.P, size, out=np.zeros_like(self.P), where=size > 0)
        self.time, self.cycle, self.dt, self.dt_hydro = 0.0, 0, np.inf, np.inf

    def zsum(self, x: Real) -> Real:
        return np.bincount(self.z, weights=x, minlength=len(self.n))

    def csum(self, x: Complex, at: Index, size: int) -> Complex:
        return np.bincount(at, x.real, size) + 1j * np.bincount(at, x.imag, size)

    def zmax(self, x: Real) -> Real:
        out = np.full(len(self.n), -np.inf)
        np.maximum.at(out, self.z, x)
        return out

    def geometry(self, P: Complex) -> Geometry:
        a, b = P[self.p1], P[self.p2]
        zx = self.csum(a, self.z, len(self.n)) / self.n
        sa = cross(b - a, zx[self.z] - a) / 2
        sv = sa * (a + b + zx[self.z]).real
        if (sv <= 0).any():
            raise ValueError(f"side volume <= 0 in zone {self.z[int(np.argmin(sv))]}")
        return Geometry(zx, (a + b) / 2, sa, sv, self.zsum(sa), self.zsum(sv) / 3)

    def step(self) -> None:
        """One predictor-corrector cycle."""
        d = self.deck
        first = d.dtinit if self.cycle == 0 else d.dtfac * self.dt
        dt = min(d.dtmax, first, d.tstop - self.time, self.dt_hydro)
        h = dt / 2
        Px0, u0, zvol0 = self.P, self.u, self.zvol
        Pp = Px0 + h * u0
        g = self.geometry(Pp)
        el = np.abs(Pp[self.p2] - Pp[self.p1])
        zdl = -self.zmax(-np.where(self.n[self.z] == 3, 3.0, 4.0) * g.side_area / el)
        zrp = self.zm / g.zone_volume
        corner_mass = (zrp * g.zone_area)[self.z] * (self.smf + self.smf[self.s3]) / 2
        m = np.bincount(self.p1, corner_mass, len(self.P))

        zss = self._half_step_state(g, zvol0, h)
        n = 1j * (g.edge_x - g.zone_x[self.z])
        sfp = -self.zp[self.z] * n
        sst = d.alfa * np.maximum(zss, d.ssmin) ** 2
        sft = sfp - (sst * zrp)[self.z] * (self.smf * g.zone_area[self.z] / g.side_area - 1) * n
        sfq, zdu = self._viscosity(Pp, g, el, zrp, zss)

        corner = (sfq + sft) - (sfq + sft)[self.s3]
        F = self.csum(corner, self.p1, len(self.P))
        u0, F = self._fix(u0), self._fix(F)
        u = u0 + dt * F / m
        P = Px0 + h * (u + u0)
        self.zvol = self.geometry(P).zone_volume

        force, mean = sfp + sfq, u0 + u
        work = dot(force, mean[self.p1]) * Pp[self.p1].real - dot(force, mean[self.p2]) * Pp[self.p2].real
        zw = self.zsum(-h * work)
        self.zetot = self.zetot + zw
        self.zwrate = (zw + self.zp * (self.zvol - zvol0)) / dt
        self.ze = self.zetot / (self.zm + 1e-99)
        self.zr = self.zm / self.zvol
        courant = (zdl * d.cfl / np.maximum(np.maximum(zdu, zss), 1e-99)).min()
        growth = max(1e-99, float(np.abs((self.zvol - zvol0) / zvol0).max()))
        self.dt_hydro = min(d.dtmax, float(courant), dt * d.cflv / growth)
        self.P, self.u, self.dt, self.time, self.cycle = P, u, dt, self.time + dt, self.cycle + 1

    def _fix(self, v: Complex) -> Complex:
        return np.where(self.fixed_x, 0.0, v.real) + 1j * np.where(self.fixed_y, 0.0, v.imag)

    def _half_step_state(self, g: Geometry, zvol0: Real, h: float) -> Real:
        """Set ``zp`` at the half step; return the sound speed."""
        d = self.deck
        e, gm1 = np.maximum(self.ze, 0.0), d.gamma - 1
        p, pre, per = gm1 * self.zr * e, gm1 * e, gm1 * self.zr
        zss = np.sqrt(np.maximum(max(d.ssmin**2, 1e-99), pre + per * p / self.zr**2))
        dv = (g.zone_volume - zvol0) / self.zm
        top = per * self.zwrate * h / self.zm - (self.zr * zss) ** 2 * dv
        self.zp = p + top / (1 + per * dv / 2)
        return zss

    def _viscosity(self, Pp: Complex, g: Geometry, el: Real, zrp: Real, zss: Real) -> tuple[Complex, Real]:
        d, z, u, s, s2 = self.deck, self.z, self.u, self.s3, np.arange(len(self.z))
        zuc = (self.csum(u[self.p1], z, len(self.n)) / self.n)[z]
        p, q1, q2 = self.p2[s], self.p1[s], self.p2[s2]
        X0, X1, X2, X3 = Pp[p], g.edge_x[s2], g.zone_x[z], g.edge_x[s]
        U0, U1, U2, U3 = u[p], (u[p] + u[q2]) / 2, zuc, (u[q1] + u[p]) / 2
        carea = cross(X2 - X0, X3 - X1) / 2
        shorter = np.minimum(el[s], el[s2])
        ccos = np.where(shorter < 1e-12, 0.0, 4 * dot(X3 - X0, X1 - X0) / (el[s] * el[s2]))
        cdiv = (cross(U2 - U0, X3 - X1) - cross(U3 - U1, X2 - X0)) / (2 * carea)
        d1, d2, mean = (X1 + X2 - X0 - X3) / 2, (X2 + X3 - X0 - X1) / 2, (U0 + U1 + U2 + U3) / 4
        l1, l2 = np.abs(d1), np.abs(d2)
        along = np.abs(dot(d1, mean)) * l2 > np.abs(dot(d2, mean)) * l1
        ratio = np.where(along, l1, l2) / np.where(along, l2, l1)
        evol = np.minimum(np.sqrt(4 * carea * ratio), 2 * shorter)
        du = np.maximum(np.abs(U1 + U2 - U0 - U3), np.abs(U2 + U3 - U0 - U1))
        compress = cdiv < 0
        evol, du = np.where(compress, evol, 0.0), np.where(compress, du, 0.0)
        a = d.q2 * (d.gamma + 1) * du / 4
        rmu = np.where(cdiv > 0, 0.0, zrp[z] * evol * (a + np.hypot(a, d.q1 * zss[z])))
        qe1, qe2 = rmu / el[s] * (u[p] - u[q1]), rmu / el[s2] * (u[q2] - u[p])
        k = 1 - ccos**2
        usable = k >= 1e-4
        w, c = np.where(usable, carea / np.where(usable, k, 1.0), 0.0), np.where(usable, ccos, 0.0)
        s4 = self.s4
        sfq = (w * (qe2 + c * qe1) + w[s4] * (qe1[s4] + c[s4] * qe2[s4])) / el
        stretch = np.abs(dot(u[self.p2] - u[self.p1], Pp[self.p2] - Pp[self.p1])) / el
        return sfq, d.q1 * zss + 2 * d.q2 * self.zmax(stretch)


def run(deck: Deck, cycles: int | None = None) -> Hydro:
    """Cycle until ``cstop`` (or ``cycles``) or ``tstop``."""
    hydro = Hydro(deck)
    last = int(deck.cstop) if cycles is None else cycles
    while hydro.cycle < last and hydro.time < deck.tstop:
        hydro.step()
    return hydro


def read_fields(path: Path) -> dict[str, Real]:
    """The sections ``# zr``, ``# ze``, ``# zp`` of a reference file."""
    fields: dict[str, list[float]] = {}
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            current = fields.setdefault(line[1:].strip(), [])
        elif line.strip():
            current.append(float(line.split()[1]))
    return {name: np.array(values) for name, values in fields.items()}
