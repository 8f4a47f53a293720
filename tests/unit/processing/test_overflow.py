"""A sum that its field cannot hold: its compaction waits, is seen, and goes on when it can."""

from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.backends.memory.clock import VirtualClock
from lakebed.bootstrap.housekeeping import Housekeeping
from lakebed.bootstrap.local import open_local
from lakebed.errors import SumTooLargeError
from lakebed.lake import Lake
from lakebed.statestore.table_state.state import CompactionJob
from lakebed.tasks.work_done import WorkDone

SCHEMA = lakebed.schema_of(row_keys={"k": "string"}, values={"v": "int8"})
SUM = lakebed.Processing(aggregate={"v": "sum"})


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def lake(tmp_path: Path, clock: VirtualClock) -> Lake:
    return Lake(open_local(tmp_path / "lake", clock=clock))


def ingested(lake: Lake, *values: int) -> lakebed.Table:
    """Return a table with a file for each value of one key, none of which sums may reach."""
    table = lake.create_table("t", SCHEMA, processing=SUM, settings={"size_ratio": 1})
    for value in values:
        table.ingest(pa.table({"k": ["a"], "v": pa.array([value], pa.int8())}))
    return table


def jobs(lake: Lake) -> list[CompactionJob]:
    with lake._app.catalog.find(lakebed.model.names.TableName("t")).head.reading() as state:
        return state.jobs()


def test_a_sum_too_large_keeps_its_claim_and_is_not_planned_again(
    lake: Lake, clock: VirtualClock
) -> None:
    with lake:
        table = ingested(lake, 100, 100, 100)
        first = lake.run()
        (job,) = jobs(lake)
        assert first.jobs_created == 1
        for _ in range(20):
            clock.advance(1_000)
            assert lake.run() == WorkDone()
        assert jobs(lake) == [job]
        (told,) = lake.status("t")[0].jobs
        assert (told.report, told.files) == ("rejected", 3)
        assert "does not fit its field" in told.reason
        assert "field=v" in told.reason
        with pytest.raises(SumTooLargeError, match="does not fit its field"):
            table.query().read_all()


def test_it_is_tried_again_when_its_field_was_widened(lake: Lake, clock: VirtualClock) -> None:
    with lake:
        table = ingested(lake, 100, 100)
        lake.run()
        clock.advance(40 * 86_400 / 2)
        assert lake.run() == WorkDone()
        table.widen_field("v", "int64")
        assert lake.run().jobs_done == 1
        assert jobs(lake) == []
        assert lake.status("t")[0].files == 1
        assert table.query().read_all()["v"].to_pylist() == [200]


def test_it_is_tried_again_when_somebody_asks(lake: Lake, clock: VirtualClock) -> None:
    with lake:
        table = ingested(lake, 100, 100)
        assert table.compact().jobs_done == 1
        clock.advance(120)
        table.widen_field("v", "int64")
        assert table.compact().jobs_done == 1
        assert lake.status("t")[0].files == 1


def test_other_files_of_the_leaf_go_on(lake: Lake) -> None:
    with lake:
        table = ingested(lake, 100, 100)
        lake.run()
        for value in (1, 2, 3):
            table.ingest(pa.table({"k": ["b"], "v": pa.array([value], pa.int8())}))
        done = Housekeeping(lake._app).run()
        assert done.jobs_done == 1
        assert lake.status("t")[0].files == 3
