"""Task bodies whose outputs hash all their inputs, so that a read of a stale or half-written value changes bits.

`apply` is the mathematics, on plain arrays; Python task bodies and the oracle call it. `native_body` is the same in
machine code (compiled by Numba), for bodies that run without the GIL. Fields are named by dtype: i, j hold int64,
x, y float64, z two float64 per point.
"""

from __future__ import annotations

import functools
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from burnish import runtime as rt
from burnish._native import runtime as _rt
from burnish.runtime.signature import TaskInfo, parameters_of

Array = npt.NDArray[Any]

DTYPES: dict[str, tuple[str, tuple[int, ...]]] = {
    "i": ("i8", ()), "j": ("i8", ()), "x": ("f8", ()), "y": ("f8", ()), "z": ("f8", (2,)),
}  # fmt: skip
MAX_SCALARS = 4096  # most scalars that one argument's field may have
WORD = (1 << 64) - 1
_rng = np.random.default_rng(20240229)
WEIGHTS = _rng.integers(0, 1 << 63, MAX_SCALARS, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
SALTS = _rng.integers(0, 1 << 64, MAX_SCALARS, dtype=np.uint64)
EVEN = np.arange(MAX_SCALARS) % 2 == 0
GOLDEN = 0x9E3779B97F4A7C15
_ODD, _29, _12, _ONE = np.uint64(0xBF58476D1CE4E5B9), np.uint64(29), np.uint64(12), np.uint64(0x3FF0000000000000)

pause = False  # whether bodies sleep between reading and writing; set by the runner


def weave(old: Array, new: Array) -> Array:
    """A reduction that depends on the order of its operands, for integers and floats."""
    return old * 3 + new if old.dtype.kind == "i" else old * 0.5 + new


rt.reduction("weave", weave, 0, commutative=False)

OPERATORS: dict[str, tuple[Callable[[Array, Array], Array], Callable[[np.dtype[Any]], Any]]] = {
    "+": (np.add, lambda t: 0),
    "*": (np.multiply, lambda t: 1),
    "min": (np.minimum, lambda t: np.inf if t.kind == "f" else np.iinfo(t).max),
    "max": (np.maximum, lambda t: -np.inf if t.kind == "f" else np.iinfo(t).min),
    "weave": (weave, lambda t: 0),
}


@dataclass(frozen=True)
class Use:
    """One requirement of a parameter: kind is r, w, rw or the operator of a reduction; no fields means all of them."""

    kind: str
    fields: tuple[str, ...] = ()

    @property
    def reduces(self) -> bool:
        return self.kind in OPERATORS

    @property
    def privilege(self) -> Any:
        if self.reduces:
            return rt.Reduce[(self.kind, *self.fields)]
        made = {"r": rt.Read, "w": rt.Write, "rw": rt.ReadWrite}[self.kind]
        return made[self.fields] if self.fields else made


@dataclass(frozen=True)
class TaskSpec:
    """A task: uses per region parameter, kinds ('i', 'f') of scalar parameters, kind of result ('i', 'f', 'b')."""

    name: str
    seed: int
    params: tuple[tuple[Use, ...], ...]
    scalars: str = ""
    returns: str = ""
    native: bool = False


class PlannedFailure(Exception):
    """Raised by a body because the program says so."""


def mix(h: int, x: int) -> int:
    h = ((h ^ x) * GOLDEN) & WORD
    return h ^ (h >> 32)


def scalar_bits(value: Any, kind: str) -> int:
    if value is None:
        return 0x5EED
    if kind == "f":
        bits: int = struct.unpack("<Q", struct.pack("<d", float(value)))[0]
        return bits
    return int(value) & WORD


def digest(a: Array) -> int:
    bits = np.ascontiguousarray(a).view(np.uint64).ravel()
    return int(np.dot(bits, WEIGHTS[: bits.size]))


def values(h: int, like: Array) -> Array:
    """Values for every scalar of ``like``: any int64, or floats in [-0.5, 0.5)."""
    made = SALTS[: like.size] ^ np.uint64(h)
    made *= _ODD
    made ^= made >> _29
    if like.dtype.kind == "i":
        return made.view(np.int64).reshape(like.shape)
    made >>= _12
    made |= _ONE
    floats = made.view(np.float64)
    floats -= 1.5
    return floats.reshape(like.shape)


def result_of(h: int, kind: str) -> Any:
    if kind == "f":
        return (h >> 11) * 2.0**-53
    return h >> 2 if kind == "i" else (h >> 7) & 1


def apply(spec: TaskSpec, arrays: Sequence[tuple[str, Array]], scalars: Sequence[Any], color: int) -> Any:
    """The body: ``arrays`` are (kind, data) in declaration order; written and reduced ones change in place."""
    h = mix(spec.seed, color & WORD)
    for value, kind in zip(scalars, spec.scalars, strict=True):
        h = mix(h, scalar_bits(value, kind))
    for kind, a in arrays:
        if kind in ("r", "rw") and a.size:
            h = mix(h, digest(a))
    if pause and h & 3 == 0:
        time.sleep(3e-5 if h & 12 == 0 else 0)
    for k, (kind, a) in enumerate(arrays):
        if kind == "r" or not a.size:
            continue
        made = values(mix(h, k), a)
        if kind == "w":
            a[...] = made
        elif kind == "rw":
            a[...] = np.where(EVEN[: a.size].reshape(a.shape), made, a)
        else:
            if kind == "*":
                made += 1
            a[...] = OPERATORS[kind][0](a, made)
    return result_of(h, spec.returns)


# ---- Python tasks ----
def flat_color(color: Any, domain: tuple[int, ...]) -> int:
    if isinstance(color, int):
        return color
    linear = 0
    for n, c in zip(domain, color, strict=True):
        linear = linear * n + c
    return linear


def arrays_of(uses: tuple[Use, ...], argument: Any) -> list[tuple[str, Array]]:
    """What a body received for one parameter, as (kind, array) in declaration order."""
    if isinstance(argument, np.ndarray):
        return [(uses[0].kind, argument)]
    return [(u.kind, getattr(argument, f)) for u in uses for f in u.fields or type(argument).__slots__]


def _call(
    spec: TaskSpec, regions: tuple[Any, ...], scalars: tuple[Any, ...], color: Any, domain: tuple[int, ...], fails: int
) -> Any:
    arrays = [pair for uses, a in zip(spec.params, regions, strict=True) for pair in arrays_of(uses, a)]
    flat = flat_color(color, domain)
    result = apply(spec, arrays, scalars, flat)
    if fails >> max(flat, 0) & 1:
        raise PlannedFailure(f"{spec.name} {flat}")
    return result if spec.returns else None


def declared(spec: TaskSpec, extra: Sequence[str]) -> Any:
    """A function with parameters a0.. (regions), s0.. (scalars) and ``extra``, annotated as the task declares."""
    regions = [f"a{k}" for k in range(len(spec.params))]
    scalars = [f"s{k}" for k in range(len(spec.scalars))]
    head = ", ".join([*regions, *scalars, *extra])
    tuple_of = lambda names: "(" + "".join(n + ", " for n in names) + ")"  # noqa: E731
    source = f"def {spec.name}({head}):\n    return _call(_spec, {tuple_of(regions)}, {tuple_of(scalars)}, {', '.join(extra)})\n"
    space: dict[str, Any] = {"_call": _call, "_spec": spec}
    exec(source, space)
    fn = space[spec.name]
    fn.__annotations__ = {
        name: functools.reduce(lambda a, b: a | b, [u.privilege for u in uses])
        for name, uses in zip(regions, spec.params, strict=True)
    }
    if spec.returns:
        fn.__annotations__["return"] = float if spec.returns == "f" else int
    return fn


def python_task(spec: TaskSpec) -> Any:
    """A burnish task that also takes its color, the launch domain, and the colors that raise, as a bit set."""
    return rt.task(declared(spec, ("color", "domain", "fails")))


# ---- native tasks ----
_CODES = {"r": 0, "w": 1, "rw": 2, "+": 3, "*": 4, "min": 5, "max": 6}
native_pause = np.zeros(1, np.int64)


@functools.cache
def native_body() -> Any:
    """The body as a C function on burnish's NativeCall; its `user` words describe the task.

    user: [seed, result (0 none, 1 int, 2 float, 3 bit), n scalars, scalar is float.., n arrays, (code, is float)..]
    """
    from numba import carray, cfunc, types
    from numba.core import cgutils  # noqa: F401 - makes llvm types available to the intrinsic
    from numba.extending import intrinsic

    @intrinsic
    def pointer_u8(typingctx: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return types.CPointer(types.uint64)(types.int64), generate

    @intrinsic
    def as_float(typingctx: Any, word: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.bitcast(args[0], context.get_value_type(types.float64))

        return types.float64(types.uint64), generate

    @intrinsic
    def as_word(typingctx: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.bitcast(args[0], context.get_value_type(types.uint64))

        return types.uint64(types.float64), generate

    weights, salts = WEIGHTS, SALTS
    golden, odd, one = np.uint64(GOLDEN), _ODD, _ONE
    u = np.uint64
    pause_at = native_pause.ctypes.data
    from numba import njit

    @njit("uint64(uint64, uint64)", inline="always")
    def mix64(h: Any, x: Any) -> Any:
        h = (h ^ x) * golden
        return h ^ (h >> u(32))

    @njit("uint64(uint64, int64, int64)")
    def value_bits(h: Any, n: Any, is_float: Any) -> Any:
        v = (salts[n] ^ h) * odd
        v ^= v >> u(29)
        if is_float:
            return as_word(as_float((v >> u(12)) | one) - 1.5)
        return v

    ARRAY_WORDS = 19  # data, ndim, shape[8], strides[8], index

    @njit
    def offset_of(array: Any, linear: Any) -> Any:
        offset = 0
        for d in range(np.int64(array[1] & u(0xFFFFFFFF)) - 1, -1, -1):
            extent = np.int64(array[2 + d])
            offset += (linear % extent) * np.int64(array[10 + d])
            linear //= extent
        return offset

    @njit
    def size_of(array: Any) -> Any:
        n = 1
        for d in range(np.int64(array[1] & u(0xFFFFFFFF))):
            n *= np.int64(array[2 + d])
        return n

    @njit
    def reduced(code: Any, is_float: Any, old: Any, new: Any) -> Any:
        if is_float:
            a, b = as_float(old), as_float(new)
            if code == 3:
                a = a + b
            elif code == 4:
                a = a * (b + 1.0)
            elif code == 5:
                a = b if b < a else a
            else:
                a = b if b > a else a
            return as_word(a)
        if code == 3:
            return old + new
        if code == 4:
            return old * (new + u(1))
        if code == 5:
            return new if np.int64(new) < np.int64(old) else old
        return new if np.int64(new) > np.int64(old) else old

    @cfunc(types.void(types.CPointer(types.int64)))
    def body(call_words: Any) -> None:
        call = carray(call_words, 5)
        user = carray(pointer_u8(call[3]), 64)
        h = mix64(user[0], u(call[2]))
        n_scalars = np.int64(user[2])
        scalars = carray(pointer_u8(call[1]), n_scalars)
        for k in range(n_scalars):
            h = mix64(h, scalars[k])
        at = 3 + n_scalars
        n_arrays = np.int64(user[at])
        at += 1
        arrays = carray(pointer_u8(call[0]), n_arrays * ARRAY_WORDS)
        for k in range(n_arrays):
            array = arrays[k * ARRAY_WORDS : (k + 1) * ARRAY_WORDS]
            code = user[at + 2 * k]
            n = size_of(array)
            if (code == 0 or code == 2) and n > 0:
                total = u(0)
                for i in range(n):
                    total += carray(pointer_u8(np.int64(array[0]) + offset_of(array, i)), 1)[0] * weights[i]
                h = mix64(h, total)
        if carray(pointer_u8(pause_at), 1)[0] and h & u(3) == 0:  # let others run between reading and writing
            spin = h
            for _ in range(np.int64(h >> u(50))):
                spin = mix64(spin, u(1))
            if spin == u(12345):
                return
        for k in range(n_arrays):
            array = arrays[k * ARRAY_WORDS : (k + 1) * ARRAY_WORDS]
            code, is_float = np.int64(user[at + 2 * k]), np.int64(user[at + 2 * k + 1])
            if code == 0:
                continue
            salt = mix64(h, u(k))
            for i in range(size_of(array)):
                cell = carray(pointer_u8(np.int64(array[0]) + offset_of(array, i)), 1)
                made = value_bits(salt, i, is_float)
                if code == 1 or (code == 2 and i % 2 == 0):
                    cell[0] = made
                elif code > 2:
                    cell[0] = reduced(code, is_float, cell[0], made)
        kind = user[1]
        if kind == 1:
            call[4] = np.int64(h >> u(2))
        elif kind == 2:
            call[4] = np.int64(as_word(np.float64(np.int64(h >> u(11))) * 2.0**-53))
        elif kind == 3:
            call[4] = np.int64((h >> u(7)) & u(1))

    return body


_kept: list[Any] = []  # user words of native tasks live as long as the process, like their task definitions


def native_task(spec: TaskSpec) -> Any:
    """The same task with a native body; every use names its fields."""
    words = [spec.seed, "_ifb".index(spec.returns or "_"), len(spec.scalars), *(int(k == "f") for k in spec.scalars)]
    fields = [(u.kind, f) for uses in spec.params for u in uses for f in u.fields]
    # the words of scalars are read as they are, so their kinds are not needed here
    words = [*words[:3], *([0] * len(spec.scalars)), len(fields)]
    for kind, f in fields:
        words += [_CODES[kind], int(DTYPES[f][0] == "f8")]
    user = np.array(words, dtype=np.uint64)
    _kept.append(user)
    fn = declared(spec, ())
    scalars = "".join("d" if k == "f" else "q" for k in spec.scalars)
    result = "" if not spec.returns else "d" if spec.returns == "f" else "q"
    body = (native_body().address, user.ctypes.data, scalars, result)
    return _rt.make_task(TaskInfo(spec.name, fn, parameters_of(fn), bool(spec.returns), "native", native_body=body))


@functools.cache
def make_task(spec: TaskSpec) -> Any:
    return native_task(spec) if spec.native else python_task(spec)
