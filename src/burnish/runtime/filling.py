"""Filling a region with one value: a launch like any other."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from burnish._native import runtime as _rt
from burnish.runtime.privilege import Privilege, Requirement
from burnish.runtime.region import WRITE, Field, Region
from burnish.runtime.signature import Parameter, TaskInfo


@functools.cache
def _fill_task(field: str) -> Any:
    def fill(out: Any, value: Any) -> None:
        getattr(out, field)[...] = value

    out = Parameter("out", Privilege((Requirement(WRITE, (field,)),)))
    return _rt.make_task(TaskInfo("fill", fill, (out, Parameter("value"))))


def fill_field(region: Region, field: Field, value: npt.ArrayLike) -> None:
    """Launch the filling of ``field`` at all points of ``region``; ``value`` broadcasts to one point's inner shape."""
    point = np.array(np.broadcast_to(np.asarray(value, dtype=field.dtype), field.inner))
    _fill_task(field.name)(region, point)
