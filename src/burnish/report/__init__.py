"""Reports: what a command found, as terminal text, JSON and one self-contained HTML page."""

from burnish.report.report import Block, EvidenceList, Figure, Report, Section, Table, Text

__all__ = ["Block", "EvidenceList", "Figure", "Report", "Section", "Table", "Text"]
