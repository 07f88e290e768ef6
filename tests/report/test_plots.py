"""The palette keeps its promises. Oracles: the WCAG contrast formula, and colour-blindness matrices from the literature."""

import itertools

import numpy as np
import pytest

from burnish.report.plots import DARK_PALETTE, INK, LINES, PALETTE, PAPER, figure, picture_format

# Machado, Oliveira, Fernandes: A Physiologically-based Model for Simulation of Color Vision Deficiency (2009), severity 1.
VISION = {
    "normal": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
RGB_TO_XYZ = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]


def linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    dark, light = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (one, other))
    return (light + 0.05) / (dark + 0.05)


def lab(rgb: np.ndarray) -> np.ndarray:
    x = np.array(RGB_TO_XYZ) @ np.clip(rgb, 0, 1) / [0.95047, 1, 1.08883]
    f = np.where(x > 0.008856, np.cbrt(x), 7.787 * x + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("theme", [0, 1])
def test_text_and_series_stand_out(theme: int) -> None:
    assert contrast(INK[theme], PAPER[theme]) >= 7
    for colour in (PALETTE, DARK_PALETTE)[theme]:
        assert contrast(colour, PAPER[theme]) >= 3


@pytest.mark.parametrize("palette", [PALETTE, DARK_PALETTE])
@pytest.mark.parametrize("vision", VISION)
def test_series_differ_for_every_eye(palette: tuple[str, ...], vision: str) -> None:
    seen = [lab(np.array(VISION[vision]) @ linear(colour)) for colour in palette]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) >= 12


def test_each_series_has_its_own_line() -> None:
    assert len(set(PALETTE)) == len(set(DARK_PALETTE)) == len(set(LINES)) == 6


def test_figures_cycle_through_the_palette() -> None:
    _, [axes] = figure()
    colours = [axes.plot([0, 1], [i, i])[0].get_color() for i in range(6)]
    assert tuple(colours) == PALETTE


def test_axes_come_row_by_row() -> None:
    made, axes = figure(rows=2, columns=3)
    assert axes == made.axes and len(axes) == 6


def test_picture_formats() -> None:
    assert picture_format("x/y.PNG") == "png"
