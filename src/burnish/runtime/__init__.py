"""Sequential programs, found parallelism: tasks over regions, run in parallel with the sequential result.

>>> from burnish import runtime as rt
>>> from burnish.runtime import task, Read, ReadWrite, each
>>> @task
... def double(x: ReadWrite):
...     x *= 2
>>> u = rt.region(8, "f8", fill=1.0)
>>> pu = rt.block(u, 2)
>>> double.map(2, pu[each])
>>> float(u.numpy().sum())
16.0
"""

from pathlib import Path as _Path

from burnish._native import runtime as _rt
from burnish.runtime import conflicts as _conflicts  # noqa: F401 - its messages register themselves
from burnish.runtime.access import Constant, SparseField, constant, fields_view, gather, scatter, scatter_add
from burnish.runtime.check import on_launch, run_checked
from burnish.runtime.context import (
    Context,
    RunReport,
    Settings,
    context,
    fence,
    memory,
    start,
    start_default,
    stats,
    stop,
    trace,
    traces,
)
from burnish.runtime.errors import raise_error
from burnish.runtime.failure import explain_failure
from burnish.runtime.future import Future, FutureMap
from burnish.runtime.inner import run_inner
from burnish.runtime.introspect import graph, profile
from burnish.runtime.mapper import Mapper
from burnish.runtime.memory import make_room_for_launch
from burnish.runtime.native_body import NativeBodyError, native_task, raise_native_failure
from burnish.runtime.numba_body import compile_layout
from burnish.runtime.partition import Partition, block, by_color, by_sets, ghost, image, preimage, restrict
from burnish.runtime.privilege import Privilege, Read, ReadWrite, Reduce, Write, reduction
from burnish.runtime.region import IndexSpace, Rect, Region, attach, region
from burnish.runtime.signature import TaskInfo, bind, pass_by_value
from burnish.runtime.task import Task, first_launch, task
from burnish.runtime.verify import EquivalenceError, verify

each = _rt.each

_rt.set_arena(memory())
_rt.register_front_end(
    {
        "Region": Region,
        "Partition": Partition,
        "Future": Future,
        "FutureMap": FutureMap,
        "error": raise_error,
        "bind": bind,
        "value": pass_by_value,
        "start": start_default,
        "first_launch": first_launch,
        "inner": run_inner,
        "SparseField": SparseField,
        "fields_view": fields_view,
        "on_failure": explain_failure,
        "wrap_body": run_checked,
        "on_launch": on_launch,
        "compile": compile_layout,
        "make_room": make_room_for_launch,
        "native_failure": raise_native_failure,
        "package_dir": str(_Path(__file__).parent.parent),
    }
)

__all__ = [
    "Constant", "Context", "EquivalenceError", "Future", "FutureMap", "IndexSpace", "Mapper", "NativeBodyError",
    "Partition", "Privilege", "Read", "ReadWrite", "Rect", "Reduce", "Region", "RunReport", "Settings", "SparseField",
    "Task", "TaskInfo", "Write", "attach", "block", "by_color", "by_sets", "constant", "context", "each", "fence",
    "gather", "ghost", "graph", "image", "native_task", "preimage", "profile", "reduction", "region", "restrict",
    "scatter", "scatter_add", "start", "stats", "stop", "task", "trace", "traces", "verify",
]  # fmt: skip
