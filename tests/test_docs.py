"""Every page of the documentation starts with code that runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_first_code_of_the_page_runs(page: Path, tmp_path: Path) -> None:
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    assert blocks, f"{page.name} has no ```python block"
    program = tmp_path / "program.py"
    program.write_text(blocks[0], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, program.name], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_inside_the_repository_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert "://" in target or (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_page_is_reached_from_the_index() -> None:
    index = (REPOSITORY / "docs" / "index.md").read_text(encoding="utf-8")
    for page in (REPOSITORY / "docs").glob("*.md"):
        assert page.name == "index.md" or f"({page.name})" in index, f"docs/index.md does not list {page.name}"
