"""What can be wrong with a lineage log."""

from __future__ import annotations

from burnish.core.errors import BurnishError, EnvironmentProblem


class LineageError(BurnishError):
    """Base of the errors of lineage logs."""


class LineageCorruptError(LineageError):
    """A record that is not the last one is damaged, or a whole stretch of the log is missing."""


class LineageMissingError(LineageError):
    """A record or blob was asked for that has been truncated away or never was."""


class LineageWriteError(EnvironmentProblem, LineageError):
    """The log cannot be written any more: disk full, no permission, in use by another process."""
