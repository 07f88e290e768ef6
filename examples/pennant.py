"""PENNANT: Lagrangian hydrodynamics on a 2-D unstructured mesh in cylindrical symmetry, as tasks over mesh pieces.

    burnish run examples/pennant.py ../shared/data/runtime/pennant/leblanc.pnt --workers 2 --pieces 4

Without an input file it runs a Sod shock tube of its own. If ``NAME.xy.std`` lies beside ``NAME.pnt`` the final zone
fields are compared with it. The method (staggered grid, predictor-corrector, compatible side forces, tensor-like
corner viscosity) is that of the PENNANT mini-application; units are those of the input.

A zone is a polygon of points; its *side* s joins the consecutive points p1 and p2, ``prev``/``next`` are the
neighbouring sides of the same zone, and the *corner* s is the one at p1 between ``prev`` and s. A piece is a range of
zones with their sides. Points that only one piece touches are its *private* points; a *shared* point is owned by the
first piece that touches it and is a *ghost* of every piece that does (the owner as well): so pieces only meet in
reductions onto, and reads of, the aliased ghost partition. About 27 index launches per cycle.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from burnish import runtime as rt
from burnish.core.errors import BurnishError, Place
from burnish.runtime import Read, ReadWrite, Reduce, Write, each, task

TINY = 1e-99
VECTOR = ("f8", 2)
POINT_FIELDS = dict.fromkeys(("x", "x0", "xp", "u", "u0", "f"), VECTOR) | {"m": "f8", "wall": ("?", 2)}
ZONE_SCALARS = ("areap", "vol", "vol0", "volp", "m", "rho", "rhop", "e", "etot", "p", "ss", "dl", "du", "work_rate")
ZONE_FIELDS = {"n": "i8", "first": "i8", "xp": VECTOR, "uc": VECTOR} | dict.fromkeys(ZONE_SCALARS, "f8")
SIDE_FIELDS = (
    dict.fromkeys(("p1", "zone", "prev", "next"), "i8")
    | dict.fromkeys(("ex", "fp", "ft", "fq", "qe1", "qe2"), VECTOR)
    | dict.fromkeys(("mf", "area", "len", "carea", "ccos"), "f8")
)


# ---- input ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Deck:
    """The numbers of an input file, with PENNANT's names and defaults."""

    meshtype: str = "rect"
    meshparams: tuple[float, ...] = ()
    subregion: tuple[float, ...] = ()
    bcx: tuple[float, ...] = ()
    bcy: tuple[float, ...] = ()
    cstop: int = 999999
    tstop: float = 1e99
    dtinit: float = 1e99
    dtmax: float = 1e99
    dtfac: float = 1.2
    cfl: float = 0.6
    cflv: float = 0.1
    alfa: float = 0.5
    gamma: float = 5.0 / 3.0
    q1: float = 0.0
    q2: float = 2.0
    ssmin: float = 0.0
    rinit: float = 1.0
    einit: float = 0.0
    rinitsub: float = 0.0
    einitsub: float = 0.0
    uinitradial: float = 0.0
    chunksize: int = 0


SOD = Deck(meshparams=(4, 100, 0.04, 1.0), subregion=(0.0, 0.04, 0.5, 1.0), bcx=(0.0, 0.04), bcy=(0.0, 1.0), cstop=50,
           tstop=0.2, dtinit=1e-4, gamma=1.4, q1=0.1, rinit=1.0, einit=2.5, rinitsub=0.125, einitsub=2.0)  # fmt: skip
COUNTS = {"meshparams": (1, 4), "subregion": (4, 4), "bcx": (1, 99), "bcy": (1, 99)}


def read_deck(path: Path) -> Deck:
    """Parse ``key value...`` lines; anything unknown or malformed is an error with its place."""
    known, values = {f.name: f.default for f in fields(Deck)}, {}
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BurnishError(f"{path}: cannot be read as text ({error})", hint="give a PENNANT .pnt file") from error
    for number, line in enumerate(lines, 1):
        key, *words = line.split("#")[0].split() or [""]
        if not key:
            continue
        place = Place(str(path), number, line.index(key) + 1, line, len(key))
        if key not in known:
            raise BurnishError(f"unknown key '{key}'", place=place, hint=f"known: {', '.join(known)}")
        fewest, most = COUNTS.get(key, (1, 1))
        if not fewest <= len(words) <= most:
            raise BurnishError(f"'{key}' takes {fewest} to {most} values, got {len(words)}", place=place)
        try:
            kind = type(known[key])
            values[key] = tuple(map(float, words)) if kind is tuple else kind(words[0])
        except ValueError:
            raise BurnishError(f"'{key}' needs numbers, got {' '.join(words)!r}", place=place) from None
    deck = Deck(**values)
    if deck.meshtype not in ("rect", "pie"):
        raise BurnishError(f"{path}: meshtype {deck.meshtype!r} is not available", hint="use rect or pie")
    if not deck.meshparams or min(deck.meshparams) <= 0:
        raise BurnishError(f"{path}: no positive 'meshparams'", hint="add a line: meshparams NZX NZY LENX LENY")
    return deck


