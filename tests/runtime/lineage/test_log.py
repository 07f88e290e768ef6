"""The log against a list of what was appended; torn and damaged files byte by byte; writers that are killed."""

import os
import shutil
import signal
import subprocess
import sys
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burnish.core.errors import BurnishError
from burnish.runtime.lineage import (
    DirectoryStore,
    LineageCorruptError,
    LineageLog,
    LineageMissingError,
    LineageWriteError,
    MemoryStore,
    log,
    native,
    read_log,
)
from burnish.runtime.lineage.records import Commit, Kind, Launch, User, scalar


def user(i, size=10):
    return User(1, 2, i, bytes([i % 251]) * size)


def fill(path, payload_sizes, **options):
    with LineageLog(DirectoryStore(path, durability="process", **options)) as lineage:
        for i, size in enumerate(payload_sizes, 1):
            assert lineage.append(Kind.USER, user(i, size)) == i


def contents(path, start=None):
    return [(e.lsn, e.record) for e in read_log(DirectoryStore(path), start)]


def expected(sizes):
    return [(i, user(i, size)) for i, size in enumerate(sizes, 1)]


@pytest.fixture(params=["directory", "directory-sync", "memory"])
def store(request, tmp_path):
    if request.param == "memory":
        return MemoryStore()
    return DirectoryStore(tmp_path / "log", durability="host" if request.param == "directory-sync" else "process")


def test_append_flush_read(store):
    with LineageLog(store) as lineage:
        assert list(lineage.read()) == []
        lsns = [lineage.append(Kind.USER, user(i)) for i in range(1, 51)]
        assert lsns == list(range(1, 51))
        lineage.flush(lsns[-1])
        assert lineage.durable == 50
        assert [(e.lsn, e.kind, e.record) for e in lineage.read(17)] == [(i, Kind.USER, user(i)) for i in range(17, 51)]
    with LineageLog(store) as lineage:
        assert lineage.torn_bytes == 0
        assert lineage.append(Kind.COMMIT, Commit(0, 1, 50)) == 51
        assert [e.lsn for e in lineage.read()] == list(range(1, 52))


def test_records_become_durable_by_themselves(store):
    with LineageLog(store) as lineage:
        lineage.append(Kind.USER, user(1))
        wait = threading.Event()
        for _ in range(2000):
            if lineage.durable == 1:
                break
            wait.wait(0.005)
        assert [e.lsn for e in read_log(store)] == [1]


def test_groups_are_written_together(store):
    with LineageLog(store) as lineage:
        for i in range(1, 2001):
            lineage.append(Kind.USER, user(i, 150))
        lineage.flush()
        # 2000 records of about 180 bytes are 6 groups of 64 KiB; more when the 2 ms were over first, never one each
        assert 1 <= lineage.native.groups < 1000


