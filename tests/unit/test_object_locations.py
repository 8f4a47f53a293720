"""Where a lake keeps its objects: chosen when it is made, remembered, never changed."""

import json
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.backends.memory import MemoryObjectStore, VirtualClock
from lakebed.errors import CorruptError, InvalidError

SCHEMA = lakebed.schema_of(row_keys={"id": "int64"})


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return tmp_path / "lake"


def mark(lake: Path) -> dict[str, object]:
    found = json.loads((lake / "lakebed.json").read_text())
    assert isinstance(found, dict)
    return found


def test_a_store_that_is_given_holds_the_objects(lake: Path) -> None:
    store = MemoryObjectStore(VirtualClock())
    with lakebed.connect(lake, objects=store) as opened:
        opened.create_table("t", SCHEMA).ingest(pa.table({"id": [1]}))
    assert len(list(store.list(""))) == 1
    with lakebed.connect(lake, objects=store) as opened:
        assert opened.table("t").query().read_all().to_pylist() == [{"id": 1}]
        assert not opened.fsck().findings


def test_a_store_that_was_given_must_be_given_again(lake: Path) -> None:
    lakebed.connect(lake, objects=MemoryObjectStore(VirtualClock())).close()
    with pytest.raises(InvalidError, match="objects=STORE"):
        lakebed.connect(lake)


def test_a_lake_with_objects_in_its_directory_stays_there(lake: Path) -> None:
    lakebed.connect(lake).close()
    before = mark(lake)
    assert before["format"] == 1
    assert "objects" not in before
    for objects in ("s3://bucket/prefix", MemoryObjectStore(VirtualClock())):
        with pytest.raises(InvalidError, match=r"the directory.*a lake keeps its place"):
            lakebed.connect(lake, objects=objects)
    assert mark(lake) == before
    lakebed.connect(lake).close()


def test_a_lake_of_one_bucket_is_not_opened_in_another(lake: Path) -> None:
    lakebed.connect(lake).close()
    (lake / "lakebed.json").write_text('{"format": 2, "objects": "s3://one/a"}')
    for objects in ("s3://two/a", "s3://one/b", "s3://one", MemoryObjectStore(VirtualClock())):
        with pytest.raises(InvalidError, match=r"another place.*s3://one/a"):
            lakebed.connect(lake, objects=objects)
    for same in (None, "s3://one/a", "s3://one/a/"):
        lakebed.connect(lake, objects=same).close()


@pytest.mark.parametrize("text", ['{"format": 2}', '{"format": 1, "objects": "s3://one"}'])
def test_a_mark_that_contradicts_itself_is_corrupt(lake: Path, text: str) -> None:
    lakebed.connect(lake).close()
    (lake / "lakebed.json").write_text(text)
    with pytest.raises(CorruptError, match="contradicts"):
        lakebed.connect(lake)


@pytest.mark.parametrize("place", ["", "bucket", "s3://", "gs://b", "s3:///p", "s3://b/../c"])
def test_what_is_no_address_is_refused_before_anything_is_made(lake: Path, place: str) -> None:
    with pytest.raises(InvalidError):
        lakebed.connect(lake, objects=place)
    assert not lake.exists()


def test_without_obstore_it_says_what_to_install(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("lakebed.backends.aws")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(InvalidError, match=r"obstore.*pip install 'lakebed\[aws\]'"):
        lakebed.connect(lake, objects="s3://bucket/prefix")
    assert not lake.exists()
    lakebed.connect(lake).close()
