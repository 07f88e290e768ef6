"""The Markdown of reports: CommonMark and tables; raw HTML is shown as text, images are not loaded."""

from __future__ import annotations

from functools import cache

from markdown_it import MarkdownIt


@cache
def parser() -> MarkdownIt:
    """The one parser that both the page and the terminal use."""
    return MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
