"""A lake that was closed answers nothing any more, nor do its tables."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import InvalidError
from lakebed.lake import Lake
from lakebed.table import Table

ROWS = pa.table({"id": [1]})
OF_THE_LAKE: dict[str, Callable[[Lake], object]] = {
    "tables": lambda lake: lake.tables(),
    "table": lambda lake: lake.table("t"),
    "in": lambda lake: "t" in lake,
    "create_table": lambda lake: lake.create_table("u", lakebed.schema_of(row_keys={"a": "int64"})),
    "rename_table": lambda lake: lake.rename_table("t", "u"),
    "drop_table": lambda lake: lake.drop_table("t"),
    "set_online": lambda lake: lake.set_online("t", online=False),
    "quarantine": lambda lake: lake.quarantine("t"),
    "table_condition": lambda lake: lake.table_condition("t"),
    "run": lambda lake: lake.run(),
    "status": lambda lake: lake.status(),
    "commit_queued": lambda lake: lake.commit_queued(),
    "nameless_jobs": lambda lake: lake.nameless_jobs(),
    "tasks": lambda lake: lake.tasks(),
    "dead_letters": lambda lake: lake.dead_letters(),
    "redrive": lambda lake: lake.redrive(),
    "fsck": lambda lake: lake.fsck(),
    "upgrade_status": lambda lake: lake.upgrade_status(),
    "plan_upgrade": lambda lake: lake.plan_upgrade(),
    "finish_upgrade": lambda lake: lake.finish_upgrade(),
}
OF_A_TABLE: dict[str, Callable[[Table], object]] = {
    "schema": lambda table: table.schema,
    "history": lambda table: table.history(),
    "log": lambda table: table.log(),
    "jobs": lambda table: table.jobs(),
    "count": lambda table: table.count(),
    "ingest": lambda table: table.ingest(ROWS),
    "queued": lambda table: table.ingest(ROWS, queued=True),
    "query": lambda table: table.query().read_all(),
    "explain": lambda table: table.explain(),
}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = lakebed.connect(tmp_path / "lake")
    lake.create_table("t", lakebed.schema_of(row_keys={"id": "int64"})).ingest(ROWS, job="one")
    return lake


@pytest.mark.parametrize("name", OF_THE_LAKE)
def test_a_closed_lake_refuses(lake: Lake, name: str) -> None:
    lake.close()
    with pytest.raises(InvalidError, match="the lake was closed") as error:
        OF_THE_LAKE[name](lake)
    assert error.value.hint == "connect to it again"


@pytest.mark.parametrize("name", OF_A_TABLE)
def test_a_table_of_a_closed_lake_refuses(lake: Lake, name: str) -> None:
    table = lake.table("t")
    lake.close()
    with pytest.raises(InvalidError, match="the lake was closed"):
        OF_A_TABLE[name](table)


def test_a_lake_is_closed_again_and_says_where_it_is(lake: Lake, tmp_path: Path) -> None:
    lake.close()
    lake.close()
    assert str(tmp_path / "lake") in repr(lake)
