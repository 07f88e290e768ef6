"""Text that people read in terminals: how wide it is, and with nothing in it that a terminal would obey."""

from __future__ import annotations

import re
import unicodedata

# Control characters (terminals obey escape sequences; text may keep tab and newline), bidirectional overrides (they
# make text look like other text), and surrogates (file names that are not UTF-8 carry them; no encoding has them).
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """``text`` with control characters, bidirectional overrides and surrogates replaced by U+FFFD."""
    return _UNPRINTABLE.sub("\ufffd", text.replace("\r\n", "\n"))


def cells(text: str) -> int:
    """Terminal cells that ``text`` takes: two for a wide (East Asian) character, none for a combining one."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def blank(text: str) -> str:
    """White space as wide as ``text``; tabs stay tabs, whatever they come to."""
    return "".join("\t" if c == "\t" else " " * cells(c) for c in text)
