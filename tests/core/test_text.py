"""Text for terminals: harmless, and as wide as it looks."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from burnish.core.text import blank, cells, printable


@given(st.text())
def test_printable_text_has_nothing_a_terminal_obeys(text: str) -> None:
    made = printable(text)
    assert all(c.isprintable() or c in "\t\n" or not c.isascii() for c in made)
    made.encode()  # no surrogates left
    assert printable(made) == made


@given(st.text(st.sampled_from("abc 漢字éü\u0301ｗ")))
def test_width_is_what_rich_finds(text: str) -> None:
    assert cells(text) == cell_len(text) == len(blank(text))


def test_tabs_stay_tabs() -> None:
    assert blank("a\tb") == " \t "
