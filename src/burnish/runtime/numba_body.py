"""Bodies compiled by Numba: for each combination of argument layouts one C function that needs no GIL.

A task with ``kernel="numba"`` is compiled at its first launch with a combination of dtypes, dimensions, density and
contiguity. The generated entry function makes array views over the memory that native code hands over (see
``native/runtime/launch.hpp``) and calls the body; :attr:`Task.source` shows it. In the body

* one field of a dense subregion is an array (C-contiguous where the memory is, else strided; read-only under ``Read``),
* several fields are a named tuple of arrays, a sparse field is a named tuple ``(index, values)``,
* scalars are float64 or int64, as annotated; ``each`` is the row-major number of the color.

Division by zero follows NumPy, floating-point operations are neither fused nor reordered.
"""

from __future__ import annotations

import functools
import linecache
import re
from collections import namedtuple
from dataclasses import dataclass
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from burnish.core.errors import require
from burnish.runtime.errors import RuntimeProblem, TaskSignatureError, short_path
from burnish.runtime.failure import stored_parameter, wrote_read_only
from burnish.runtime.region import READ, REDUCE, Region
from burnish.runtime.signature import Parameter, TaskInfo, annotations_of

SCALARS = {float: "d", int: "q", np.float64: "d", np.int64: "q"}
_ARRAY_WORDS = 19  # of a NativeArray: data, ndim, shape[8], strides[8], index
_RESULT, _STATUS, _EXCEPTION = 4, 5, 7  # words of a NativeCall


class SparseValues(NamedTuple):
    """A field of a sparse subregion in a compiled body: ascending row-major positions, packed values."""

    index: Any
    values: Any


@dataclass(frozen=True)
class FieldLayout:
    """One array of an argument: ``ndim`` counts the region's dimensions (1 if sparse) and the inner ones."""

    name: str
    dtype: np.dtype[Any]
    ndim: int
    contiguous: bool
    readonly: bool


@dataclass(frozen=True)
class ArgumentLayout:
    """The arrays of one region argument."""

    parameter: str
    fields: tuple[FieldLayout, ...]
    sparse: bool
    grouped: bool  # the body gets an object with one attribute per field


@dataclass(frozen=True)
class Entry:
    """A compiled body: address of a ``NativeBody``, source of the generated function, what must stay alive."""

    address: int
    source: str
    keep: tuple[Any, ...]


_entries: dict[TaskInfo, list[Entry]] = {}


def scalar_types(fn: FunctionType, parameters: tuple[Parameter, ...]) -> tuple[int, int, str, str]:
    """``native_body`` of a task that is compiled later; TaskSignatureError for values other than numbers."""
    letters = ""
    for p in (p for p in parameters if p.privilege is None):
        if p.annotation not in SCALARS:
            raise TaskSignatureError(
                f"parameter '{p.name}' of numba task '{fn.__name__}' must be annotated float, int or with a privilege"
            )
        letters += SCALARS[p.annotation]
    result = annotations_of(fn).get("return")
    if result not in (None, type(None), *SCALARS):
        raise TaskSignatureError(f"numba task '{fn.__name__}' returns {result!r}; it can return float, int or nothing")
    return 0, 0, letters, SCALARS.get(result, "")  # type: ignore[arg-type]


def compile_layout(info: TaskInfo, regions: tuple[Region, ...], contiguous: tuple[bool, ...], check: bool) -> int:
    """Called at the first launch with a combination of layouts; returns the address of the compiled body."""
    layouts = tuple(layout_of(p, r, c) for p, r, c in zip(info.regions, regions, contiguous, strict=True))
    entry = compile_entry(info, layouts, bool(check))
    _entries.setdefault(info, []).append(entry)
    return entry.address


def source_of(info: TaskInfo) -> str:
    """The entry functions compiled so far."""
    entries = _entries.get(info, [])
    return "\n".join(e.source for e in entries) or "# compiled at the first launch, when the dtypes are known\n"


