"""Random array programs that run on NumPy and on bn, statement by statement alike."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

Draw = Callable[[st.SearchStrategy[Any]], Any]

SHAPES = [(6, 7), (7,), (6, 1), (1, 7), (6, 7), (3, 6, 7), ()]
DTYPES = ["f8", "f8", "f8", "f4", "i8", "i4", "u1", "?", "c16"]
BINARY = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "minimum",
    "maximum",
    "less",
    "equal",
    "floor_divide",
    "remainder",
    "power",
]
UNARY = ["negative", "absolute", "sqrt", "exp", "sin", "tanh", "isnan", "square", "log", "cos"]
OPERATORS = ["add", "sub", "mul", "truediv", "lt", "eq", "ge", "pow"]
INPLACE = ["iadd", "isub", "imul", "itruediv"]
SCALARS: list[Any] = [2, 3.5, -1, 0.5, True, np.float32(1.5), np.int16(7), 2 + 1j, 1, 0]


def initial(seed: int, dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    values = rng.integers(-9, 10, shape) * 0.37
    if dtype == "c16":
        return np.asarray(values + 1j * rng.integers(-5, 5, shape))
    if dtype == "?":
        return np.asarray(values > 0)
    return np.asarray(np.abs(values) if dtype[0] == "u" else values).astype(dtype)


@st.composite
def index(draw: Draw, shape: tuple[int, ...]) -> Any:
    items: list[Any] = []
    for n in shape:
        kind = draw(st.sampled_from(["all", "slice", "slice", "int"]))
        if kind == "all" or n == 0:
            items.append(slice(None))
        elif kind == "int":
            items.append(draw(st.integers(-n, n - 1)))
        else:
            bound = st.none() | st.integers(-n, n)
            items.append(slice(draw(bound), draw(bound), draw(st.sampled_from([None, 1, 1, 2, -1]))))
    if shape and draw(st.booleans()):
        items = items[: draw(st.integers(1, len(items)))]
    if draw(st.integers(0, 7)) == 0:
        items.insert(draw(st.integers(0, len(items))), None)
    return tuple(items)


Statement = Callable[[Any, list[Any]], None]


class Recorder:
    """Draws statements while running them on NumPy, so that shapes are known; keeps them for other array modules."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        specs = draw(
            st.lists(
                st.tuples(st.integers(0, 99), st.sampled_from(DTYPES), st.sampled_from(SHAPES)), min_size=2, max_size=4
            )
        )
        self.starts = [initial(*spec) for spec in specs]
        self.arrays: list[Any] = [x.copy() for x in self.starts]
        self.statements: list[Statement] = []
        self.texts: list[str] = []

    def step(self, text: str, run: Statement) -> None:
        before = list(self.arrays)
        try:
            run(np, self.arrays)
        except (TypeError, ValueError, OverflowError):
            self.arrays = before
            return
        if any(np.asarray(x).dtype.kind == "f" and np.asarray(x).dtype.itemsize not in (4, 8) for x in self.arrays):
            self.arrays = before  # float16 is not available
            return
        if any(isinstance(x, np.ndarray) and x.size > 5000 for x in self.arrays):
            self.arrays = before
            return
        self.statements.append(run)
        self.texts.append(text)

    def pick(self) -> int:
        return int(self.draw(st.integers(0, len(self.arrays) - 1)))

    def operand(self) -> tuple[str, Callable[[list[Any]], Any]]:
        if self.draw(st.integers(0, 3)) == 0:
            value = self.draw(st.sampled_from(SCALARS))
            return repr(value), lambda arrays: value
        i = self.pick()
        shape = np.shape(self.arrays[i])
        if shape and self.draw(st.booleans()):
            key = self.draw(index(shape))
            return f"v{i}[{key}]", lambda arrays: arrays[i][key]
        if shape and self.draw(st.integers(0, 5)) == 0:
            return f"v{i}.T", lambda arrays: arrays[i].T
        return f"v{i}", lambda arrays: arrays[i]

    def statement(self) -> None:
        kind = self.draw(
            st.sampled_from(
                [
                    "binary",
                    "operator",
                    "unary",
                    "inplace",
                    "assign",
                    "assign",
                    "mask",
                    "where",
                    "roll",
                    "reshape",
                    "out",
                ]
            )
        )
        getattr(self, f"add_{kind}")()

    def keep(self, text: str, make: Callable[[Any, list[Any]], Any]) -> None:
        at = self.draw(st.integers(0, 5))

        def run(xp: Any, arrays: list[Any]) -> None:
            value = make(xp, arrays)
            if at < len(arrays):
                arrays[at] = value
            else:
                arrays.append(value)

        self.step(f"v[{at}] = {text}", run)

    def add_binary(self) -> None:
        name = self.draw(st.sampled_from(BINARY))
        (ta, a), (tb, b) = self.operand(), self.operand()
        self.keep(f"xp.{name}({ta}, {tb})", lambda xp, v: getattr(xp, name)(a(v), b(v)))

    def add_operator(self) -> None:
        name = self.draw(st.sampled_from(OPERATORS))
        (ta, a), (tb, b) = self.operand(), self.operand()
        self.keep(f"{name}({ta}, {tb})", lambda xp, v: getattr(operator, name)(a(v), b(v)))

    def add_unary(self) -> None:
        name = self.draw(st.sampled_from(UNARY))
        ta, a = self.operand()
        self.keep(f"xp.{name}({ta})", lambda xp, v: getattr(xp, name)(a(v)))

    def add_inplace(self) -> None:
        name = self.draw(st.sampled_from(INPLACE))
        i = self.pick()
        tb, b = self.operand()
        shape = np.shape(self.arrays[i])
        if shape and self.draw(st.booleans()):
            key = self.draw(index(shape))

            def on_view(xp: Any, v: list[Any]) -> None:
                v[i][key] = getattr(operator, name)(v[i][key], b(v))

            self.step(f"v{i}[{key}] {name} {tb}", on_view)
        else:

            def on_all(xp: Any, v: list[Any]) -> None:
                v[i] = getattr(operator, name)(v[i], b(v))

            self.step(f"v{i} {name} {tb}", on_all)

    def add_assign(self) -> None:
        i = self.pick()
        tb, b = self.operand()
        key = self.draw(index(np.shape(self.arrays[i])))

        def run(xp: Any, v: list[Any]) -> None:
            value = b(v)
            kinds = "?biufc"
            if kinds.index(
                np.result_type(value).kind if not hasattr(value, "dtype") else value.dtype.kind
            ) > kinds.index(v[i].dtype.kind):
                raise TypeError("loses digits: the result is the machine's business")
            v[i][key] = value

        self.step(f"v{i}[{key}] = {tb}", run)

    def add_mask(self) -> None:
        i = self.pick()
        value = self.draw(st.sampled_from([0, 1]))

        def run(xp: Any, v: list[Any]) -> None:
            if not np.shape(v[i]):
                raise TypeError("a scalar")
            v[i][v[i] == v[i].dtype.type(1)] = value

        self.step(f"v{i}[v{i} == 1] = {value}", run)

    def add_where(self) -> None:
        (ta, a), (tb, b), (tc, c) = self.operand(), self.operand(), self.operand()
        self.keep(f"xp.where({ta}, {tb}, {tc})", lambda xp, v: xp.where(a(v), b(v), c(v)))

    def add_roll(self) -> None:
        ta, a = self.operand()
        shift = self.draw(st.integers(-9, 9))
        axis = self.draw(st.sampled_from([None, 0, -1]))
        self.keep(f"xp.roll({ta}, {shift}, {axis})", lambda xp, v: xp.roll(a(v), shift, axis))

    def add_reshape(self) -> None:
        ta, a = self.operand()
        shape = self.draw(st.sampled_from([(-1,), (7, 6), (2, -1), (42,), (6, 7), (3, 14)]))
        self.keep(f"xp.reshape({ta}, {shape})", lambda xp, v: xp.reshape(a(v), shape))

    def add_out(self) -> None:
        name = self.draw(st.sampled_from(["add", "multiply", "subtract", "maximum"]))
        i = self.pick()
        (ta, a), (tb, b) = self.operand(), self.operand()
        shape = np.shape(self.arrays[i])
        key = self.draw(index(shape)) if shape else ()

        def run(xp: Any, v: list[Any]) -> None:
            if not np.shape(v[i]) or not any(isinstance(k, slice) for k in key):
                raise TypeError("a scalar")
            getattr(xp, name)(a(v), b(v), out=v[i][key])

        self.step(f"xp.{name}({ta}, {tb}, out=v{i}[{key}])", run)


@st.composite
def programs(draw: Draw, length: int = 12) -> Recorder:
    recorder = Recorder(draw)
    with np.errstate(all="ignore"):
        for _ in range(draw(st.integers(1, length))):
            recorder.statement()
    return recorder
