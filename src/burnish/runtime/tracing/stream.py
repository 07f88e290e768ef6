"""Token files: one op per line, ``signature flat operand operand ...``; ``-`` is a separator (a blocking read)."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from burnish.core.errors import BurnishError, Place
from burnish.core.io import write_atomic


@dataclass(frozen=True)
class TokenStream:
    """n positions. ``signatures``, ``flats``: uint64 (n,); ``separators``: uint8 (n,); operands of position i are
    ``roots[offsets[i]:offsets[i + 1]]`` (uint32; offsets uint64 (n + 1,))."""

    signatures: npt.NDArray[np.uint64]
    flats: npt.NDArray[np.uint64]
    separators: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.uint64]
    roots: npt.NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.signatures)


def read_stream(path: Path) -> TokenStream:
    """Read a token file (``.gz`` is decompressed); errors name file and line."""
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    except (OSError, EOFError, UnicodeDecodeError, gzip.BadGzipFile) as error:
        raise BurnishError(f"{path}: not a readable token file ({error})") from None
    rows: list[list[int]] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words:
            continue
        if words == ["-"]:
            rows.append([])
            continue
        try:
            row = [int(word) for word in words]
        except ValueError:
            row = []
        if len(row) < 2 or min(row) < 0 or max(row[:2]) >= 1 << 64 or max(row[2:], default=0) >= 1 << 32:
            place = Place(str(path), number, 1, line[:120])
            raise BurnishError("expected 'signature flat operand ...' (integers from 0) or '-'", place=place)
        rows.append(row)
    counts = np.array([0, *(max(0, len(r) - 2) for r in rows)], dtype=np.uint64)
    return TokenStream(
        np.array([r[0] if r else 0 for r in rows], dtype=np.uint64),
        np.array([r[1] if r else 0 for r in rows], dtype=np.uint64),
        np.array([not r for r in rows], dtype=np.uint8),
        np.cumsum(counts, dtype=np.uint64),
        np.array([o for r in rows for o in r[2:]], dtype=np.uint32),
    )


def write_stream(path: Path, stream: TokenStream) -> None:
    """Write a token file; compressed if the name ends with ``.gz``."""
    lines = []
    for i in range(len(stream)):
        if stream.separators[i]:
            lines.append("-")
            continue
        operands = stream.roots[int(stream.offsets[i]) : int(stream.offsets[i + 1])]
        lines.append(" ".join(map(str, [stream.signatures[i], stream.flats[i], *operands])))
    data = ("\n".join(lines) + "\n").encode()
    write_atomic(path, gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
