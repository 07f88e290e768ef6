"""Reports as one self-contained HTML page."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from typing import Any

import burnish
from burnish.core.evidence import Evidence
from burnish.core.text import printable
from burnish.report import plots
from burnish.report.markdown import parser
from burnish.report.report import Block, EvidenceList, Figure, Report, Section, Table, Text
from burnish.report.values import is_number, plain, short

# The page may load nothing and run nothing, and says so to the browser.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def render(report: Report) -> str:
    """The page as text."""
    sections = [(number, block) for number, block in enumerate(report.blocks) if isinstance(block, Section)]
    body = "\n".join(_block(number, block) for number, block in enumerate(report.blocks))
    style = plots.css() + files("burnish.report").joinpath("page.css").read_text(encoding="utf-8")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{_text(report.title)}</title>
<style>
{style}</style>
</head>
<body>
<main>
<h1>{_text(report.title)}</h1>
{_contents(sections)}
{body}
</main>
<footer>burnish {_text(burnish.__version__)}</footer>
</body>
</html>
"""


def _text(value: str) -> str:
    return escape(printable(value))


def _contents(sections: list[tuple[int, Section]]) -> str:
    """Links to the sections of level 1, if there are several."""
    entries = [f'<li><a href="#s{number}">{_text(s.title)}</a></li>' for number, s in sections if s.level == 1]
    return f"<nav><ol>{''.join(entries)}</ol></nav>" if len(entries) > 1 else ""


def _block(number: int, block: Block) -> str:
    match block:
        case Section(title, level):
            tag = f"h{min(6, level + 1)}"
            return f'<{tag} id="s{number}">{_text(title)}</{tag}>'
        case Text(markdown):
            return f'<div class="text">{parser().render(printable(markdown))}</div>'
        case Table():
            return _table(block)
        case Figure():
            return _figure(number, block)
        case EvidenceList(items):
            return f'<ul class="evidence">{"".join(map(_evidence, items))}</ul>'


def _table(table: Table) -> str:
    numeric = [_all_numbers(row[i] for row in table.rows) for i in range(len(table.columns))]

    def cells(tag: str, values: Iterable[str]) -> str:
        marks = (' class="number"' if right else "" for right in numeric)
        return "".join(f"<{tag}{mark}>{value}</{tag}>" for mark, value in zip(marks, values, strict=True))

    caption = f"<caption>{_text(table.title)}</caption>" if table.title else ""
    head = f"<thead><tr>{cells('th', map(_text, table.columns))}</tr></thead>"
    rows = "\n".join(f"<tr>{cells('td', (escape(short(value)) for value in row))}</tr>" for row in table.rows)
    return f'<div class="table"><table>{caption}{head}<tbody>\n{rows}\n</tbody></table></div>'


def _all_numbers(values: Iterable[Any]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(map(is_number, known))


def _figure(number: int, block: Figure) -> str:
    picture = plots.svg(block.figure, f"f{number}")
    label = _text(block.title or block.caption or "figure")
    picture = picture.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
    title = f"<strong>{_text(block.title)}</strong> " if block.title else ""
    caption = title + _text(block.caption or "")
    return f"<figure>{picture}{f'<figcaption>{caption}</figcaption>' if caption else ''}</figure>"


def _evidence(item: Evidence) -> str:
    badge = f'<span class="badge {item.strength}">{item.strength}</span>'
    line = f"{badge} {_text(item.claim)} <span class='method'>{_text(item.method)}</span>"
    if not item.detail:
        return f"<li>{line}</li>"
    detail = json.dumps(plain(item.detail), indent=2, ensure_ascii=False)
    return f"<li><details><summary>{line}</summary><pre>{_text(detail)}</pre></details></li>"