def make_mesh(deck: Deck) -> tuple[np.ndarray, list[np.ndarray]]:
    """Point positions (points, 2) and zone corners, each group an array (zones, corners) counter-clockwise."""
    nzx = int(deck.meshparams[0])
    nzy = int(deck.meshparams[1]) if len(deck.meshparams) > 1 else nzx
    pie = deck.meshtype == "pie"
    lenx = deck.meshparams[2] if len(deck.meshparams) > 2 else (90.0 if pie else 1.0)
    leny = deck.meshparams[3] if len(deck.meshparams) > 3 else 1.0
    npx = nzx + 1
    row, column = (a.ravel() for a in np.mgrid[: nzy + 1, :npx])
    corner = (np.arange(nzy)[:, None] * npx + np.arange(nzx)).ravel()
    quads = np.stack([corner, corner + 1, corner + npx + 1, corner + npx], axis=1)
    if not pie:
        return np.stack([column * lenx / nzx, row * leny / nzy], axis=1), [quads]
    radius, angle = row * leny / nzy, np.radians((nzx - column) * lenx / nzx)
    rows = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    fan = np.stack([np.zeros(nzx, int), np.arange(nzx) + 2, np.arange(nzx) + 1], axis=1)
    return np.concatenate([[[0.0, 0.0]], rows[npx:]]), [fan, quads[nzx:] - (npx - 1)]  # the first row is one point


# ---- vectors: arrays (n, 2) ----------------------------------------------------------------------------------------
def dot(a, b):
    return a[:, 0] * b[:, 0] + a[:, 1] * b[:, 1]


def cross(a, b):
    return a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]


def norm(a):
    return np.sqrt(dot(a, a))


def by_zone(ufunc, values, z):
    """Reduce side values over the sides of each zone, which lie side by side."""
    return ufunc.reduceat(values, z.first, axis=0) if len(z.first) else values[:0]


def zone_volumes(x, s, z):
    """Zone centre, side area, zone area and volume for the positions ``x`` of the points p1."""
    x2 = x[s.next]
    centre = by_zone(np.add, x, z) / z.n[:, None]
    at = centre[s.zone]
    area = cross(x2 - x, at - x) / 2
    volume = area * (x[:, 0] + x2[:, 0] + at[:, 0])
    if len(volume) and not volume.min() > 0:
        r, h = at[np.argmin(volume)]
        raise BurnishError(f"the zone around ({r:.6g}, {h:.6g}) turned inside out", hint="lower dtinit, cfl or cflv")
    return centre, area, by_zone(np.add, area, z), by_zone(np.add, volume, z) / 3


# ---- tasks ---------------------------------------------------------------------------------------------------------
@task
def initialize(
    z: Read["n", "first"] | Write["m", "rho", "e", "etot", "vol", "p", "work_rate"],
    s: Read["p1", "zone", "next"] | Write["mf"],
    private: Read["x"],
    ghost: Read["x"],
    deck: Deck,
):
    centre, area, zone_area, volume = zone_volumes(rt.gather(s.p1, private.x, ghost.x), s, z)
    s.mf[:] = area / zone_area[s.zone]
    inside = np.zeros(len(z.n), bool)
    if deck.subregion:
        low, high = np.array(deck.subregion[::2]) - 1e-12, np.array(deck.subregion[1::2]) + 1e-12
        inside = ((centre > low) & (centre < high)).all(axis=1)
    z.rho[:], z.e[:] = np.where(inside, deck.rinitsub, deck.rinit), np.where(inside, deck.einitsub, deck.einit)
    z.vol[:], z.m[:] = volume, z.rho * volume
    z.etot[:] = z.e * z.m
    z.p[:] = z.work_rate[:] = 0.0


