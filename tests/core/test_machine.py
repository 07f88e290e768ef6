"""The machine: limits of a container count, absent helpers do not."""

import os
from pathlib import Path

import psutil
import pytest

from burnish.core import machine


@pytest.mark.parametrize(
    ("text", "cores"),
    [("max 100000", None), ("100000 100000", 1), ("150000 100000", 2), ("50000 100000", 1), ("nonsense", None)],
)
def test_usable_cores_respect_the_container(tmp_path: Path, text: str, cores: int | None) -> None:
    (tmp_path / "cpu.max").write_text(text)
    allowed = len(os.sched_getaffinity(0))
    assert machine.usable_cores(tmp_path) == (allowed if cores is None else min(allowed, cores))


def test_usable_cores_without_a_container(tmp_path: Path) -> None:
    assert machine.usable_cores(tmp_path) == len(os.sched_getaffinity(0))


def test_inspection_agrees_with_the_system() -> None:
    found = machine.inspect()
    assert 1 <= found.usable_cores <= found.cores == psutil.cpu_count()
    assert 0 < found.available_memory <= found.memory <= psutil.virtual_memory().total


def test_gpu_lines() -> None:
    listing = "NVIDIA A100, 80GB, SXM, 81920, 550.54\n[N/A]\nNVIDIA H200, 143771, 570.86.15\n\nName, [N/A], 1\n"
    assert machine.parse_gpus(listing) == (
        machine.Gpu("NVIDIA A100, 80GB, SXM", 81920 * 2**20, "550.54"),
        machine.Gpu("NVIDIA H200", 143771 * 2**20, "570.86.15"),
    )


def test_compiler_by_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "cxx"
    fake.write_text("#!/bin/sh\necho 'our compiler 1.0'\necho more\n")
    fake.chmod(0o755)
    monkeypatch.setenv("CXX", f"{fake} -std=c++20")
    assert machine.compiler() == "our compiler 1.0"
    fake.write_text("#!/bin/sh\nexit 1\n")
    assert machine.compiler() is None
    monkeypatch.setenv("CXX", "a-compiler-that-is-not-here")
    assert machine.compiler() is None
