"""Automatic tracing: recognition of repeated launches, and a simulator of it for recorded token streams."""

from burnish.runtime.tracing.config import TraceConfig
from burnish.runtime.tracing.repeats import Repeat, find_repeats
from burnish.runtime.tracing.simulation import SimReport, simulate
from burnish.runtime.tracing.stream import TokenStream, read_stream, write_stream

__all__ = [
    "Repeat",
    "SimReport",
    "TokenStream",
    "TraceConfig",
    "find_repeats",
    "read_stream",
    "simulate",
    "write_stream",
]
