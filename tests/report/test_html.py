"""The page: well-formed, alone in the world, and deaf to hostile text."""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burnish.core.errors import BurnishError
from burnish.core.evidence import Evidence
from burnish.report import Report
from burnish.report.html import render
from burnish.report.plots import figure, legend

VOID = {"meta", "br", "hr", "img", "link", "input"}
LOADING = {"src", "href", "srcset", "poster", "data", "action", "xlink:href", "background"}


class Page(HTMLParser):
    """Checks nesting and collects what the tests ask about."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == [], f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)

    def text(self) -> str:
        return "".join(self.words)


@cache
def full_page() -> str:
    return render(full_report())


def full_report(text: str = "words") -> Report:
    report = Report(text)
    report.section(text)
    report.text(text)
    report.table([text, "n"], [(text, 1.5), (None, 1000)], title=text)
    drawn, [left, right] = figure(columns=2)
    left.plot([0, 1], [1, 0], "o-", label="<b>series</b>")
    left.set_title("<script>alert('title')</script> & more")
    legend(left)
    right.bar([0, 1], [2, 3])
    report.figure(drawn, title=text, caption=text)
    report.figure(drawn)
    report.section("Evidence")
    report.evidence(Evidence(text, "proved", text, {text: text}), Evidence(text, "measured", text))
    return report


def test_the_page_is_well_formed_and_shows_everything() -> None:
    page = Page(full_page())
    names = [tag for tag, _ in page.tags]
    for tag, count in {"h1": 1, "h2": 2, "figure": 2, "svg": 2, "table": 1, "details": 1, "nav": 1, "title": 1}.items():
        assert names.count(tag) == count
    assert "1,000" in page.text() and "proved" in page.text() and "–" in page.text()


def test_ids_are_unique_and_references_resolve() -> None:
    text = full_page()
    ids = [attributes["id"] for _, attributes in Page(text).tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    references = set(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    assert references and references <= set(ids)


def test_the_page_loads_nothing() -> None:
    text = render(full_report("see <img src=http://evil/x.png> ![x](https://evil/y.png)"))
    page = Page(text)
    for tag, attributes in page.tags:
        assert tag not in {"script", "link", "iframe", "object", "embed", "img", "base", "form"}
        for name in LOADING & set(attributes):
            target = attributes[name] or ""
            assert target.startswith(("#", "data:")) or (tag == "a" and name == "href"), (tag, target)
    styles = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert not re.search(r"@import|url\((?!#)|@font-face", "".join(styles))
    assert "default-src 'none'" in text


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style></title></svg><script>alert(1)</script>",
    "[click](javascript:alert(1))",
    "[click](data:text/html;base64,PHNjcmlwdD4=)",
    "<!-- --><svg onload=alert(1)>",
    "`</code><script>alert(1)</script>`",
    "' onmouseover='alert(1)",
    "\x00<\x00script>alert(1)\udcff",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str) -> None:
    page = Page(render(full_report(text)))
    for tag, attributes in page.tags:
        assert tag != "script" and not any(name.startswith("on") for name in attributes)
        assert not (attributes.get("href") or "").startswith(("javascript:", "data:text"))
    plain = Page(full_page())
    assert [tag for tag, _ in page.tags if tag in {"svg", "title", "style", "img"}] == [
        tag for tag, _ in plain.tags if tag in {"svg", "title", "style", "img"}
    ]


@settings(max_examples=60, deadline=None)
@given(st.text())
def test_any_title_and_cell_can_be_read_on_the_page(text: str) -> None:
    report = Report(text)
    report.table([text], [(text,)])
    shown = Page(render(report)).text()
    readable = re.sub("[^ -~]+", "", text)
    assert re.sub("[^ -~]+", "", shown).count(readable) >= 3


def test_pictures_follow_the_theme() -> None:
    text = full_page()
    pictures = "".join(re.findall(r"<svg.*?</svg>", text, re.DOTALL))
    assert "stroke: var(--c0)" in pictures and "fill: var(--c0)" in pictures
    assert "#000000" not in pictures and "#ffffff" not in pictures
    assert "prefers-color-scheme: dark" in text


def test_the_same_report_gives_the_same_page() -> None:
    assert render(full_report()) == full_page()


def test_huge_figures_become_pixels_but_keep_their_text() -> None:
    drawn, [axes] = figure()
    axes.scatter(range(40_000), [i * i % 9973 for i in range(40_000)], s=1)
    axes.set_xlabel("number of points")
    report = Report("r")
    report.figure(drawn)
    text = render(report)
    assert len(text) < 500_000
    assert "data:image/png;base64," in text and "number of points" in Page(text).text()


def test_written_whole(tmp_path: Path) -> None:
    path = full_report().to_html(tmp_path / "deep" / "page.html")
    assert path.read_text(encoding="utf-8") == full_page()
    with pytest.raises(BurnishError, match="it is a folder"):
        full_report().to_html(tmp_path)