@task
def save_points(p: Read["x", "u"] | Write["x0", "u0", "m", "f"]):
    p.x0[:], p.u0[:] = p.x, p.u
    p.m[:], p.f[:] = 0.0, 0.0


@task
def save_zones(z: Read["vol"] | Write["vol0"]):
    z.vol0[:] = z.vol


@task
def advance_half(p: Read["x0", "u0"] | Write["xp"], dt: float):
    p.xp[:] = p.x0 + dt / 2 * p.u0


@task
def half_centers(
    z: Read["n", "first"] | Write["xp"],
    s: Read["p1", "next"] | Write["ex", "len"],
    private: Read["xp"],
    ghost: Read["xp"],
):
    x = rt.gather(s.p1, private.xp, ghost.xp)
    x2 = x[s.next]
    z.xp[:] = by_zone(np.add, x, z) / z.n[:, None]
    s.ex[:] = (x + x2) / 2
    s.len[:] = norm(x2 - x)


@task
def half_volumes(
    z: Read["n", "first"] | Write["areap", "volp"],
    s: Read["p1", "zone", "next"] | Write["area"],
    private: Read["xp"],
    ghost: Read["xp"],
):
    _, s.area[:], z.areap[:], z.volp[:] = zone_volumes(rt.gather(s.p1, private.xp, ghost.xp), s, z)


@task
def characteristic_length(z: Read["n", "first"] | Write["dl"], s: Read["zone", "area", "len"]):
    factor = np.where(z.n == 3, 3.0, 4.0)[s.zone]
    z.dl[:] = by_zone(np.minimum, factor * s.area / s.len, z)


@task
def half_density(z: Read["m", "volp"] | Write["rhop"]):
    z.rhop[:] = z.m / z.volp


@task
def sum_point_mass(
    z: Read["rhop", "areap"],
    s: Read["p1", "zone", "prev", "mf"],
    private: ReadWrite["m"],
    ghost: Reduce["+", "m"],
):
    mass = (z.rhop * z.areap)[s.zone] * (s.mf + s.mf[s.prev]) / 2
    rt.scatter_add(s.p1, mass, private.m, ghost.m)


@task
def half_state(z: Read["rho", "e", "m", "vol0", "volp", "work_rate"] | Write["p", "ss"], dt: float, deck: Deck):
    """Pressure at the half step and sound speed of an ideal gas."""
    energy = np.maximum(z.e, 0.0)
    pressure = (deck.gamma - 1) * z.rho * energy
    per_density, per_energy = (deck.gamma - 1) * energy, (deck.gamma - 1) * z.rho
    squared = per_density + per_energy * pressure / z.rho**2
    z.ss[:] = np.sqrt(np.maximum(max(deck.ssmin**2, TINY), squared))
    dv = (z.volp - z.vol0) / z.m
    change = per_energy * z.work_rate * (dt / 2) / z.m - z.rho**2 * z.ss**2 * dv
    z.p[:] = pressure + change / (1 + per_energy * dv / 2)


@task
def pressure_forces(
    z: Read["xp", "p", "ss", "rhop", "areap"],
    s: Read["zone", "ex", "area", "mf"] | Write["fp", "ft"],
    deck: Deck,
):
    """Force of the pressure, and of it with the temporary-triangular-subzone correction, on each side."""
    arm = s.ex - z.xp[s.zone]
    normal = np.stack([-arm[:, 1], arm[:, 0]], axis=1)
    s.fp[:] = -z.p[s.zone][:, None] * normal
    stiffness = deck.alfa * np.maximum(z.ss, deck.ssmin) ** 2
    density = z.rhop[s.zone]
    excess = density * s.mf * z.areap[s.zone] / s.area - density
    s.ft[:] = s.fp - (stiffness[s.zone] * excess)[:, None] * normal


@task
def zone_velocity(z: Read["n", "first"] | Write["uc"], s: Read["p1"], private: Read["u"], ghost: Read["u"]):
    z.uc[:] = by_zone(np.add, rt.gather(s.p1, private.u, ghost.u), z) / z.n[:, None]


