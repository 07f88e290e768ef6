"""Bodies given as function pointers, and the errors of all bodies that run without Python."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np

from burnish._native import runtime as _rt
from burnish.runtime.errors import RuntimeProblem, TaskSignatureError, short_path
from burnish.runtime.numba_body import SCALARS
from burnish.runtime.privilege import Privilege
from burnish.runtime.signature import Parameter, TaskInfo


class NativeBodyError(RuntimeProblem):
    """A native body returned a status other than 0."""


def _address(body: Any) -> int:
    """Address of an int, a PyCapsule, a ctypes function or anything with an ``address`` (a Numba cfunc)."""
    if isinstance(body, int):
        return body
    if isinstance(getattr(body, "address", None), int):
        return int(body.address)
    if type(body).__name__ == "PyCapsule":
        name = ctypes.pythonapi.PyCapsule_GetName
        name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        return int(pointer(body, name(body)))
    try:
        return ctypes.cast(body, ctypes.c_void_p).value or 0
    except (ctypes.ArgumentError, TypeError):
        raise TaskSignatureError(f"native_task needs a function pointer, got {type(body).__name__}") from None


def _parameter(task: str, name: str, declared: Any) -> Parameter:
    if isinstance(declared, Privilege):
        return Parameter(name, declared)
    if isinstance(declared, tuple) and 2 <= len(declared) <= 3 and isinstance(declared[0], Privilege):
        return Parameter(
            name, declared[0], dtype=np.dtype(declared[1]), ndim=declared[2] if len(declared) == 3 else None
        )
    if declared in SCALARS:
        return Parameter(name, annotation=declared)
    raise TaskSignatureError(
        f"parameter '{name}' of native task '{task}': declare a privilege, (privilege, dtype), float or int"
    )


def native_task(
    body: Any,
    parameters: Mapping[str, Any],
    *,
    name: str,
    returns: type | None = None,
    user: int = 0,
    priority: int = 0,
    deterministic: bool = True,
    idempotent: bool = False,
    code_hash: int = 0,
) -> Any:
    """A task whose body is compiled code: ``void body(NativeCall *call)``, called without the GIL, by any thread.

    body: the function's address as an int, a PyCapsule, a ctypes function, or an object with ``.address``. Whoever owns
    the code keeps it alive. parameters: name -> privilege, ``(privilege, dtype)``, ``(privilege, dtype, dimensions)``
    for regions; ``float`` or ``int`` for numbers. returns: None, ``float`` or ``int``. user: handed to every call.
    code_hash: identifies the code for lineage.

    The ABI (``native/runtime/launch.hpp``; all integers 64 bit)::

        struct NativeArray {
            char *data; int64_t ndim;
            int64_t shape[8], strides[8];  // outer dimensions, then the field's inner shape; strides in bytes
            const int64_t *index;          // sparse subregions: row-major root positions of the packed points; else NULL
        };
        union Scalar { void *object; double f; int64_t i; };
        struct NativeCall {
            const NativeArray *arrays;     // one per (region parameter, field), in declaration order
            const Scalar *scalars;         // numbers, in declaration order
            int64_t point;                 // row-major color of an index launch, -1 otherwise
            void *user;
            Scalar result;                 // to be set if the task returns a value
            int64_t status;                // to be set to something else than 0 if the body fails,
            const char *message;           // then optionally also to a static text
            void *exception;               // (for bodies that know Python: an object, new reference)
        };

    Sparse subregions come packed (one outer dimension) and are written back after the body. ``Reduce`` arguments are
    packed buffers filled with the identity. A body that fails makes its task fail with NativeBodyError.

    Raises TaskSignatureError if the declaration makes no sense.
    """
    if returns is not None and returns not in SCALARS:
        raise TaskSignatureError(f"native task '{name}' returns {returns!r}; it can return float, int or nothing")
    address = _address(body)
    if not address:
        raise TaskSignatureError(f"native task '{name}': the function pointer is null")
    declared = tuple(_parameter(name, p, d) for p, d in parameters.items())
    letters = "".join(SCALARS[p.annotation] for p in declared if p.privilege is None)
    native = (address, user, letters, SCALARS[returns] if returns is not None else "")
    return _rt.make_task(
        TaskInfo(
            name,
            None,
            declared,
            returns is not None,
            "native",
            priority,
            deterministic,
            idempotent,
            code_hash=code_hash,
            native_body=native,
        )
    )


def raise_native_failure(info: TaskInfo, status: int, message: str | None, details: Any) -> None:
    """Raise what a body without Python failed with; native code calls this with the GIL held."""
    if isinstance(details, BaseException):
        raise details
    if details is not None:  # Numba's (class, arguments, (function, file, line))
        kind, arguments, place = details
        error = kind(*(arguments or ()))
        if place is not None:
            error.add_note(f"raised at {short_path(place[1])}:{place[2]}, in {place[0]}")
        raise error
    raise NativeBodyError(f"task '{info.name}' failed: {message or f'its body returned status {status}'}")