def test_threads_append_densely(store):
    with LineageLog(store) as lineage:
        found = {}

        def work(channel):
            for i in range(300):
                lsn = lineage.append(Kind.USER, User(0, channel, i, b""))
                found[lsn] = (channel, i)
                if i % 50 == 0:
                    lineage.flush(lsn)

        threads = [threading.Thread(target=work, args=(c,)) for c in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        read = [(e.lsn, (e.record.channel, e.record.sequence)) for e in lineage.read()]
    assert read == sorted(found.items()) and [lsn for lsn, _ in read] == list(range(1, 1201))


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_model(data, tmp_path_factory):
    """Random appends, truncations and reopenings with tiny segments."""
    path = tmp_path_factory.mktemp("model")
    model, first, lsn = {}, 1, 0
    for _ in range(data.draw(st.integers(1, 4))):
        with LineageLog(DirectoryStore(path, durability="process", segment_bytes=200)) as lineage:
            for _ in range(data.draw(st.integers(0, 8))):
                action = data.draw(st.sampled_from(["append", "append", "append", "flush", "truncate"]))
                if action == "append":
                    lsn += 1
                    size = data.draw(st.integers(0, 120))
                    assert lineage.append(Kind.USER, user(lsn, size)) == lsn
                    model[lsn] = size
                elif action == "flush":
                    lineage.flush()
                elif lsn >= first:
                    first = data.draw(st.integers(first, lsn))
                    lineage.truncate(first)
                    lsn += 1  # the TRUNCATE record
            start = data.draw(st.integers(first, lsn + 1))
            got = [(e.lsn, e.record) for e in lineage.read(start) if e.kind is Kind.USER]
            assert got == [(i, user(i, size)) for i, size in model.items() if i >= start]


def test_truncate_frees_segments_and_refuses_older_records(tmp_path):
    with LineageLog(DirectoryStore(tmp_path, segment_bytes=1)) as lineage:
        for i in range(1, 6):
            lineage.flush(lineage.append(Kind.USER, user(i)))
        assert len(list(tmp_path.glob("*.log"))) == 5
        lineage.truncate(4)
        assert [e.lsn for e in lineage.read()] == [4, 5, 6]
        with pytest.raises(LineageMissingError, match="record 3 has been truncated away; the log starts at 4"):
            list(lineage.read(3))
        with pytest.raises(LineageMissingError, match=r"cannot truncate to record 3: the log has 4..6"):
            lineage.truncate(3)
    assert sorted(int(f.stem) for f in tmp_path.glob("*.log")) == [4, 5, 6]
    with LineageLog(DirectoryStore(tmp_path)) as lineage:
        assert [e.lsn for e in lineage.read()] == [4, 5, 6]
        assert lineage.append(Kind.USER, user(7)) == 7


# --- torn and damaged files

SIZES = [30, 0, 77, 40]


def record_starts(path):
    data, starts, at = path.read_bytes(), [], 0
    while at < len(data):
        starts.append(at)
        at += native.HEADER_BYTES + int.from_bytes(data[at + 4 : at + 8], "little")
    return starts, data


def test_a_log_cut_at_any_byte_keeps_exactly_the_whole_records(tmp_path):
    fill(tmp_path / "whole", SIZES)
    (file,) = (tmp_path / "whole").glob("*.log")
    starts, data = record_starts(file)
    ends = [*starts[1:], len(data)]
    for cut in range(len(data) + 1):
        path = tmp_path / f"cut{cut}"
        shutil.copytree(tmp_path / "whole", path)
        (path / file.name).write_bytes(data[:cut])
        kept = sum(end <= cut for end in ends)
        assert contents(path) == expected(SIZES)[:kept]
        with LineageLog(DirectoryStore(path, durability="process")) as lineage:
            assert lineage.torn_bytes == cut - (ends[kept - 1] if kept else 0)
            assert lineage.append(Kind.USER, user(kept + 1)) == kept + 1
        assert contents(path) == [*expected(SIZES)[:kept], (kept + 1, user(kept + 1))]


@pytest.mark.parametrize("rest", [b"\0" * 100, b"BL", b"\xff" * 300, bytes(range(256))])
def test_garbage_after_the_last_record_is_an_unfinished_write(tmp_path, rest):
    fill(tmp_path, SIZES)
    (file,) = tmp_path.glob("*.log")
    file.write_bytes(file.read_bytes() + rest)
    assert contents(tmp_path) == expected(SIZES)
    with LineageLog(DirectoryStore(tmp_path)) as lineage:
        assert lineage.torn_bytes == len(rest)


def test_a_changed_byte_before_the_last_record_is_an_error_with_its_place(tmp_path):
    fill(tmp_path / "whole", SIZES)
    (file,) = (tmp_path / "whole").glob("*.log")
    starts, data = record_starts(file)
    for at in range(len(data)):
        path = tmp_path / f"at{at}"
        shutil.copytree(tmp_path / "whole", path)
        changed = bytearray(data)
        changed[at] ^= 0x10
        (path / file.name).write_bytes(changed)
        lsn = sum(start <= at for start in starts)
        if lsn == len(SIZES):  # the last record cannot be told from one that was being written
            assert contents(path) == expected(SIZES)[:-1]
            continue
        message = rf"lineage log .*{file.name} is damaged at byte {starts[lsn - 1]}, record {lsn}: "
        with pytest.raises(LineageCorruptError, match=message) as caught:
            contents(path)
        assert caught.value.exit_code == 2
        with pytest.raises(LineageCorruptError, match=message):
            LineageLog(DirectoryStore(path))


def test_damage_and_gaps_between_segments(tmp_path):
    fill(tmp_path / "whole", SIZES, segment_bytes=1)
    with LineageLog(DirectoryStore(tmp_path / "whole", segment_bytes=1)) as lineage:
        lineage.flush(lineage.append(Kind.USER, user(5)))
        lineage.flush(lineage.append(Kind.USER, user(6)))
    files = sorted((tmp_path / "whole").glob("*.log"))
    assert len(files) >= 3
    missing = tmp_path / "missing"
    shutil.copytree(tmp_path / "whole", missing)
    (missing / files[1].name).unlink()
    first, after = int(files[1].stem), int(files[2].stem)
    with pytest.raises(
        LineageCorruptError, match=rf"records {first}..{after - 1} are missing before .*{files[2].name}"
    ):
        contents(missing)
    cut = tmp_path / "cut"
    shutil.copytree(tmp_path / "whole", cut)
    data = files[0].read_bytes()
    (cut / files[0].name).write_bytes(data[:-1])  # an unfinished record, but not at the end of the log
    with pytest.raises(LineageCorruptError, match="the payload is cut short"):
        contents(cut)
    swapped = tmp_path / "swapped"
    shutil.copytree(tmp_path / "whole", swapped)
    shutil.copy(files[2], swapped / files[1].name)
    with pytest.raises(LineageCorruptError, match=rf"record {after} is where {first} should be"):
        contents(swapped)


def test_wrong_payload_names_file_and_record(tmp_path):
    with LineageLog(DirectoryStore(tmp_path)) as lineage:
        lineage.append(Kind.COMMIT, Commit(0, 1, 1))
        lineage.append(Kind.COMMIT, b"\x01")
    with pytest.raises(LineageCorruptError, match=r"lineage log .*\.log, record 2: a lineage record of kind 8"):
        contents(tmp_path)


# --- writers that die or cannot write

WRITER = """
import sys
from burnish.runtime.lineage import DirectoryStore, LineageLog
from burnish.runtime.lineage.records import Kind, User
log = LineageLog(DirectoryStore(sys.argv[1], durability=sys.argv[2], segment_bytes=5000))
for i in range(1, 10**9):
    lsn = log.append(Kind.USER, User(1, 2, i, bytes([i % 251]) * (i * 7919 % 900)))
    if i % 7 == 0:
        log.flush(lsn)
        print(lsn, flush=True)
"""


@pytest.mark.parametrize("durability", ["host", "process"])
@pytest.mark.parametrize("answers", [1, 3, 40])
def test_what_was_acknowledged_survives_a_killed_writer(tmp_path, durability, answers):
    process = subprocess.Popen([sys.executable, "-c", WRITER, tmp_path, durability], stdout=subprocess.PIPE, text=True)
    for _ in range(answers):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    rest = process.stdout.read().split()
    process.wait()
    acknowledged = int(rest[-1]) if rest else 7 * answers
    with LineageLog(DirectoryStore(tmp_path)) as lineage:
        entries = [(e.lsn, e.record) for e in lineage.read()]
        assert lineage.append(Kind.USER, user(1)) == len(entries) + 1
    assert len(entries) >= acknowledged >= 7 * answers
    assert entries == [(i, user(i, i * 7919 % 900)) for i in range(1, len(entries) + 1)]


def test_second_writer_is_refused(tmp_path):
    with LineageLog(DirectoryStore(tmp_path)):
        with pytest.raises(LineageWriteError, match="is in use by another process"):
            LineageLog(DirectoryStore(tmp_path))
    LineageLog(DirectoryStore(tmp_path)).close()


FULL = """
import resource, signal, sys
from burnish.runtime.lineage import DirectoryStore, LineageLog, LineageWriteError
from burnish.runtime.lineage.records import Kind, User
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
log = LineageLog(DirectoryStore(sys.argv[1]))
log.flush(log.append(Kind.USER, User(1, 2, 1, b"\\1" * 10)))
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
for step in (lambda: log.flush(log.append(Kind.USER, User(1, 2, 2, bytes(5000)))),
             lambda: log.append(Kind.USER, User(1, 2, 3, b"")), log.flush, log.close):
    try:
        step()
        print("no error")
    except LineageWriteError as error:
        print(error.exit_code, error)
log.close()
"""


def test_full_disk_is_told_to_everyone_and_leaves_a_valid_log(tmp_path):
    done = subprocess.run([sys.executable, "-c", FULL, tmp_path], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 4 and not done.stderr, done.stderr
    assert all(line.startswith("4 the lineage log cannot be written: writing ") for line in lines)
    assert all("File too large" in line for line in lines)
    assert contents(tmp_path) == [(1, user(1))]


def test_unusable_directories(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LineageWriteError, match="cannot open the lineage log"):
        LineageLog(DirectoryStore(tmp_path / "file"))
    with pytest.raises(BurnishError, match="there is no lineage log in"):
        contents(tmp_path / "nothing")


def test_closed_log(store):
    lineage = LineageLog(store)
    lineage.append(Kind.USER, user(1))
    lineage.close()
    lineage.close()
    with pytest.raises(LineageWriteError, match="closed"):
        lineage.append(Kind.USER, user(2))
    assert [e.lsn for e in lineage.read()] == [1]


def test_errors_of_a_store_reach_the_writer():
    class Broken(MemoryStore):
        def _write(self, first_lsn, frames):
            raise OSError("no carrier")

    lineage = LineageLog(Broken())
    with pytest.raises(LineageWriteError, match="cannot be written: no carrier"):
        lineage.flush(lineage.append(Kind.USER, user(1)))
    with pytest.raises(LineageWriteError, match="no carrier"):
        lineage.close()


# --- blobs


def test_blobs(store):
    with LineageLog(store) as lineage:
        data = os.urandom(100_000)
        key = lineage.put_blob(data)
        assert len(key) == 16 and lineage.put_blob(data) == key
        assert lineage.get_blob(key) == data
        with pytest.raises(LineageMissingError, match=f"blob {bytes(16).hex()} is not in the lineage store"):
            lineage.get_blob(bytes(16))


def test_large_values_come_back_from_blobs(store):
    values = (1.5, "text" * 1000, b"x" * 70_000, (1, 2, {"three": 4}), 2**100)
    launch = Launch(5, (8,), (), tuple(scalar(v) for v in values))
    with LineageLog(store) as lineage:
        lineage.append(Kind.LAUNCH, launch)
        ((entry),) = lineage.read()
        assert tuple(log.scalar_value(store, s) for s in entry.record.scalars) == values


def test_damaged_and_missing_blobs_are_told_with_their_record(tmp_path):
    launch = Launch(5, tuple(range(2000)), ())
    with LineageLog(DirectoryStore(tmp_path)) as lineage:
        lineage.append(Kind.LAUNCH, launch)
        assert [e.record for e in lineage.read()] == [launch]
    (blob,) = [p for p in (tmp_path / "blobs").rglob("*") if p.is_file()]
    blob.write_bytes(blob.read_bytes()[:-1] + b"?")
    with pytest.raises(LineageCorruptError, match=r"record 1: blob .* is damaged"):
        contents(tmp_path)
    blob.unlink()
    with pytest.raises(LineageMissingError, match=r"record 1: blob .* is not in the lineage store"):
        contents(tmp_path)
