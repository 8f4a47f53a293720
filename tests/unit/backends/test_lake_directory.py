"""What a directory must be to hold a lake, and what is refused (H28)."""

import json
import os
from pathlib import Path
from zlib import crc32

import pytest

from lakebed.backends.local import open_lake_directory
from lakebed.backends.local.mounts import (
    NETWORK_KINDS,
    Mount,
    mount_of,
    mounts_from_linux,
    mounts_from_macos,
    mounts_of_this_machine,
)
from lakebed.errors import CorruptError, InvalidError, NewerFormatError

DISK = [Mount("/", "ext4")]
SUM = crc32(b"[1,null]")


def test_a_new_directory_becomes_a_lake_and_opens_again(tmp_path: Path) -> None:
    made = open_lake_directory(tmp_path / "deep" / "lake")
    assert json.loads((made.path / "lakebed.json").read_text()) == {"format": 1, "checksum": SUM}
    names = {entry.name for entry in made.path.iterdir()}
    folders = {"objects", "unfinished", "logs", "queues", "cache", "spill"}
    assert names == folders | {"lakebed.json"}
    assert list((made.path / "unfinished").iterdir()) == []
    assert open_lake_directory(str(tmp_path / "deep" / "lake"), create=False) == made


def test_an_empty_directory_becomes_a_lake(tmp_path: Path) -> None:
    assert open_lake_directory(tmp_path).path == tmp_path


def test_what_is_missing_is_made_again(tmp_path: Path) -> None:
    lake = open_lake_directory(tmp_path / "lake")
    lake.cache.rmdir()
    open_lake_directory(tmp_path / "lake", create=False)
    assert lake.cache.is_dir()


def test_what_a_crash_while_making_it_left_is_no_stranger(tmp_path: Path) -> None:
    (tmp_path / "objects").mkdir()
    (tmp_path / "lakebed.json.123.new").write_text("{")
    assert open_lake_directory(tmp_path).path == tmp_path


def test_a_link_to_a_lake_is_the_lake(tmp_path: Path) -> None:
    lake = open_lake_directory(tmp_path / "lake")
    (tmp_path / "link").symlink_to(lake.path)
    assert open_lake_directory(tmp_path / "link").path == lake.path


def test_a_lake_that_is_not_there_is_not_made_unless_asked(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="there is no lake"):
        open_lake_directory(tmp_path / "lake", create=False)
    assert not (tmp_path / "lake").exists()


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in ("file", "file/below"):
        with pytest.raises(InvalidError):
            open_lake_directory(tmp_path / path)


