"""The repository holds only what belongs there."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

# Put together here so that this file does not contain what it looks for.
MACHINE_PATHS = re.compile("|".join("/" + folder + "/" for folder in ("work", "home", "root", "opt", "Users")))
TEMPORARY = re.compile("/" + "tmp" + "/")
LARGEST = 1_000_000  # bytes
LONGEST = 700  # lines; the aim is 500


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    """Files under version control; what a clean checkout would hold."""
    try:
        listing = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [REPOSITORY / name for name in listing.decode().split("\0") if name and (REPOSITORY / name).exists()]


def test_no_large_file(tracked: list[Path]) -> None:
    assert [path.name for path in tracked if path.stat().st_size > LARGEST] == []


def test_only_text(tracked: list[Path]) -> None:
    assert [path.name for path in tracked if b"\0" in path.read_bytes()] == []


def test_no_paths_of_a_machine(tracked: list[Path]) -> None:
    found = [
        f"{path.relative_to(REPOSITORY)}: {line.strip()}"
        for path in tracked
        for line in path.read_text(encoding="utf-8").splitlines()
        if MACHINE_PATHS.search(line) or TEMPORARY.search(line)
    ]
    assert found == []


def test_modules_stay_readable(tracked: list[Path]) -> None:
    sources = [path for path in tracked if path.suffix in {".py", ".cpp", ".hpp"} and "tests" not in path.parts]
    long = {path.name: count for path in sources if (count := len(path.read_text().splitlines())) > LONGEST}
    assert long == {}
