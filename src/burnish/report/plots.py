"""Figures: one palette, one look, and pictures that follow the reader's light or dark page.

A figure is drawn once, in the colours of a light page. In its SVG the palette, black and white are then replaced by
CSS variables, so that one picture serves both themes; every other colour stays. The palette keeps its colours apart
under the common kinds of colour blindness and at least 3:1 in contrast to the page (both are tested).
"""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from typing import Any, Final

import matplotlib
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from burnish.core.errors import BurnishError

PALETTE: Final = ("#0057a8", "#d9690f", "#118a6b", "#8e1a5b", "#4e3d10", "#468fe6")
"""Colours of series on a light page: blue, orange, green, plum, brown, sky."""
DARK_PALETTE: Final = ("#3a86e0", "#e0662a", "#35c497", "#c65fa6", "#f4d055", "#bfe3fa")
"""The same series on a dark page."""
LINES: Final = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)))
"""Line style of each series, so that colour is never the only difference."""
PAPER: Final = ("#ffffff", "#16181d")
INK: Final = ("#000000", "#e6e8eb")

_THEME = {INK[0]: "var(--ink)", PAPER[0]: "var(--paper)"} | {c: f"var(--c{i})" for i, c in enumerate(PALETTE)}
_STYLE: dict[Any, Any] = {
    "font.size": 10,
    "font.family": "sans-serif",
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#808080",
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.prop_cycle": cycler(color=PALETTE) + cycler(linestyle=LINES),
}
_MAX_SVG = 1_500_000  # characters; beyond this the data of a figure are drawn as pixels, its text stays text


def figure(width: float = 7.2, height: float = 3.6, rows: int = 1, columns: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure of ``width`` x ``height`` inches and its axes, row by row; drawn without a screen or global state.

    >>> fig, [left, right] = figure(columns=2)
    """
    with matplotlib.rc_context(_STYLE):
        made = Figure(figsize=(width, height), layout="constrained")
        axes = made.subplots(rows, columns, squeeze=False)
    return made, list(axes.flat)


def legend(axes: Axes) -> None:
    """A legend without a frame, at the place that hides least."""
    axes.legend(frameon=False, fontsize=9)


def picture_format(path: str | os.PathLike[str]) -> str:
    """The format that the suffix of ``path`` names.

    Raises :class:`BurnishError` for one that matplotlib cannot write.
    """
    known = Figure().canvas.get_supported_filetypes()
    suffix = Path(path).suffix.removeprefix(".").lower()
    if suffix not in known:
        raise BurnishError(f"cannot draw to {os.fspath(path)}", hint=f"end the name in one of {', '.join(known)}")
    return suffix


def svg(picture: Figure, prefix: str) -> str:
    """The figure as an ``<svg>`` element to stand inside an HTML page that defines the variables of :func:`css`.

    Transparent, with text as text and ids that start with ``prefix``; the same figure always gives the same text.
    """
    text = _draw(picture)
    if len(text) > _MAX_SVG:
        text = _draw(picture, pixels=True)
    return _inline(text, prefix)


def css() -> str:
    """The colours of both themes as CSS variables."""

    def variables(which: int, palette: tuple[str, ...]) -> str:
        colours = {"paper": PAPER[which], "ink": INK[which]} | {f"c{i}": c for i, c in enumerate(palette)}
        return " ".join(f"--{name}: {value};" for name, value in colours.items())

    dark = f"@media (prefers-color-scheme: dark) {{ :root {{ {variables(1, DARK_PALETTE)} }} }}"
    return f":root {{ {variables(0, PALETTE)} }}\n{dark}"


def _draw(picture: Figure, pixels: bool = False) -> str:
    """SVG text by matplotlib; with ``pixels`` the data of the axes, but not their text, become images."""
    data = [artist for axes in picture.axes for artist in (*axes.lines, *axes.collections, *axes.patches)]
    before = [artist.get_rasterized() for artist in data]
    for artist in data if pixels else ():
        artist.set_rasterized(True)
    try:
        with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "burnish"}):
            stream = io.StringIO()
            picture.savefig(stream, format="svg", transparent=True, dpi=150, metadata={"Date": None})
    finally:
        for artist, was in zip(data, before, strict=True):
            artist.set_rasterized(was)
    return stream.getvalue()


def _inline(text: str, prefix: str) -> str:
    """Make matplotlib's SVG file fit into a page: themed colours, own ids, no prologue, no addresses."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    head, body = re.match(r"(<svg[^>]*>)(.*)", text, flags=re.DOTALL).groups()  # type: ignore[union-attr]
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', head)
    assert box is not None, "matplotlib gives every SVG a viewBox"
    body = re.sub(r'\bid="', f'id="{prefix}-', body)
    body = re.sub(r'(href="#|url\(#)', rf"\g<1>{prefix}-", body)
    body = body.replace("xlink:href=", "href=")
    body = re.sub(r"\b(fill|stroke): (#[0-9a-f]{6})", lambda m: f"{m[1]}: {_THEME.get(m[2], m[2])}", body)
    return f'<svg viewBox="{box[0].split(chr(34))[1]}" style="max-width: {float(box[1]):.0f}pt">{body}'
