"""``burnish doctor``: what is installed, what each extra would add, what hardware was found."""

from __future__ import annotations

import importlib
import json as jsonlib
import platform
import sys
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError
from typing import Any

import typer

import burnish
from burnish.cli import options
from burnish.core import machine, packages
from burnish.core.errors import EXIT_ENVIRONMENT, EXIT_OK
from burnish.report import Report


@dataclass(frozen=True)
class Findings:
    """All that the doctor looks at. ``problems`` are what keeps burnish from working, each with its remedy."""

    burnish: str
    python: str
    executable: str
    native: tuple[str, ...] | None
    machine: machine.Machine
    torch: str | None
    base: tuple[packages.Package, ...] | None
    extras: tuple[packages.Extra, ...] | None
    problems: tuple[str, ...]


def command(json: options.Json = False) -> int:
    """Show what is installed, what each extra would add, and what hardware was found."""
    findings = examine()
    if json:
        typer.echo(jsonlib.dumps(_as_dict(findings), indent=2))
    else:
        _report(findings).to_terminal()
    return EXIT_ENVIRONMENT if findings.problems else EXIT_OK


def examine() -> Findings:
    """Look at everything; nothing that is absent is an error."""
    problems: list[str] = []
    try:
        native: tuple[str, ...] | None = _native_parts()
    except ImportError as error:
        native = None
        problems.append(f"the native module does not load ({error}): install burnish, which needs a C++ compiler")
    try:
        base: tuple[packages.Package, ...] | None = packages.base()
        extras: tuple[packages.Extra, ...] | None = packages.extras()
    except PackageNotFoundError:
        base = extras = None
    for package in base or ():
        if package.missing:
            here = f"{package.installed} is here" if package.installed else "it is not here"
            problems.append(f"burnish needs {package.wanted}, {here}: pip install '{package.wanted}'")
    return Findings(
        burnish=burnish.__version__,
        python=f"{platform.python_version()} ({platform.python_implementation()})",
        executable=sys.executable,
        native=native,
        machine=machine.inspect(),
        torch=_torch(),
        base=base,
        extras=extras,
        problems=tuple(problems),
    )


def _native_parts() -> tuple[str, ...]:
    module = importlib.import_module("burnish._native")
    return tuple(sorted(name for name in vars(module) if not name.startswith("_")))


def _torch() -> str | None:
    """What PyTorch, if it is here, says about devices; it may also fail in its own ways, which are told."""
    try:
        import torch
    except ImportError:
        return None
    except Exception as error:
        return f"does not load: {error}"
    cuda = (
        f"CUDA {torch.version.cuda}, {torch.cuda.device_count()} devices" if torch.cuda.is_available() else "CPU only"
    )
    return f"{torch.__version__}, {cuda}"


def _as_dict(findings: Findings) -> dict[str, Any]:
    made = asdict(findings)
    for extra, record in zip(findings.extras or (), made["extras"] or (), strict=True):
        record |= {"complete": extra.complete, "command": extra.command}
    return made


def _report(findings: Findings) -> Report:
    report = Report(f"burnish {findings.burnish}")
    for problem in findings.problems:
        report.text(f"**Problem:** {problem}")
    found = findings.machine
    native = "does not load" if findings.native is None else ", ".join(findings.native) or "loads, no parts yet"
    rows = [
        ("Python", findings.python),
        ("", findings.executable),
        ("native module", native),
        ("system", found.system),
        ("processor", found.processor),
        ("cores", f"{found.usable_cores} usable of {found.cores}"),
        ("memory", f"{_gib(found.available_memory)} free of {_gib(found.memory)}"),
        ("C++ compiler", found.compiler or "none found (only needed to build burnish)"),
        *(("GPU", f"{gpu.name}, {_gib(gpu.memory)}, driver {gpu.driver}") for gpu in found.gpus),
        *([] if found.gpus else [("GPU", "none found (never required)")]),
        *([("PyTorch", findings.torch)] if findings.torch else []),
    ]
    report.table(["what", "found"], rows)
    if findings.extras is None or findings.base is None:
        report.text("Extras are not known: burnish runs from a source tree that is not installed; `make demo` does.")
        return report
    report.table(
        ["extra", "package", "installed", "to install"],
        [row for extra in _with_base(findings.base, findings.extras) for row in _rows(extra)],
    )
    return report


def _with_base(base: tuple[packages.Package, ...], extras: tuple[packages.Extra, ...]) -> tuple[packages.Extra, ...]:
    """The base first; ``all`` only repeats the others."""
    return (packages.Extra("(base)", base), *(extra for extra in extras if extra.name != "all"))


def _rows(extra: packages.Extra) -> list[tuple[str, str, str | None, str]]:
    rows = []
    for number, package in enumerate(extra.packages):
        version = (
            package.installed if package.satisfied or package.installed is None else f"{package.installed}, too old"
        )
        command = extra.command if number == 0 and not extra.complete else ""
        rows.append((extra.name if number == 0 else "", package.wanted, version, command))
    return rows


def _gib(size: float) -> str:
    return f"{size / 2**30:.1f} GiB"
