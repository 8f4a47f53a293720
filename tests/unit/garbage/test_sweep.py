"""A sweep raises the write floor, and forgets no item (R8)."""

import random
import sqlite3

import pytest

from lakebed.garbage import sweep
from lakebed.garbage.sweep import SweepObjects
from lakebed.model.names import (
    ConnectionId,
    JobId,
    TableId,
    TableName,
    TransactionNumber,
    file_name,
)
from lakebed.model.paths import file_path, files_prefix
from lakebed.statestore.log_entries.feed_changes import Define, TakeItems
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.log_entries.table_changes import ChangeSettings
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state import proven_state, sums
from lakebed.statestore.table_state.feed_records import connection_of, taken_items
from tests.dsl import TableStory

FEED = ConnectionId("feed")
HOUR = 3_600
SETTINGS = ChangeSettings({"pending_seconds_max": HOUR, "job_id_seconds_min": 48 * HOUR})
UNKNOWN = 3_000
OLD, NEW, NEWEST = bytes(16), bytes(15) + b"1", bytes(15) + b"2"


class FedTable:
    """A table that took an old item, and a new one 47 hours later."""

    def __init__(self) -> None:
        self.story = story = TableStory()
        story.when_committed(SETTINGS, Define(FEED, 1), TakeItems(FEED, (OLD,)))
        self.commit_for(47)
        story.when_committed(TakeItems(FEED, (NEW,)))
        self.table = OpenTable(
            id_=TableId("t"), name=TableName("t"), head=story.head, rng=random.Random(1)
        )
        self.sweep = SweepObjects(objects=story.objects)

    def commit_for(self, hours: int) -> None:
        for _ in range(hours):
            self.story.clock.advance(HOUR)
            self.story.when_committed(AddFiles(()))

    def known(self) -> list[bytes]:
        known = connection_of(self.story.state, FEED)
        assert known is not None
        return taken_items(self.story.state, known, (OLD, NEW, NEWEST))


@pytest.fixture
def fed() -> FedTable:
    return FedTable()


@pytest.mark.parametrize("hours", [0, 13, 3_000])
def test_items_stay_however_old_they_are(fed: FedTable, hours: int) -> None:
    """Only the feed knows what its source can meet again."""
    fed.commit_for(hours)
    fed.sweep.run(fed.table)
    assert fed.known() == [OLD, NEW]
    fed.story.when_committed(TakeItems(FEED, (NEWEST,)))
    fed.commit_for(13)
    fed.sweep.run(fed.table)
    assert fed.known() == [OLD, NEW, NEWEST]
    assert fed.story.state.head().floor > 2


def test_a_table_without_items_is_swept_by_entries_that_older_releases_know(
    fed: FedTable,
) -> None:
    story = TableStory()
    story.when_committed(SETTINGS)
    table = OpenTable(id_=TableId("t"), name=TableName("t"), head=story.head, rng=random.Random(1))
    for _ in range(50):
        story.clock.advance(HOUR)
        story.when_committed(AddFiles(()))
    before = story.state.head().number
    fed.sweep.run(table)
    ((_, body),) = story.log.log.read_after(before)
    assert body[0] == 1


@pytest.mark.parametrize(("of_a_proof", "proofs"), [(50_000, 1), (1_000, 3)])
def test_a_state_is_proven_once_for_many_unknown_objects(
    monkeypatch: pytest.MonkeyPatch, of_a_proof: int, proofs: int
) -> None:
    monkeypatch.setattr(sweep, "PATHS_OF_A_PROOF", of_a_proof)
    monkeypatch.setattr(sums, "PROVEN_ROWS_MAX", 0)
    proven: list[str] = []
    verify_all = proven_state.verify_all

    def counted(connection: sqlite3.Connection) -> None:
        proven.append("all")
        verify_all(connection)

    monkeypatch.setattr(proven_state, "verify_all", counted)
    fed = FedTable()
    known = fed.story.file("known")
    fed.story.given_files("all", known=1)
    for number in range(UNKNOWN):
        name = file_name(base=TransactionNumber(3), job=JobId(f"{number}"), run=1, sequence=0)
        fed.story.objects.create(file_path(fed.table.id, name)).finish()
    kept = file_path(fed.table.id, known)
    fed.story.objects.create(kept).finish()
    fed.commit_for(3)
    assert fed.sweep.run(fed.table) == UNKNOWN
    assert len(proven) == proofs
    assert list(fed.story.objects.list(files_prefix(fed.table.id))) == [kept]
