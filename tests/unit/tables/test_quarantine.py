"""A table that cannot be read is set aside, brought back, or dropped."""

from pathlib import Path

import pytest

import lakebed
from lakebed.errors import CorruptError, TableMissingError, TableQuarantinedError
from lakebed.lake import Lake
from lakebed.tasks.failed_work import FailedWork
from tests.unit.tables.lakes import SCHEMA, ids, rows


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A lake of two tables."""
    with lakebed.connect(tmp_path / "lake") as lake:
        for name in ("bad", "good"):
            lake.create_table(name, SCHEMA).ingest(rows(["1", "2"]))
    return tmp_path / "lake"


def id_of(lake: Lake, name: str) -> str:
    return lake._app.catalog.entry(name).id


def damage(place: Path, name: str) -> bytes:
    """Overwrite the log of a table, of which no state is kept. Returns what the log was."""
    with lakebed.connect(place) as lake:
        id_ = id_of(lake, name)
    log = place / "logs" / f"{id_}.sqlite"
    before = log.read_bytes()
    for state in place.glob(f"cache/**/{id_}.sqlite*"):
        state.unlink()
    log.write_bytes(b"\0" * len(before))
    return before


def contents(place: Path, id_: str) -> dict[str, bytes]:
    """Return all bytes of a table: of its log and of its objects."""
    found = [*place.glob(f"logs/{id_}.sqlite"), *place.glob(f"objects/tables/{id_}/**/*")]
    return {str(path): path.read_bytes() for path in found if path.is_file()}


def test_a_damaged_table_is_set_aside_and_nothing_of_it_is_touched(place: Path) -> None:
    damage(place, "bad")
    with lakebed.connect(place) as lake:
        before = contents(place, id_of(lake, "bad"))
        with pytest.raises(CorruptError):
            lake.run()
        lake.quarantine("bad")
        lake.quarantine("bad")
        lake.run()
        assert lake.tables() == ["bad", "good"]
        assert lake.tables(online=True) == ["good"]
        assert lake.table_condition("bad") == "quarantined"
        assert contents(place, id_of(lake, "bad")) == before
        assert ids(lake.table("good")) == ["1", "2"]


def test_nothing_is_done_with_a_table_that_is_set_aside(place: Path) -> None:
    with lakebed.connect(place) as lake:
        table = lake.table("bad")
        lake.quarantine("bad")
        before = contents(place, id_of(lake, "bad"))
        for act in (lake.table, lake.status, lambda name: lake.run([name])):
            with pytest.raises(TableQuarantinedError) as raised:
                act("bad")
            assert raised.value.hint == "`lakebed table online bad` brings it back"
        with pytest.raises(TableQuarantinedError):
            lake._app.catalog.find_id(table._opened.id)
        assert contents(place, id_of(lake, "bad")) == before


def test_it_is_brought_back_as_it_was(place: Path) -> None:
    before = damage(place, "bad")
    with lakebed.connect(place) as lake:
        lake.quarantine("bad")
        id_ = id_of(lake, "bad")
    (place / "logs" / f"{id_}.sqlite").write_bytes(before)
    with lakebed.connect(place) as lake:
        lake.set_online("bad", online=True)
        assert lake.table_condition("bad") == "online"
        assert ids(lake.table("bad")) == ["1", "2"]
        lake.run()


def test_a_damaged_table_is_taken_offline_without_its_log(place: Path) -> None:
    damage(place, "bad")
    with lakebed.connect(place) as lake:
        lake.set_online("bad", online=False)
        assert lake.table_condition("bad") == "offline"
        lake.run()


def test_a_damaged_table_is_dropped_from_quarantine_only(place: Path) -> None:
    damage(place, "bad")
    with lakebed.connect(place) as lake:
        id_ = id_of(lake, "bad")
        before = contents(place, id_)
        with pytest.raises(CorruptError) as raised:
            lake.drop_table("bad")
        assert "`lakebed table quarantine bad`" in str(raised.value.hint)
        assert contents(place, id_) == before
        lake.quarantine("bad")
        lake.drop_table("bad")
        assert lake.tables() == ["good"]
        assert contents(place, id_) == {}
        assert lake.fsck().findings == ()
        lake.run()
        lake.create_table("bad", SCHEMA).ingest(rows(["7"]))
        assert ids(lake.table("bad")) == ["7"]


def test_a_whole_table_is_dropped_from_quarantine_with_its_tombstone(place: Path) -> None:
    with lakebed.connect(place) as lake:
        opened = lake.table("bad")._opened
        lake.quarantine("bad")
        lake.drop_table("bad")
        with opened.head.reading() as state:
            assert state.head().dropped


def test_status_tells_the_others_and_names_what_cannot_be_read(place: Path) -> None:
    damage(place, "bad")
    with lakebed.connect(place) as lake:
        failed: list[FailedWork] = []
        found = lake.status(failed=failed.append)
        assert [status.name for status in found] == ["good"]
        assert [(one.table, one.code) for one in failed] == [("bad", "corrupt")]
        with pytest.raises(CorruptError) as raised:
            lake.status()
        assert raised.value.facts["table"] == "bad"


def test_fsck_of_the_lake_passes_it_over_and_says_so(place: Path) -> None:
    damage(place, "bad")
    with lakebed.connect(place) as lake:
        lake.quarantine("bad")
        report = lake.fsck()
        assert [one.code for one in report.findings] == ["table-quarantined"]
        assert not report.is_damaged
        assert lake.fsck("bad").is_damaged


def test_a_table_that_is_not_there_cannot_be_set_aside(place: Path) -> None:
    with lakebed.connect(place) as lake:
        with pytest.raises(TableMissingError) as raised:
            lake.quarantine("bed")
        assert raised.value.hint == "did you mean 'bad'?"
