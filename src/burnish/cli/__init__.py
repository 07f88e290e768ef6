"""The command line: only parsing, printing and exit codes. Each noun is one small module (see ``nouns``)."""

from burnish.cli.entry import main

__all__ = ["main"]
