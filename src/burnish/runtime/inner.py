"""Inner tasks: composition of launches. The body runs at its place on the launching thread, with regions as arguments."""

from __future__ import annotations

from typing import Any

from burnish.runtime.errors import PrivilegeError, handles
from burnish.runtime.future import Future
from burnish.runtime.privilege import NAMES, operator_name
from burnish.runtime.region import REDUCE, Region
from burnish.runtime.signature import TaskInfo, pass_by_value


def run_inner(info: TaskInfo, args: tuple[Any, ...], color: Any) -> Any:
    """Run the body: regions as they are, futures as their values, everything else by value."""
    assert info.fn is not None
    passed = []
    for index, (parameter, value) in enumerate(zip(info.parameters, args, strict=True)):
        if isinstance(value, Future):
            value = value.get()
        passed.append(value if parameter.privilege is not None else pass_by_value(info, index, value))
    try:
        return info.fn(*passed)
    except Exception as error:
        error.add_note(f"in inner task '{info.name}'{'' if color is None else f', color {color}'}")
        raise


@handles("bounds")
def _bounds(
    inner: TaskInfo, child: TaskInfo | None, region: Region, privilege: int, op: int, field: int
) -> PrivilegeError:
    label = (
        f"'{region.name}'"
        if len(region.root.fields) == 1
        else f"'{region.name}' (field '{region.root.fields[field].name}')"
    )
    needs = f'Reduce["{operator_name(op)}"]' if privilege == REDUCE else NAMES[privilege]
    who = f"task '{child.name}'" if child else "access by the program"
    has = ", ".join(str(p) for p in inner.regions) or "no regions"
    return PrivilegeError(
        f"{who} needs {needs} on {label}, which inner task '{inner.name}' does not have; it declares {has}. "
        f"Widen its privileges or pass the region to it"
    )