def layout_of(parameter: Parameter, region: Region, contiguous: bool) -> ArgumentLayout:
    """How the arrays of a region argument lie in memory."""
    assert parameter.privilege is not None
    known = {f.name: f for f in region.fields}
    outer = len(region.ispace.bounds[0]) if region.dense else 1
    fields = tuple(
        FieldLayout(
            name, known[name].dtype, outer + len(known[name].inner), contiguous or r.kind == REDUCE, r.kind == READ
        )
        for r in parameter.privilege.requirements
        for name in r.fields or known
    )
    grouped = len(fields) > 1 or any(r.fields for r in parameter.privilege.requirements)
    return ArgumentLayout(parameter.name, fields, not region.dense, grouped)


def compile_entry(info: TaskInfo, layouts: tuple[ArgumentLayout, ...], check: bool) -> Entry:
    """Compile the body for these layouts; ``check`` adds bounds checks.

    Raises TaskSignatureError with Numba's reason, PrivilegeError if the body stores into a ``Read`` argument.
    """
    numba = require("numba", needed_by=f"task '{info.name}'", extra="all")
    assert isinstance(info.fn, FunctionType)
    source, names = _generate(info, layouts)
    filename = f"<burnish entry of {info.name}, {len(linecache.cache)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(compile(source, filename, "exec"), names)
    body = numba.njit(nogil=True, error_model="numpy", boundscheck=check)(info.fn)
    types = tuple(names["argument_types"])
    try:
        body.compile(types)
    except Exception as error:
        raise _explain(info, error) from error
    compiled = body.overloads[types]
    returned = compiled.signature.return_type
    if info.returns and not isinstance(returned, (numba.types.Number, numba.types.Boolean)):
        raise TaskSignatureError(
            f"task '{info.declaration}' is annotated to return a number, but its body returns {returned}"
        )
    names["body"] = _runner(compiled)
    entry = numba.cfunc(numba.void(numba.int64))(names["entry"])
    return Entry(entry.address, source, (entry, body, names))


def _explain(info: TaskInfo, error: Exception) -> RuntimeProblem:
    """Numba's error as one line: its reason, and the line of the body."""
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("Failed in ")]
    reason = lines[0] if lines else type(error).__name__
    if reason.endswith(":") and len(lines) > 1:
        reason = f"{reason} {lines[1].lstrip('> ')}"
    found = re.search(r'File "([^"]+)", line (\d+)', text)
    if found and "readonly array" in text:
        written = stored_parameter(info, int(found[2]))
        if written:
            return wrote_read_only(info, written)
    place = f" at {short_path(found[1])}:{found[2]}" if found else ""
    return TaskSignatureError(f"task '{info.name}' cannot be compiled by Numba{place}: {reason}")


# ---- generation ----
def _array_type(field: FieldLayout, sparse: bool) -> Any:
    import numba
    from numba.np.numpy_support import from_dtype

    layout = "C" if field.contiguous or sparse else "A"
    return numba.types.Array(from_dtype(field.dtype), field.ndim, layout, readonly=field.readonly)


def _view(name: str, record: int, ndim: int) -> str:
    """Expression for array ``record`` of the call."""
    at = record * _ARRAY_WORDS
    shape = "".join(f"array[{at + 2 + d}], " for d in range(ndim))
    strides = "".join(f"array[{at + 10 + d}], " for d in range(ndim))
    return f"{name}(array[{at}], ({shape}), ({strides}))"


def _argument(layout: ArgumentLayout, record: int, names: dict[str, Any]) -> tuple[str, Any]:
    """Expression and Numba type of one region argument; puts what the expression uses into ``names``."""
    import numba

    index_type = numba.types.Array(numba.int64, 1, "C", readonly=True)
    parts, types = [], []
    for k, field in enumerate(layout.fields, record):
        kind = _array_type(field, layout.sparse)
        names[f"view{k}"] = _viewer(kind)
        text = _view(f"view{k}", k, field.ndim)
        if layout.sparse:
            names["index_view"], names["SparseValues"] = _viewer(index_type), SparseValues
            at = k * _ARRAY_WORDS
            text = f"SparseValues(index_view(array[{at + 18}], (array[{at + 2}],), (8,)), {text})"
            kind = numba.types.BaseTuple.from_types((index_type, kind), SparseValues)
        parts.append(text)
        types.append(kind)
    if not layout.grouped:
        return parts[0], types[0]
    group = namedtuple(f"{layout.parameter}_fields", [f.name for f in layout.fields])  # type: ignore[misc]
    names[group.__name__] = group
    inside = ",\n            ".join(parts)
    return f"{group.__name__}(\n            {inside},\n        )", numba.types.BaseTuple.from_types(types, group)


