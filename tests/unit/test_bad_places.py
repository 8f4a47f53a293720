"""Where a lake cannot be: refused through the public face, and what is there stays as it is."""

import errno
import json
from pathlib import Path
from zlib import crc32

import pyarrow as pa
import pytest

import lakebed
from lakebed.backends.local import lake_directory
from lakebed.backends.local.mounts import Mount
from lakebed.errors import CorruptError, InvalidError, NewerFormatError, StorageFullError

SCHEMA = lakebed.schema_of(row_keys={"id": "int64"})


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
def test_a_lake_on_a_network_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    mounts = [Mount("/", "ext4"), Mount(str(tmp_path.resolve()), kind)]
    monkeypatch.setattr(lake_directory, "mounts_of_this_machine", lambda: mounts)
    with pytest.raises(InvalidError, match=kind) as raised:
        lakebed.connect(tmp_path / "lake")
    assert raised.value.hint == "choose a directory on a local disk"
    assert not files_in(tmp_path)


def test_a_lake_that_a_newer_lakebed_made_is_refused(tmp_path: Path) -> None:
    lakebed.connect(tmp_path / "lake").close()
    mark = {"format": 99, "checksum": crc32(b"[99,null]")}
    (tmp_path / "lake" / "lakebed.json").write_text(json.dumps(mark))
    before = files_in(tmp_path)
    with pytest.raises(NewerFormatError, match="99") as raised:
        lakebed.connect(tmp_path / "lake")
    assert raised.value.hint == "upgrade this installation"
    assert files_in(tmp_path) == before


def test_a_mark_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    lakebed.connect(tmp_path / "lake").close()
    (tmp_path / "lake" / "lakebed.json").write_text("{")
    with pytest.raises(CorruptError, match="lake") as raised:
        lakebed.connect(tmp_path / "lake")
    assert raised.value.hint


@pytest.mark.parametrize("create", [True, False])
def test_a_directory_of_something_else_is_left_alone(tmp_path: Path, *, create: bool) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    before = files_in(tmp_path)
    for path in (tmp_path, tmp_path / "letter.txt", tmp_path / "letter.txt" / "lake"):
        with pytest.raises(InvalidError) as raised:
            lakebed.connect(path, create=create)
        assert raised.value.facts["path"] == path
        assert raised.value.hint
    assert files_in(tmp_path) == before


def test_a_lake_that_is_not_there_is_not_made_unless_asked(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="no lake"):
        lakebed.connect(tmp_path / "lake", create=False)
    assert not (tmp_path / "lake").exists()


def test_a_schema_of_a_newer_format_is_refused() -> None:
    schema = lakebed.schema_json(SCHEMA) | {"format": 99}
    with pytest.raises(NewerFormatError, match="99"):
        lakebed.schema_from_json(json.loads(json.dumps(schema)))


def test_a_full_disk_leaves_the_table_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lakebed.backends.local import object_store

    with lakebed.connect(tmp_path / "lake") as lake:
        table = lake.create_table("t", SCHEMA)
        table.ingest(pa.table({"id": [1]}), job="one")
        before = lake.status("t")

        def full(_: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(object_store, "sync_file", full)
            with pytest.raises(StorageFullError) as raised:
                table.ingest(pa.table({"id": [2]}), job="two")
        assert raised.value.exit_code == 4
        assert lake.status("t") == before
        assert not list((tmp_path / "lake" / "unfinished").iterdir())
        assert table.ingest(pa.table({"id": [2]}), job="two").rows == 1
        assert table.query().read_all()["id"].to_pylist() == [1, 2]
        assert not lake.fsck(deep=True).findings
