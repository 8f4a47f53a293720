"""Spools: frames come out as they went in, or not at all; in memory and on a disk."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lakebed.backends.local import spool as local_spool
from lakebed.backends.local.process_folder import ProcessFolder, remove_dead
from lakebed.backends.local.spool import LocalSpool
from lakebed.backends.memory.spool import MemorySpool
from lakebed.errors import CorruptError, StorageFullError, UnavailableError
from lakebed.ports.spool import FrameSpool

MADE: dict[str, Callable[[Path], FrameSpool]] = {
    "memory": lambda _: MemorySpool(),
    "local": lambda folder: LocalSpool(folder / "spool", file_bytes=100),
}


@pytest.fixture(params=MADE)
def spool(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FrameSpool]:
    made = MADE[request.param](tmp_path)
    yield made
    made.close()


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("**/*") if path.is_file())


def test_frames_come_out_as_they_went_in_however_often(spool: FrameSpool) -> None:
    bodies = [bytes([n]) * (n * 7) for n in range(30)]
    kept = [spool.append(body) for body in bodies]
    for _ in range(2):
        assert [spool.read(at) for at in reversed(kept)] == bodies[::-1]
    assert spool.size() == sum(spool.size_of(len(body)) for body in bodies)


def test_the_room_of_what_was_dropped_comes_back(spool: FrameSpool) -> None:
    kept = [spool.append(b"x" * 50) for _ in range(20)]
    for at in kept[:10]:
        spool.drop(at)
    assert spool.size() <= spool.size_of(50) * 12
    assert [spool.read(at) for at in kept[10:]] == [b"x" * 50] * 10
    for at in kept[10:]:
        spool.drop(at)
    assert spool.size() == 0
    assert spool.read(spool.append(b"again")) == b"again"


def test_after_all_was_let_go_it_goes_on(spool: FrameSpool) -> None:
    old = spool.append(b"old")
    spool.clear()
    assert spool.size() == 0
    new = spool.append(b"new")
    assert spool.read(new) == b"new"
    with pytest.raises(CorruptError):
        spool.read(old)
    spool.close()
    spool.close()


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalSpool]:
    made = LocalSpool(tmp_path / "spool", file_bytes=1_000)
    yield made
    made.close()


@pytest.mark.parametrize("what", ["flipped", "torn", "gone", "length", "swapped"])
def test_what_was_damaged_is_never_read(local: LocalSpool, tmp_path: Path, what: str) -> None:
    first, second = local.append(b"a" * 40), local.append(b"b" * 40)
    (path,) = (tmp_path / "spool").iterdir()
    bytes_ = bytearray(path.read_bytes())
    if what == "flipped":
        bytes_[second.offset + 20] ^= 1
    elif what == "length":
        bytes_[second.offset + 3] += 1
    elif what == "swapped":
        bytes_[second.offset + 8 :] = b"a" * 40
    elif what == "torn":
        del bytes_[-5:]
    path.unlink() if what == "gone" else path.write_bytes(bytes_)
    with pytest.raises(CorruptError):
        local.read(second)
    if what != "gone":
        assert local.read(first) == b"a" * 40


def test_a_full_disk_keeps_nothing_of_a_frame(
    local: LocalSpool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = local.append(b"a" * 40)
    really, written = os.pwrite, []

    def full(descriptor: int, data: bytes, offset: int) -> int:
        if written:
            raise OSError(errno.ENOSPC, "no space")
        written.append(1)
        return really(descriptor, data[:10], offset)

    monkeypatch.setattr(local_spool.os, "pwrite", full)
    with pytest.raises(StorageFullError):
        local.append(b"b" * 40)
    monkeypatch.setattr(local_spool.os, "pwrite", really)
    (path,) = (tmp_path / "spool").iterdir()
    assert path.stat().st_size == local.size() == 48, "half a frame is cut off"
    second = local.append(b"c" * 40)
    assert [local.read(first), local.read(second)] == [b"a" * 40, b"c" * 40]


def test_a_file_system_that_takes_nothing_is_an_error(
    local: LocalSpool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_spool.os, "pwrite", lambda *_: 0)
    with pytest.raises(UnavailableError):
        local.append(b"b")


def test_its_files_are_for_this_user_alone(local: LocalSpool, tmp_path: Path) -> None:
    local.append(b"a secret")
    (path,) = (tmp_path / "spool").iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_what_a_killed_process_spilled_is_removed_and_what_a_living_one_has_stays(
    tmp_path: Path,
) -> None:
    """Nothing of a dead process is ever read, and no process removes another living one's."""
    story = """
        import sys
        from pathlib import Path
        from lakebed.backends.local.process_folder import ProcessFolder, remove_dead
        from lakebed.backends.local.spool import LocalSpool
        root = Path(sys.argv[1])
        folder = ProcessFolder(root)
        LocalSpool(folder.path / "feed").append(b"theirs")
        print("ready", flush=True)
        sys.stdin.readline()
    """
    command = [sys.executable, "-c", textwrap.dedent(story), str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"ready\n"
        mine = ProcessFolder(tmp_path)
        spool = LocalSpool(mine.path / "feed")
        at = spool.append(b"mine")
        assert remove_dead(tmp_path) == 0
        assert files(tmp_path).count("000001.frames") == 2
        other.kill()
        other.wait()
        assert remove_dead(tmp_path) > 0
        assert spool.read(at) == b"mine"
        assert files(tmp_path).count("000001.frames") == 1
        mine.close()
    assert files(tmp_path) == []