@task
def corner_viscosity(
    z: Read["xp", "uc", "rhop", "ss"],
    s: Read["p1", "zone", "prev", "next", "ex", "len"] | Write["carea", "ccos", "qe1", "qe2"],
    private: Read["xp", "u"],
    ghost: Read["xp", "u"],
    deck: Deck,
):
    """Velocity divergence of each corner, and the viscous forces along the two edges that meet there."""
    x0, u0 = rt.gather(s.p1, private.xp, ghost.xp), rt.gather(s.p1, private.u, ghost.u)
    before, after = u0[s.prev], u0[s.next]
    x1, x2, x3 = s.ex, z.xp[s.zone], s.ex[s.prev]
    u1, u2, u3 = (u0 + after) / 2, z.uc[s.zone], (before + u0) / 2
    len1, len2 = s.len[s.prev], s.len
    shorter = np.minimum(len1, len2)
    s.carea[:] = cross(x2 - x0, x3 - x1) / 2
    s.ccos[:] = np.where(shorter < 1e-12, 0.0, 4 * dot(x3 - x0, x1 - x0) / (len1 * len2))
    divergence = (cross(u2 - u0, x3 - x1) - cross(u3 - u1, x2 - x0)) / (2 * s.carea)

    diagonal1, diagonal2, mean = (x1 + x2 - x0 - x3) / 2, (x2 + x3 - x0 - x1) / 2, (u0 + u1 + u2 + u3) / 4
    l1, l2 = norm(diagonal1), norm(diagonal2)
    first = np.abs(dot(diagonal1, mean)) * l2 > np.abs(dot(diagonal2, mean)) * l1
    aspect = np.where(first, l1 / l2, l2 / l1)
    width = np.minimum(np.sqrt(4 * s.carea * aspect), 2 * shorter)
    jump = np.maximum(norm(u1 + u2 - u0 - u3), norm(u2 + u3 - u0 - u1))
    a = deck.q2 * (deck.gamma + 1) * jump / 4
    viscosity = z.rhop[s.zone] * width * (a + np.sqrt(a**2 + (deck.q1 * z.ss[s.zone]) ** 2))
    viscosity = np.where(divergence < 0, viscosity, 0.0)
    s.qe1[:] = (viscosity / len1)[:, None] * (u0 - before)
    s.qe2[:] = (viscosity / len2)[:, None] * (after - u0)


@task
def viscous_forces(s: Read["next", "carea", "ccos", "qe1", "qe2", "len"] | Write["fq"]):
    sine2 = 1 - s.ccos**2
    open_ = sine2 >= 1e-4
    weight = np.where(open_, s.carea / np.where(open_, sine2, 1.0), 0.0)[:, None]
    cosine = np.where(open_, s.ccos, 0.0)[:, None]
    mine, theirs = weight * (s.qe2 + cosine * s.qe1), weight * (s.qe1 + cosine * s.qe2)
    s.fq[:] = (mine + theirs[s.next]) / s.len[:, None]


@task
def velocity_difference(
    z: Read["first", "ss"] | Write["du"],
    s: Read["p1", "next", "len"],
    private: Read["xp", "u"],
    ghost: Read["xp", "u"],
    deck: Deck,
):
    x, u = rt.gather(s.p1, private.xp, ghost.xp), rt.gather(s.p1, private.u, ghost.u)
    stretch = np.abs(dot(u[s.next] - u, x[s.next] - x)) / s.len
    z.du[:] = deck.q1 * z.ss + 2 * deck.q2 * by_zone(np.maximum, stretch, z)


@task
def sum_point_force(s: Read["p1", "prev", "ft", "fq"], private: ReadWrite["f"], ghost: Reduce["+", "f"]):
    side = s.fq + s.ft
    rt.scatter_add(s.p1, side - side[s.prev], private.f, ghost.f)


@task
def apply_walls(p: Read["wall"] | ReadWrite["u0", "f"]):
    p.u0[p.wall] = 0.0
    p.f[p.wall] = 0.0


@task
def advance_full(p: Read["x0", "u0", "f", "m"] | Write["x", "u"], dt: float):
    p.u[:] = p.u0 + dt * (p.f / p.m[:, None])
    p.x[:] = p.x0 + dt / 2 * (p.u + p.u0)


@task
def full_volumes(
    z: Read["n", "first"] | Write["vol"],
    s: Read["p1", "zone", "next"],
    private: Read["x"],
    ghost: Read["x"],
):
    *_, z.vol[:] = zone_volumes(rt.gather(s.p1, private.x, ghost.x), s, z)


