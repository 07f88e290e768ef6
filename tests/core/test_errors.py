"""Errors: one line with place and remedy, carets that line up, exit codes."""

import pickle
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from burnish.core import errors
from burnish.core.errors import (
    BudgetExhausted,
    BurnishError,
    EnvironmentProblem,
    MissingExtraError,
    Place,
    require,
)


def test_message_alone_is_one_line() -> None:
    assert str(BurnishError("no such graph 'fif'")) == "no such graph 'fif'"


def test_place_message_and_hint_share_one_line() -> None:
    error = BurnishError("unknown key 'widht'", place=Place("a.toml", 3, 7), hint="did you mean 'width'?")
    assert str(error) == "a.toml:3:7: unknown key 'widht'; did you mean 'width'?"


def test_place_without_column() -> None:
    assert str(Place("prog.py", 12)) == "prog.py:12"


def test_offending_text_is_underlined() -> None:
    error = BurnishError("unknown key", place=Place("a.toml", 3, 5, "    widht = 8", 5))
    assert str(error).splitlines() == [
        "a.toml:3:5: unknown key",
        "        widht = 8",
        "        ^^^^^",
    ]


def test_line_without_column_is_shown_without_carets() -> None:
    assert str(BurnishError("bad", place=Place("a", 1, None, "x = 1"))).splitlines() == ["a:1: bad", "    x = 1"]


def test_carets_line_up_after_tabs_and_wide_characters() -> None:
    shown, carets = Place("a", 1, 4, "\t漢x!", 1).excerpt().splitlines()
    assert shown == "\t漢x!"
    assert carets == "\t   ^"  # the tab, two cells for the ideograph, one for x


def test_column_past_the_end_still_gets_a_caret() -> None:
    assert Place("a", 1, 4, "abc", 1).excerpt() == "abc\n   ^"


letters = st.text(st.sampled_from("abc xyz éü漢字a\u0301"), min_size=1, max_size=400)


@given(text=letters, data=st.data())
def test_carets_stand_under_the_offending_text(text: str, data: st.DataObject) -> None:
    """Oracle: rich's own table of cell widths."""
    column = data.draw(st.integers(1, len(text)))
    length = data.draw(st.integers(1, len(text) - column + 1))
    shown, carets = Place("a", 1, column, text, length).excerpt().splitlines()
    assert len(shown) <= errors._WINDOW + 2
    start = len(carets) - len(carets.lstrip())
    offending = text[column - 1 : column - 1 + length]
    visible = next(n for n in range(length, -1, -1) if offending[:n] in shown)
    index = next(
        i for i in range(len(shown) + 1) if cell_len(shown[:i]) == start and shown[i:].startswith(offending[0])
    )
    assert shown[index : index + visible] == offending[:visible]
    assert carets.strip() == "^" * max(1, cell_len(offending[:visible]))


@pytest.mark.parametrize(
    ("error", "code"),
    [(BurnishError("x"), 2), (BudgetExhausted("x"), 3), (EnvironmentProblem("x"), 4), (MissingExtraError("x"), 4)],
)
def test_exit_codes(error: BurnishError, code: int) -> None:
    assert error.exit_code == code


def test_errors_travel_between_processes_whole() -> None:
    error = BurnishError("bad", place=Place("a", 1, 2, "text", 2), hint="fix it")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is BurnishError
    assert (str(again), again.place, again.hint) == (str(error), error.place, error.hint)


def test_missing_extra_names_the_command() -> None:
    with pytest.raises(MissingExtraError) as caught:
        require("polars_that_is_not_here", needed_by="burnish.query", extra="query")
    assert str(caught.value) == "burnish.query needs polars_that_is_not_here: pip install 'burnish[query]'"


def test_missing_extra_exact_text(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoPolars:
        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            if name == "polars":
                raise ModuleNotFoundError("No module named 'polars'", name="polars")

    monkeypatch.setattr(sys, "meta_path", [NoPolars(), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "polars", raising=False)
    with pytest.raises(MissingExtraError) as caught:
        require("polars", needed_by="burnish.query", extra="query")
    assert str(caught.value) == "burnish.query needs polars: pip install 'burnish[query]'"
    assert isinstance(caught.value, ImportError)


def test_require_returns_the_module() -> None:
    assert require("json.decoder", needed_by="burnish.x", extra="x").__name__ == "json.decoder"


def test_an_installed_package_that_does_not_load_is_not_called_missing(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "brokenpack.py").write_text("import a_library_it_wants\n")  # type: ignore[attr-defined]
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(EnvironmentProblem) as caught:
        require("brokenpack", needed_by="burnish.x", extra="x")
    assert not isinstance(caught.value, MissingExtraError)
    assert "a_library_it_wants" in str(caught.value)