def test_a_directory_with_other_things_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("")
    with pytest.raises(InvalidError, match="other things"):
        open_lake_directory(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_newer_lake_is_refused_and_left_alone(tmp_path: Path) -> None:
    mark = {"format": 3, "objects": "s3://b", "checksum": crc32(b'[3,"s3://b"]'), "shape": "round"}
    (tmp_path / "lakebed.json").write_text(json.dumps(mark))
    with pytest.raises(NewerFormatError):
        open_lake_directory(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["lakebed.json"]


@pytest.mark.parametrize(
    "text",
    [
        f'{{"format":3,"checksum":{SUM}}}',
        f'{{"format":2,"objects":"s3://b","checksum":{SUM}}}',
        f'{{"format":1,"checksum":{SUM + 1}}}',
        f'{{"format":1,"checksum":-{SUM}}}',
        '{"format":3}',
    ],
)
def test_a_mark_that_was_changed_is_corrupt_and_not_newer(tmp_path: Path, text: str) -> None:
    (tmp_path / "lakebed.json").write_text(text)
    with pytest.raises(CorruptError, match="contradicts its checksum"):
        open_lake_directory(tmp_path)


@pytest.mark.parametrize("text", ['{"format":1}', '{"format":1,"chec+sum":7}'])
def test_a_mark_without_a_checksum_is_that_of_a_release_before(tmp_path: Path, text: str) -> None:
    (tmp_path / "lakebed.json").write_text(text)
    assert open_lake_directory(tmp_path).objects is None
    assert (tmp_path / "lakebed.json").read_text() == text


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "one"}', "{}"])
def test_a_mark_that_cannot_be_read_is_corrupt(tmp_path: Path, text: str) -> None:
    (tmp_path / "lakebed.json").write_text(text)
    with pytest.raises(CorruptError):
        open_lake_directory(tmp_path)


def test_a_lake_that_another_process_makes_meanwhile_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    glob = Path.glob

    def made_meanwhile(path: Path, pattern: str) -> list[Path]:
        monkeypatch.undo()
        open_lake_directory(tmp_path)
        (tmp_path / "logs" / f"{'a' * 32}.sqlite").touch()
        (tmp_path / "tables.sqlite").touch()
        return list(glob(path, pattern))

    monkeypatch.setattr(Path, "glob", made_meanwhile)
    assert open_lake_directory(tmp_path).path == tmp_path


@pytest.mark.parametrize("create", [False, True])
def test_a_lake_without_its_mark_is_damaged_not_absent(tmp_path: Path, create: bool) -> None:
    open_lake_directory(tmp_path)
    (tmp_path / "logs" / f"{'a' * 32}.sqlite").touch()
    (tmp_path / "lakebed.json").unlink()
    with pytest.raises(CorruptError, match="mark is gone"):
        open_lake_directory(tmp_path, create=create)
    assert not (tmp_path / "lakebed.json").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    lake = open_lake_directory(tmp_path / "lake")
    for folder in (tmp_path, lake.path / "unfinished"):
        folder.chmod(0o500)
        try:
            with pytest.raises(InvalidError, match="cannot be written"):
                open_lake_directory(lake.path if folder != tmp_path else tmp_path / "other")
        finally:
            folder.chmod(0o700)


@pytest.mark.parametrize("code", ["EROFS", "EACCES", "EPERM", "ENOTSUP"])
def test_a_file_system_that_cannot_keep_promises_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    import errno

    def fail(*_: object) -> None:
        number = getattr(errno, code)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("os.link", fail)
    with pytest.raises(InvalidError):
        open_lake_directory(tmp_path / "lake")


@pytest.mark.parametrize("kind", sorted(NETWORK_KINDS))
def test_network_file_systems_are_refused(tmp_path: Path, kind: str) -> None:
    mounts = [*DISK, Mount(str(tmp_path), kind)]
    with pytest.raises(InvalidError, match="network"):
        open_lake_directory(tmp_path / "lake", mounts=mounts)
    assert not (tmp_path / "lake").exists()


def test_a_local_disk_inside_a_network_file_system_is_fine(tmp_path: Path) -> None:
    mounts = [Mount("/", "nfs4"), Mount(str(tmp_path), "xfs"), Mount(f"{tmp_path}/lakes", "nfs")]
    assert open_lake_directory(tmp_path / "lake", mounts=mounts).path == tmp_path / "lake"


def test_the_longest_mount_holds_a_path_and_of_equals_the_last() -> None:
    mounts = [Mount("/", "ext4"), Mount("/a", "nfs"), Mount("/a", "xfs"), Mount("/a/b", "tmpfs")]
    kinds = {
        path: getattr(mount_of(path, mounts), "kind", None)
        for path in ("/", "/ab", "/a", "/a/c", "/a/b", "/a/b/c", "/a/bc")
    }
    assert kinds == {
        "/": "ext4",
        "/ab": "ext4",
        "/a": "xfs",
        "/a/c": "xfs",
        "/a/b": "tmpfs",
        "/a/b/c": "tmpfs",
        "/a/bc": "xfs",
    }
    assert mount_of("/a", []) is None


def test_linux_mount_tables_are_read() -> None:
    text = (
        "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
        "36 35 0:44 /x /mnt/a\\040b rw master:1 propagate_from:2 - nfs4 host:/x rw,vers=4.2\n"
        "37 22 0:45 / /mnt/c rw - fuse.sshfs me@host: rw\n"
        "nonsense\n"
    )
    assert mounts_from_linux(text) == [
        Mount("/", "ext4"),
        Mount("/mnt/a b", "nfs4"),
        Mount("/mnt/c", "fuse.sshfs"),
    ]


def test_macos_mount_tables_are_read() -> None:
    text = (
        "/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)\n"
        "//me@host/share on /Volumes/my share (smbfs, nodev, nosuid, mounted by me)\n"
        "map auto_home on /System/Volumes/Data/home (autofs, automounted, nobrowse)\n"
        "host:/x on /n (nfs)\n"
    )
    assert mounts_from_macos(text) == [
        Mount("/", "apfs"),
        Mount("/Volumes/my share", "smbfs"),
        Mount("/System/Volumes/Data/home", "autofs"),
        Mount("/n", "nfs"),
    ]


def test_this_machine_has_a_mount_table() -> None:
    assert any(mount.path == "/" for mount in mounts_of_this_machine())
