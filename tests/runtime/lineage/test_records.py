"""Payloads: round trips, sizes, and the C++ encoders against msgpack's own."""

import dataclasses

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish import _native
from burnish.runtime.lineage import LineageCorruptError, LineageLog, MemoryStore, native, records
from burnish.runtime.lineage.records import (
    Argument,
    BlobRef,
    Checkpoint,
    Commit,
    Kind,
    Launch,
    PartitionRecord,
    Pickled,
    Program,
    RegionRecord,
    Replay,
    TaskDef,
    Template,
    Truncate,
    User,
)

U32, U64, KEY = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1), st.binary(min_size=16, max_size=16)
SCALAR = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=40),
    st.builds(Pickled, st.binary(max_size=40)),
    st.builds(BlobRef, KEY),
)
SCALARS = st.lists(SCALAR, max_size=5).map(tuple)
OFFSETS = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3).map(tuple)
ARGUMENT = st.builds(
    Argument,
    U32,
    st.one_of(st.none(), OFFSETS, st.text(min_size=1, max_size=40)),
    st.integers(0, 255),
    U64,
)
LAUNCH = st.builds(
    Launch, U32, OFFSETS, st.lists(ARGUMENT, max_size=20).map(tuple), SCALARS, st.lists(U64, max_size=3).map(tuple)
)
BLOB = st.builds(BlobRef, KEY)
NAME = st.text(max_size=10)
RECORD = st.one_of(
    LAUNCH,
    st.builds(
        Program,
        st.lists(NAME, max_size=3).map(tuple),
        KEY,
        NAME,
        st.dictionaries(NAME, st.integers(0, 9)),
        st.floats(0, 1e10),
    ),
    st.builds(
        RegionRecord,
        U32,
        NAME,
        U32,
        st.one_of(st.none(), U32),
        st.one_of(OFFSETS, BLOB),
        st.lists(st.tuples(NAME, NAME), max_size=3).map(tuple),
    ),
    st.builds(PartitionRecord, U32, U32, OFFSETS, NAME, st.lists(st.one_of(U32, NAME, BLOB), max_size=3).map(tuple)),
    st.builds(TaskDef, U32, NAME, KEY, BLOB, st.booleans()),
    st.builds(Template, U32, st.one_of(st.binary(max_size=99), BLOB)),
    st.builds(Replay, U32, KEY, SCALARS),
    st.builds(Commit, U32, U64, U64),
    st.builds(Checkpoint, U32, U32, OFFSETS, st.tuples(U64, U32), NAME, st.binary(min_size=32, max_size=32)),
    st.builds(User, U32, U32, U64, st.binary(max_size=99)),
    st.builds(Truncate, U64),
)


@given(RECORD)
def test_what_is_decoded_is_what_was_encoded(record):
    data = records.encode(record)
    back = records.decode(record.KIND, data)
    assert back == record and type(back) is type(record)
    assert data == msgpack.packb(msgpack.unpackb(data, use_list=False, strict_map_key=False))  # shortest form


@given(LAUNCH)
def test_native_launch_payload_is_the_same(launch):
    arguments = [
        (
            a.target,
            a.projection if isinstance(a.projection, tuple) else None,
            a.projection if isinstance(a.projection, str) else "",
            a.privilege,
            a.mask,
        )
        for a in launch.arguments
    ]
    scalars = records.pack_scalars(launch.scalars)
    native_payload = _native.lineage.launch_payload(
        launch.task, list(launch.domain), arguments, len(launch.scalars), scalars, list(launch.futures)
    )
    assert native_payload == records.encode(launch)


@given(st.builds(Replay, U32, KEY, SCALARS), st.builds(Commit, U32, U64, U64))
def test_native_replay_and_commit_payloads_are_the_same(replay, commit):
    scalars = records.pack_scalars(replay.scalars)
    assert records.unpack_scalars(scalars) == replay.scalars
    assert records.encode(replay) == _native.lineage.replay_payload(
        replay.template, replay.bindings, len(replay.scalars), scalars
    )
    assert records.encode(commit) == _native.lineage.commit_payload(commit.domain, commit.first, commit.last)


def record_bytes(record):
    """Bytes of log that a record takes, header included."""
    store = MemoryStore()
    with LineageLog(store) as log:
        log.append(record.KIND, record)
    (segment,) = store.segments(1)
    return len(segment.data)


def test_typical_launches_take_less_than_200_bytes():
    circuit = Launch(  # currents.map(pieces, pw[each], owned[each], ghost[each], dt, steps)
        task=37,
        domain=(1024,),
        arguments=(
            Argument(1003, (), 0, 0b00011111),
            Argument(1003, (), 2, 0b01100000),
            Argument(1004, (), 0, 0b1000),
            Argument(1005, (), 0, 0b1000),
        ),
        scalars=(1e-7, 10000),
    )
    assert record_bytes(circuit) < 100
    pennant = Launch(
        60000, (4096, 4096), tuple(Argument(70000 + i, (-1, 1), 2, 2**63) for i in range(6)), (0.1,) * 4, (10**6,)
    )
    assert record_bytes(pennant) < 200


@given(LAUNCH)
def test_a_launch_takes_at_most_one_kibibyte(launch):
    assert record_bytes(launch) <= 1024


@pytest.mark.parametrize("size", [0, 100, 129, 65536])
def test_large_scalars_do_not_enlarge_the_log(size):
    value = bytes(size)
    launch = Launch(1, (), (Argument(1, None, 2, 1),), (records.scalar(value), "x" * size))
    assert record_bytes(launch) < 350
    many = dataclasses.replace(launch, arguments=tuple(Argument(2**32, (1, 2, 3), 0, 2**64 - 1) for _ in range(100)))
    assert record_bytes(many) == native.HEADER_BYTES + 16


@given(st.integers(0, 2**32 - 1), KEY)
def test_a_replay_takes_64_bytes_plus_scalars(template, bindings):
    assert record_bytes(Replay(template, bindings)) <= 64
    scalars = (0.5, 7)
    assert record_bytes(Replay(template, bindings, scalars)) <= 64 + len(records.pack_scalars(scalars))


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (Kind.LAUNCH, b"\x93\x01\x02\x03"),
        (Kind.COMMIT, b"\x92\x01\x02"),
        (Kind.COMMIT, b"\xc1"),
        (Kind.COMMIT, b""),
        (99, b"\x90"),
        (Kind.TRUNCATE, b"\x07"),
    ],
)
def test_wrong_payloads_are_refused(kind, payload):
    with pytest.raises(LineageCorruptError, match="does not hold what it should"):
        records.decode(kind, payload)