@task
def work_and_energy(
    z: Read["first", "m", "p", "vol", "vol0"] | ReadWrite["etot"] | Write["work_rate", "e", "rho"],
    s: Read["p1", "next", "fp", "fq"],
    private: Read["xp", "u", "u0"],
    ghost: Read["xp", "u", "u0"],
    dt: float,
):
    """Work of the side forces on the moving points; density, energy and work rate at the end of the cycle."""
    radius = rt.gather(s.p1, private.xp, ghost.xp)[:, 0]
    moved = rt.gather(s.p1, private.u, ghost.u) + rt.gather(s.p1, private.u0, ghost.u0)
    force = s.fp + s.fq
    gained = dot(force, moved) * radius - dot(force, moved[s.next]) * radius[s.next]
    work = by_zone(np.add, -dt / 2 * gained, z)
    z.etot += work
    z.work_rate[:] = (work + z.p * (z.vol - z.vol0)) / dt
    z.e[:] = z.etot / (z.m + TINY)
    z.rho[:] = z.m / z.vol


@task
def allowed_step(z: Read["dl", "du", "ss", "vol", "vol0"], dt: float, deck: Deck) -> float:
    """Largest next time step by the Courant condition and by the change of volume."""
    if not len(z.vol):
        return deck.dtmax
    courant = (z.dl * deck.cfl / np.maximum(np.maximum(z.du, z.ss), TINY)).min()
    growth = max(TINY, (np.abs(z.vol - z.vol0) / z.vol0).max())
    return float(min(deck.dtmax, courant, dt * deck.cflv / growth))


# ---- program -------------------------------------------------------------------------------------------------------
class Hydro:
    """Regions, partitions and clock of one problem cut into ``pieces`` ranges of zones."""

    def __init__(self, deck: Deck, pieces: int) -> None:
        self.deck, self.pieces, self.time, self.cycle, self.dt = deck, pieces, 0.0, 0, math.inf
        self.dt_hydro: rt.Future | None = None
        position, groups = make_mesh(deck)
        corners = np.concatenate([np.full(len(g), g.shape[1]) for g in groups])
        p1 = np.concatenate([g.ravel() for g in groups])
        first = np.cumsum(corners) - corners
        side_zone = np.repeat(np.arange(len(corners)), corners)
        self.zones = rt.region(len(corners), ZONE_FIELDS, name="zones")
        self.sides = rt.region(len(p1), SIDE_FIELDS, name="sides")
        self.points = rt.region(len(position), POINT_FIELDS, name="points")

        bounds = np.arange(pieces + 1) * len(corners) // pieces
        starts = np.append(first, len(p1))[bounds]
        self.zp = rt.block(self.zones, pieces)
        self.sp = rt.by_sets(self.sides, [rt.Rect((int(low),), (int(high),)) for low, high in pairwise(starts)])
        piece = np.repeat(np.arange(pieces), np.diff(bounds))[side_zone]
        low, high = np.full(len(position), pieces), np.full(len(position), -1)
        np.minimum.at(low, p1, piece)
        np.maximum.at(high, p1, piece)
        self.private = rt.by_color(self.points, np.where(low == high, low, -1), pieces)
        self.shared = rt.by_color(self.points, np.where(low == high, -1, low), pieces)

        turn = np.arange(len(p1)) - first[side_zone]
        size = corners[side_zone]
        offset = starts[piece]
        zone_values = {"n": corners, "first": first - np.repeat(starts[:-1], np.diff(bounds))}
        side_values = {"p1": p1, "zone": side_zone - bounds[piece],
                       "prev": first[side_zone] + (turn - 1) % size - offset,
                       "next": first[side_zone] + (turn + 1) % size - offset}  # fmt: skip
        at_wall = [np.abs(position[:, [k]] - np.array(lines)).min(axis=1, initial=math.inf) < 1e-12
                   for k, lines in enumerate((deck.bcx, deck.bcy))]  # fmt: skip
        distance = np.hypot(*position.T)[:, None]
        radial = np.divide(position, distance, out=np.zeros_like(position), where=distance > 0)
        point_values = {"x": position, "u": deck.uinitradial * radial, "wall": np.stack(at_wall, axis=1)}
        for region, values in ((self.zones, zone_values), (self.sides, side_values), (self.points, point_values)):
            for field, value in values.items():
                with region.host("w", field=field) as a:
                    a[:] = value
        self.ghost = rt.image(self.sp, "p1", self.points) - self.private
        initialize.map(pieces, self.zp[each], self.sp[each], self.private[each], self.ghost[each], deck)

    def step(self) -> None:
        """Launch one cycle; waits for the time step that the cycle before allows."""
        k, deck = self.pieces, self.deck
        z, s, private, shared, ghost = (
            self.zp[each],
            self.sp[each],
            self.private[each],
            self.shared[each],
            self.ghost[each],
        )
        save_points.map(k, private)
        save_points.map(k, shared)
        save_zones.map(k, z)
        self.dt = dt = self.next_step()
        advance_half.map(k, private, dt)
        advance_half.map(k, shared, dt)
        half_centers.map(k, z, s, private, ghost)
        half_volumes.map(k, z, s, private, ghost)
        characteristic_length.map(k, z, s)
        half_density.map(k, z)
        sum_point_mass.map(k, z, s, private, ghost)
        half_state.map(k, z, dt, deck)
        pressure_forces.map(k, z, s, deck)
        zone_velocity.map(k, z, s, private, ghost)
        corner_viscosity.map(k, z, s, private, ghost, deck)
        viscous_forces.map(k, s)
        velocity_difference.map(k, z, s, private, ghost, deck)
        sum_point_force.map(k, s, private, ghost)
        apply_walls.map(k, private)
        apply_walls.map(k, shared)
        advance_full.map(k, private, dt)
        advance_full.map(k, shared, dt)
        full_volumes.map(k, z, s, private, ghost)
        work_and_energy.map(k, z, s, private, ghost, dt)
        self.dt_hydro = allowed_step.map(k, z, dt, deck).reduce("min")
        self.time, self.cycle = self.time + dt, self.cycle + 1

    def next_step(self) -> float:
        deck = self.deck
        growth = deck.dtfac * self.dt if self.cycle else deck.dtinit
        allowed = self.dt_hydro.get() if self.dt_hydro is not None else math.inf
        return min(deck.dtmax, growth, deck.tstop - self.time, allowed)

    def run(self) -> None:
        """Cycle until ``cstop`` or ``tstop``."""
        while self.cycle < self.deck.cstop and self.time < self.deck.tstop:
            self.step()

    def fields(self) -> dict[str, np.ndarray]:
        """Density, specific energy and pressure of the zones, by the names of the reference files."""
        return {"zr": self.zones.numpy("rho"), "ze": self.zones.numpy("e"), "zp": self.zones.numpy("p")}


