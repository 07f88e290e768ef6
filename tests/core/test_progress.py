"""Progress: silent unless somebody looks, one display for nested meters, any title."""

import io
import sys

import pytest

from burnish.core.progress import progress, track, visible


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_silent_in_libraries(capfd: pytest.CaptureFixture[str]) -> None:
    with progress("work", 3) as meter:
        meter.advance()
        meter.describe("more work")
    assert list(track([1, 2, 3], "items")) == [1, 2, 3]
    assert capfd.readouterr() == ("", "")


def test_nowhere_without_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with visible(), progress("work", 3) as meter:
        meter.advance()
    assert capfd.readouterr() == ("", "")


def test_bars_on_a_terminal_nested_with_any_title(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with visible():
        for _ in track(range(2), "outer [red]title[/nonsense]"):
            with progress("inner work") as meter:
                meter.describe("inner stage")
    assert "outer [red]title[/nonsense]" in screen.getvalue()
    assert "inner stage" in screen.getvalue()


def test_track_stops_early_without_complaint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with visible():
        for item in track(iter(range(10)), "items", total=10):
            if item == 3:
                break
        with progress("after", 1) as meter:
            meter.advance()


def test_hidden_again_after_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), visible("nowhere"):
        raise ZeroDivisionError
    with progress("work"):
        pass
    assert capfd.readouterr() == ("", "")


def test_notebook_line_is_updated_and_escaped() -> None:
    """Oracle: what IPython's own display machinery is asked to show."""
    pytest.importorskip("IPython")
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    InteractiveShell.instance()
    try:
        with capture_output() as cell, visible("notebook"):
            with progress("<b>fit</b>", 4) as meter:
                meter.advance(3)
    finally:
        InteractiveShell.clear_instance()
    first, last = cell.outputs[0].data["text/html"], cell.outputs[-1].data["text/html"]
    assert "&lt;b&gt;fit&lt;/b&gt; 0/4" in first and "&lt;b&gt;fit&lt;/b&gt; 3/4" in last
    assert cell.outputs[-1].update and cell.outputs[0].transient == cell.outputs[-1].transient
