"""Every example runs without arguments, in a few seconds; its name starts with an underscore if it is only a helper."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

EXAMPLES = [path for path in sorted((REPOSITORY / "examples").glob("*.py")) if not path.name.startswith("_")]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs(example: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip(), "an example shows something"