def read_reference(path: Path) -> dict[str, np.ndarray]:
    """Sections ``# name`` of lines ``index value``."""
    sections: dict[str, list[float]] = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = line.split()
        try:
            if words[:1] == ["#"]:
                values = sections.setdefault(words[1], [])
            elif words:
                values.append(float(words[1]))
        except (IndexError, ValueError, UnboundLocalError):
            place = Place(str(path), number, text=line)
            raise BurnishError(
                "expected '# name' or 'index value'", place=place, hint="remove the file to skip the comparison"
            ) from None
    return {name: np.array(values) for name, values in sections.items()}


def deviation(values: np.ndarray, reference: np.ndarray) -> float:
    """Largest relative difference; absolute where the reference is below 1e-9."""
    scale = np.where(np.abs(reference) < 1e-9, 1.0, np.abs(reference))
    return float((np.abs(values - reference) / scale).max())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("input", type=Path, nargs="?", help="PENNANT .pnt file (default: a Sod shock tube)")
    parser.add_argument("--pieces", type=int, default=4, help="ranges of zones that are computed independently")
    parser.add_argument("--steps", type=int, help="cycles (default: cstop of the input)")
    options = parser.parse_args()
    deck = read_deck(options.input) if options.input else SOD
    if options.steps is not None:
        deck = replace(deck, cstop=options.steps)
    hydro = Hydro(deck, options.pieces)
    hydro.run()
    energy = hydro.zones.numpy("etot").sum()
    print(f"cycle {hydro.cycle}, time {hydro.time:.12g}, last step {hydro.dt:.12g}, internal energy {energy:.12g}")
    reference = options.input and options.input.with_suffix(".xy.std")
    if not (reference and reference.exists()):
        return 0
    computed = hydro.fields()
    deviations = {name: deviation(computed[name], expected) for name, expected in read_reference(reference).items()}
    print(", ".join(f"{name} {value:.1e}" for name, value in deviations.items()), f"(deviation from {reference.name})")
    print(f"max relative deviation {max(deviations.values()):.1e}")
    return 0 if max(deviations.values()) < 1e-8 else 1


if __name__ == "__main__":
    sys.exit(main())
