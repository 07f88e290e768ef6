"""CRC-32C against the test vectors of RFC 3720 (B.4) and a bitwise twin."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish import _native
from burnish.runtime.lineage.native import crc32c

ISCSI_READ = bytes.fromhex(
    "01c00000 00000000 00000000 00000000 14000000 00000400 00000014 00000018 28000000 00000000 02000000 00000000"
)
VECTORS = [
    (b"", 0x00000000),
    (b"123456789", 0xE3069283),
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(range(31, -1, -1)), 0x113FDB5C),
    (ISCSI_READ, 0xD9963A56),
]


def bitwise(data, crc=0):
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@pytest.mark.parametrize("function", [crc32c, _native.lineage.crc32c_table])
@pytest.mark.parametrize(("data", "expected"), VECTORS)
def test_vectors(function, data, expected):
    assert function(data) == expected


@given(st.binary(max_size=300), st.binary(max_size=40))
def test_processor_tables_and_bits_agree_also_in_pieces(a, b):
    assert crc32c(a + b) == _native.lineage.crc32c_table(a + b) == bitwise(a + b) == crc32c(b, crc32c(a))
