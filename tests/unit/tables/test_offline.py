"""A table that is offline: scheduled work passes over it, people do not notice (rows 19, 20)."""

import pytest

import lakebed
from lakebed.errors import TableMissingError
from tests.unit.tables.lakes import SCHEMA, ids, rows


@pytest.fixture
def busy(lake: lakebed.Lake) -> lakebed.Table:
    """A table with all kinds of work due: a split, compactions, garbage, a snapshot."""
    settings = {"leaf_rows_max": 40, "compaction_strategy": "basic", "job_files_max": 2}
    table = lake.create_table("busy", SCHEMA, settings=settings | {"garbage_seconds_min": 0})
    for start in range(0, 60, 10):
        table.ingest(rows(f"{n:03d}" for n in range(start, start + 10)))
    return table


def numbers(lake: lakebed.Lake) -> list[int]:
    return [status.number for status in lake.status()]


def test_scheduled_work_passes_over_a_table_that_is_offline(
    lake: lakebed.Lake, busy: lakebed.Table
) -> None:
    before = numbers(lake)
    lake.set_online("busy", online=False)
    assert lake.run().is_nothing
    assert numbers(lake) == before
    assert lake.tables(online=False) == ["busy"]
    (status,) = lake.status("busy")
    assert not status.online


def test_rows_go_in_and_out_of_a_table_that_is_offline(
    lake: lakebed.Lake, busy: lakebed.Table
) -> None:
    lake.set_online("busy", online=False)
    busy.ingest(rows(["999"]))
    assert ids(busy) == [*(f"{n:03d}" for n in range(60)), "999"]


def test_the_next_run_works_on_a_table_that_was_put_online(
    lake: lakebed.Lake, busy: lakebed.Table
) -> None:
    lake.set_online("busy", online=False)
    lake.run()
    lake.set_online("busy", online=True)
    done = lake.run()
    assert min(done.leaves_split, done.jobs_done, done.files_collected) > 0
    assert ids(busy) == [f"{n:03d}" for n in range(60)]


def test_whoever_names_a_table_that_is_offline_means_it(
    lake: lakebed.Lake, busy: lakebed.Table
) -> None:
    lake.set_online("busy", online=False)
    assert busy.compact().jobs_done > 0
    busy.ingest(rows(["999"]))
    assert lake.run(["busy"]).files_collected > 0


def test_a_table_that_is_not_there_cannot_be_taken_offline(lake: lakebed.Lake) -> None:
    lake.create_table("trips", SCHEMA)
    with pytest.raises(TableMissingError) as raised:
        lake.set_online("tripps", online=False)
    assert raised.value.hint == "did you mean 'trips'?"