def _generate(info: TaskInfo, layouts: tuple[ArgumentLayout, ...]) -> tuple[str, dict[str, Any]]:
    """Source of the entry function and the names it uses."""
    import numba

    names: dict[str, Any] = {"words": _viewer(numba.types.Array(numba.int64, 1, "C"))}
    names["floats"] = _viewer(numba.types.Array(numba.float64, 1, "C"))
    left, record, scalar = list(layouts), 0, 0
    arguments, types = [], []
    for parameter in info.parameters:
        if parameter.privilege is None:
            kind = SCALARS[parameter.annotation]
            arguments.append(f"{'real' if kind == 'd' else 'whole'}[{scalar}],  # {parameter.name}")
            types.append(numba.float64 if kind == "d" else numba.int64)
            scalar += 1
            continue
        layout = left.pop(0)
        text, kind = _argument(layout, record, names)
        arguments.append(f"{text},  # {parameter.name}")
        types.append(kind)
        record += len(layout.fields)
    names["argument_types"] = types
    store = ""
    if info.returns:
        assert info.native_body is not None
        store = f"{'floats' if info.native_body[3] == 'd' else 'words'}(call + {8 * _RESULT}, (1,), (8,))[0] = "
    inside = "\n        ".join(arguments)
    source = f"""\
# Entry of numba task '{info.name}': makes its arguments from the native call at address `call`.
def entry(call):
    head = words(call, (8,), (8,))  # arrays, scalars, point, user, result, status, message, exception
    array = words(head[0], ({max(1, record * _ARRAY_WORDS)},), (8,))  # per array: data, ndim, shape[8], strides[8], index
    whole = words(head[1], ({max(1, scalar)},), (8,))
    real = floats(head[1], ({max(1, scalar)},), (8,))
    {store}body(call, (
        {inside}
    ))
"""
    return source, names


# ---- what the generated code is made of ----
@functools.cache
def _viewer(kind: Any) -> Any:
    """A compiled function (address, shape, strides in bytes) -> array of type ``kind``, over memory of others."""
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic
    from numba.np.arrayobj import make_array, populate_array

    @intrinsic  # type: ignore[untyped-decorator]
    def view(typing_context: Any, address: Any, shape: Any, strides: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array = make_array(kind)(context, builder)
            item = context.get_abi_sizeof(context.get_data_type(kind.dtype))
            populate_array(
                array,
                data=builder.inttoptr(args[0], array.data.type),
                shape=cgutils.unpack_tuple(builder, args[1]),
                strides=cgutils.unpack_tuple(builder, args[2]),
                itemsize=context.get_constant(types.intp, item),
                meminfo=None,
            )
            return array._getvalue()

        dimensions = types.UniTuple(types.int64, kind.ndim)
        return kind(types.int64, dimensions, dimensions), generate

    return view


def _runner(compiled: Any) -> Any:
    """A compiled function (address of the call, arguments) -> result, that stores an error of the body in the call."""
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    body = compiled.fndesc

    @intrinsic  # type: ignore[untyped-decorator]
    def run(typing_context: Any, call: Any, arguments: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            context.add_linking_libs([compiled.library])
            function = context.declare_function(builder.module, body)
            values = cgutils.unpack_tuple(builder, args[1])
            status, result = context.call_conv.call_function(builder, function, body.restype, body.argtypes, values)
            with cgutils.if_unlikely(builder, status.is_error):
                words = builder.inttoptr(args[0], cgutils.intp_t.as_pointer())
                builder.store(context.get_constant(types.intp, 1), builder.gep(words, [cgutils.int32_t(_STATUS)]))
                with builder.if_then(status.is_user_exc):
                    _keep_exception(context, builder, status, builder.gep(words, [cgutils.int32_t(_EXCEPTION)]))
            return result

        return body.restype(types.int64, arguments), generate

    return run


def _keep_exception(context: Any, builder: Any, status: Any, slot: Any) -> None:
    """Code that stores a new reference to (class, arguments, place) of an exception."""
    python = context.get_python_api(builder)
    gil = python.gil_ensure()
    details = context.call_conv.unpack_exception(builder, python, status)
    builder.store(builder.ptrtoint(details, slot.type.pointee), slot)
    python.gil_release(gil)
