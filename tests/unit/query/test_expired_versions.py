"""A reader gets its version whole, or is told that it is gone: never fewer rows (H24)."""

from pathlib import Path

import pytest

import lakebed
from lakebed.backends.memory.clock import VirtualClock
from lakebed.errors import CorruptError, VersionExpiredError
from lakebed.lake import Lake
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.statestore.log_entries.table_changes import DropPin, PutPin
from lakebed.statestore.open_table import start_of
from tests.unit.tables.lakes import SCHEMA, ids, rows

HOUR = 3_600
KEYS = [f"{n:04d}" for n in range(400)]


@pytest.fixture
def table(lake: Lake) -> lakebed.Table:
    """A table of two files, whose rows take turns."""
    table = lake.create_table("t", SCHEMA, settings={"garbage_seconds_min": HOUR})
    table.ingest(rows(KEYS[::2]))
    table.ingest(rows(KEYS[1::2]))
    return table


def files(lake: Lake) -> set[Path]:
    return set(Path(lake._app.location).glob("objects/tables/*/files/**/*.parquet"))


def commit(table: lakebed.Table, change: PutPin | DropPin) -> None:
    opened = table._opened
    with opened.head.reading() as state:
        start = start_of(state)
    opened.head.commit(opened.own(start, change))


def test_a_reader_whose_version_was_collected_is_told_to_ask_again(
    lake: Lake, table: lakebed.Table, clock: VirtualClock
) -> None:
    reader = table.query()
    table.compact()
    clock.advance(HOUR + 1)
    assert lake.run().files_collected == 2
    with pytest.raises(VersionExpiredError, match="run the query again"):
        reader.read_all()
    assert ids(table) == KEYS


def test_a_missing_file_of_a_living_version_is_damage(lake: Lake, table: lakebed.Table) -> None:
    reader = table.query()
    min(files(lake)).unlink()
    with pytest.raises(CorruptError, match="a file of the table is missing"):
        reader.read_all()


def test_garbage_that_a_pin_reads_stays_until_the_pin_ends(
    lake: Lake, table: lakebed.Table, clock: VirtualClock
) -> None:
    until = Micros(clock.now() + 5 * HOUR * MICROS_PER_SECOND)
    commit(table, PutPin("reader", until))
    reader = table.query()
    table.compact()
    clock.advance(2 * HOUR)
    assert lake.run().files_collected == 0
    assert reader.read_all()["id"].to_pylist() == KEYS
    commit(table, DropPin("reader"))
    assert lake.run().files_collected == 2
