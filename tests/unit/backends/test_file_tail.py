"""What happens to files that a feed reads: they are renamed, cut, made anew (protocol R16), and are
no files."""

import os
from pathlib import Path

import pytest

from lakebed.backends.local import file_tail
from lakebed.backends.local.file_tail import FileTail
from lakebed.errors import DeniedError, InvalidError
from lakebed.feed_errors import PositionGoneError
from lakebed.ports.record_source import SourceSplit


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "app.log"
    path.write_bytes(b"one\ntwo\n")
    return path


@pytest.fixture
def tail(tmp_path: Path) -> FileTail:
    return FileTail(str(tmp_path / "app.log*"))


def read(tail: FileTail, split: SourceSplit, begin: int, *, bytes_max: int) -> list[bytes] | None:
    """Return the lines behind a byte of a file."""
    records = tail.open(split, begin).read(bytes_max=bytes_max)
    return None if records is None else records.batch["value"].to_pylist()


def test_a_file_that_is_renamed_is_the_same_and_a_new_one_is_another(
    log: Path, tail: FileTail
) -> None:
    (before,) = tail.splits()
    log.rename(log.with_suffix(".log.1"))
    log.write_bytes(b"one\nthree\n")
    found = tail.splits()
    assert len(found) == 2
    (old,) = [split for split in found if split.name == before.name]
    assert old.title.endswith(".log.1")
    records = read(tail, old, 4, bytes_max=100)
    assert records == [b"two"]


def test_a_file_that_was_renamed_since_it_was_listed_waits_for_the_next_listing(
    log: Path, tail: FileTail
) -> None:
    (split,) = tail.splits()
    log.rename(log.with_suffix(".log.1"))
    assert read(tail, split, 0, bytes_max=100) is None
    log.write_bytes(b"another\n")
    assert read(tail, split, 0, bytes_max=100) is None
    tail.splits()
    assert read(tail, split, 0, bytes_max=100) is not None


def test_a_file_that_was_cut_is_told_with_both_sizes(log: Path, tail: FileTail) -> None:
    (split,) = tail.splits()
    log.write_bytes(b"one\n")
    with pytest.raises(PositionGoneError, match=r"wanted=8 oldest=0 .*bytes=4"):
        read(tail, split, 8, bytes_max=100)


def test_a_line_without_its_end_waits(log: Path, tail: FileTail) -> None:
    (split,) = tail.splits()
    with log.open("ab") as file:
        file.write(b"thr")
    assert read(tail, split, 8, bytes_max=100) is None
    with log.open("ab") as file:
        file.write(b"ee\n")
    records = read(tail, split, 8, bytes_max=100)
    assert records == [b"three"]


def test_a_first_line_of_any_length_names_a_file_for_ever(tmp_path: Path, tail: FileTail) -> None:
    path = tmp_path / "app.log"
    path.write_bytes(b"x" * 1_000)
    assert tail.splits() == []
    path.write_bytes(b"x" * 2_000)
    (before,) = tail.splits()
    assert read(tail, before, 0, bytes_max=100) is None
    with path.open("ab") as file:
        file.write(b"y\nz\n")
    assert tail.splits() == [before]
    records = read(tail, before, 0, bytes_max=100)
    assert records == [b"x" * 2_000 + b"y"]


def test_a_line_that_never_ends_is_refused(
    log: Path, tail: FileTail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_tail, "LINE_BYTES_MAX", 50)
    (split,) = tail.splits()
    with log.open("ab") as file:
        file.write(b"x" * 200)
    with pytest.raises(InvalidError, match="a line is too long"):
        read(tail, split, 8, bytes_max=10)


def test_what_is_no_file_is_left_alone(log: Path, tail: FileTail, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "app.log.pipe")
    (tmp_path / "app.log.d").mkdir()
    (tmp_path / "app.log.loop").symlink_to(tmp_path / "app.log.loop")
    (tmp_path / "app.log.empty").touch()
    assert [split.title for split in tail.splits()] == [str(log)]


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told(log: Path, tail: FileTail) -> None:
    log.chmod(0)
    with pytest.raises(DeniedError):
        tail.splits()
