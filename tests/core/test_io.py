"""Files appear whole or not at all, whatever happens to the writer."""

import errno
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish.core.errors import BurnishError
from burnish.core.io import check_writable, open_atomic, write_atomic


@given(data=st.one_of(st.binary(max_size=2000), st.text(st.characters(exclude_categories=["Cs"]), max_size=500)))
def test_contents_arrive_unchanged(tmp_path_factory: pytest.TempPathFactory, data: str | bytes) -> None:
    path = tmp_path_factory.mktemp("io") / "new" / "folder" / "file"
    assert write_atomic(path, data) == path
    assert path.read_bytes() == (data.encode() if isinstance(data, str) else data)
    assert os.listdir(path.parent) == ["file"]


@given(chunks=st.lists(st.binary(max_size=50), max_size=8), fail_after=st.integers(0, 8), existed=st.booleans())
def test_a_block_that_raises_leaves_no_trace(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes], fail_after: int, existed: bool
) -> None:
    folder = tmp_path_factory.mktemp("io")
    path = folder / "file"
    if existed:
        path.write_bytes(b"old")
    fails = fail_after < len(chunks)
    try:
        with open_atomic(path) as stream:
            for i, chunk in enumerate(chunks):
                if i == fail_after:
                    raise KeyboardInterrupt
                stream.write(chunk)
    except KeyboardInterrupt:
        assert fails
    expected = b"old" if fails and existed else None if fails else b"".join(chunks)
    assert (path.read_bytes() if path.exists() else None) == expected
    assert [name for name in os.listdir(folder) if name != "file"] == []


WRITER = """
    import sys
    from burnish.core.io import check_writable, open_atomic
    with open_atomic(sys.argv[1]) as stream:
        stream.write(b"x" * 100_000)
        stream.flush()
        print("half", flush=True)
        sys.stdin.read()
        stream.write(b"x" * 100_000)
"""


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("existed", [True, False])
def test_a_killed_writer_leaves_the_old_file(tmp_path: Path, kill: signal.Signals, existed: bool) -> None:
    path = tmp_path / "file"
    if existed:
        path.write_bytes(b"old")
    writer = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with writer:
        assert writer.stdout is not None and writer.stdout.readline() == b"half\n"
        writer.send_signal(kill)
    assert (path.read_bytes() if path.exists() else None) == (b"old" if existed else None)
    if kill == signal.SIGINT:  # Python unwinds; nothing can clean up after the other two
        assert os.listdir(tmp_path) == (["file"] if existed else [])


def test_permissions_follow_the_umask_and_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "file"
    old = os.umask(0o027)
    try:
        write_atomic(path, "a")
    finally:
        os.umask(old)
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o604)
    write_atomic(path, "b")
    assert path.stat().st_mode & 0o777 == 0o604


def test_a_symbolic_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real" / "file")
    write_atomic(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real" / "file").read_text() == "new"


def test_a_device_is_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomic(pipe, "through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert pipe.is_fifo() and os.listdir(tmp_path) == ["pipe"]


def test_a_folder_and_a_file_used_as_folder_are_clear_errors(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BurnishError, match="it is a folder"):
        write_atomic(tmp_path, "x")
    with pytest.raises(BurnishError, match=r"cannot write .*file/below: Not a directory"):
        write_atomic(tmp_path / "file" / "below", "x")


def test_a_full_disk_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(BurnishError, match="No space left on device"):
        with open_atomic(tmp_path / "file"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("existed", [True, False])
def test_checking_first_changes_nothing(tmp_path: Path, existed: bool) -> None:
    path = tmp_path / "new" / "file"
    if existed:
        write_atomic(path, "old")
    check_writable(path)
    assert (path.read_text() if path.exists() else None) == ("old" if existed else None)
    assert os.listdir(path.parent) == (["file"] if existed else [])


def test_checking_first_finds_what_writing_would(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "below"):
        with pytest.raises(BurnishError) as checked:
            check_writable(path)
        with pytest.raises(BurnishError) as written:
            write_atomic(path, "x")
        assert str(checked.value) == str(written.value)
    check_writable("/dev/null")


def test_an_error_of_the_block_itself_passes_through(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        with open_atomic(tmp_path / "file"):
            (tmp_path / "an input that is not there").read_bytes()
    assert os.listdir(tmp_path) == []
