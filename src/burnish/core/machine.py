"""What this machine has: cores that may be used, memory, compiler, GPUs."""

from __future__ import annotations

import math
import os
import platform
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_PATIENCE = 10.0  # seconds that a helper program may take to answer


@dataclass(frozen=True)
class Gpu:
    """A CUDA device as its driver describes it; memory in bytes."""

    name: str
    memory: int
    driver: str


@dataclass(frozen=True)
class Machine:
    """The machine as a program finds it; memory in bytes, limits of the container included."""

    system: str
    processor: str
    cores: int
    usable_cores: int
    memory: int
    available_memory: int
    compiler: str | None
    gpus: tuple[Gpu, ...]


def inspect() -> Machine:
    """Look at the machine; takes well under a second, longer if the driver of a GPU has to wake up."""
    import psutil

    memory = psutil.virtual_memory()
    limit = _memory_limit()
    return Machine(
        system=f"{platform.system()} {platform.release()}",
        processor=_processor(),
        cores=os.cpu_count() or 1,
        usable_cores=usable_cores(),
        memory=min(memory.total, limit),
        available_memory=min(memory.available, limit),
        compiler=compiler(),
        gpus=gpus(),
    )


def usable_cores(cgroup: Path = _CGROUP) -> int:
    """Cores that this process may use: those it may run on, and no more than the container's share; at least 1."""
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # only Linux knows affinity
        allowed = os.cpu_count() or 1
    try:
        quota, period = (cgroup / "cpu.max").read_text().split()
        share = math.inf if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        share = math.inf
    return max(1, min(allowed, math.ceil(share) if share < math.inf else allowed))


def _memory_limit(cgroup: Path = _CGROUP) -> float:
    try:
        return int((cgroup / "memory.max").read_text())
    except (OSError, ValueError):  # no such file, or "max"
        return math.inf


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def compiler() -> str | None:
    """First line that the C++ compiler says about itself (``$CXX``, else c++, g++ or clang++), or None."""
    for candidate in [os.environ["CXX"]] if os.environ.get("CXX") else ["c++", "g++", "clang++"]:
        answer = _ask([*shlex.split(candidate), "--version"])
        if answer:
            return answer.splitlines()[0]
    return None


def gpus() -> tuple[Gpu, ...]:
    """CUDA devices that ``nvidia-smi`` lists; empty without one."""
    answer = _ask(["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader,nounits"])
    return parse_gpus(answer or "")


def parse_gpus(listing: str) -> tuple[Gpu, ...]:
    """Devices from nvidia-smi's lines ``name, memory in MiB, driver``; lines of another form are left out.

    >>> parse_gpus("NVIDIA H200, 143771, 570.86.15")[0].memory
    150754820096
    """
    rows = [[part.strip() for part in line.rsplit(",", 2)] for line in listing.splitlines()]
    return tuple(Gpu(row[0], int(row[1]) * 2**20, row[2]) for row in rows if len(row) == 3 and row[1].isdecimal())


def _ask(command: list[str]) -> str | None:
    """What a helper program prints, or None if it is not there, fails or does not answer."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=True)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout
