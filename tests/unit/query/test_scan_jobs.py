"""Slices read by processes that have the lake's objects only give what a query gives."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lakebed
from lakebed.bootstrap.cluster import processes
from lakebed.bootstrap.cluster.slice_scans import (
    SLICE_BYTES_MIN,
    PlannedScan,
    ScanOptions,
    plan_scan,
    table_columns,
)
from lakebed.errors import CorruptError, InvalidError, TableMissingError, VersionExpiredError
from lakebed.query.conditions import condition_of

SMALL = ScanOptions(pin_seconds=0, slice_bytes=SLICE_BYTES_MIN)
FIELDS: dict[str, Any] = {
    "row_keys": {"k": "string", "at": "timestamp[us, UTC]"},
    "sort_keys": {"n": "int64"},
    "values": {"v": "float64?", "gone": "bool", "tags": {"list": "string"}},
}
SCHEMA = lakebed.schema_of(**FIELDS)
NO_SORT_KEYS = lakebed.schema_of(
    row_keys=FIELDS["row_keys"], values={"n": "int64", **FIELDS["values"]}
)
PROCESSINGS: dict[str, lakebed.Processing | None] = {
    "plain": None,
    "filtered": lakebed.Processing(filter=lakebed.field("v") >= 40),
    "aged": lakebed.Processing(age_off=lakebed.AgeOff("at", seconds=1)),
    "latest": lakebed.Processing(latest=lakebed.Latest("n", delete="gone")),
    "summed": lakebed.Processing(
        aggregate={"n": "sum", "v": "max", "gone": "last by n", "tags": "last by n"} | {"n": "max"}
    ),
}
ASKED: dict[str, dict[str, Any]] = {
    "all": {},
    "columns": {"columns": ["v", "k"]},
    "keys": {"keys": ["3", ("5", 5 * 10**6)]},
    "ranges": {"ranges": [{"k": ("1", "3")}, {"k": ("7", None)}]},
    "where": {"where": (lakebed.field("v") < 60) & lakebed.field("k").is_in(["1", "2", "8"])},
    "where on what is not given": {"where": lakebed.field("n") >= 150, "columns": ["k"]},
    "nothing": {"ranges": {"k": ("x", "y")}},
}


def rows(seed: int, count: int = 300) -> pa.Table:
    numbers = [(n * 31 + seed) % count for n in range(count)]
    return pa.table(
        {
            "k": [str(n % 10) for n in numbers],
            "at": pa.array([n % 10 * 10**6 for n in numbers], pa.timestamp("us", "UTC")),
            "n": numbers,
            "v": [None if n % 7 == 0 else float(n % 100) for n in numbers],
            "gone": [n % 11 == 0 for n in numbers],
            "tags": [["a", "b"][: n % 3] for n in numbers],
        }
    )


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[lakebed.Lake]:
    processes._kept_files.cache_clear()
    with lakebed.connect(tmp_path / "lake") as opened:
        for name, processing in PROCESSINGS.items():
            schema = NO_SORT_KEYS if name in ("latest", "summed") else SCHEMA
            table = opened.create_table(
                name, schema, split_points=["3", "6"], processing=processing
            )
            for seed in range(3):
                table.ingest(rows(seed))
        yield opened


def planned(
    lake: lakebed.Lake,
    table: str,
    options: ScanOptions = SMALL,
    **asked: Any,  # noqa: ANN401 - as `Table.query` has them
) -> PlannedScan:
    return plan_scan(lake._app.location, table, partial(condition_of, **asked), options)


def read(scan: PlannedScan) -> pa.Table:
    batches = [batch for one in scan.slices for batch in scan.tasks.read(one)]
    return pa.Table.from_batches(batches, schema=scan.columns)


@pytest.mark.parametrize("table", PROCESSINGS)
def test_slices_one_after_the_other_give_what_a_query_gives(lake: lakebed.Lake, table: str) -> None:
    for name, asked in ASKED.items():
        scan = planned(lake, table, **asked)
        wanted = lake[table].query(**asked).read_all()
        assert read(scan).equals(wanted), name
        if name == "all" and table == "plain":
            assert len(scan.slices) > 2
            assert wanted.num_rows == 900


def test_tasks_open_no_state(lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = planned(lake, "plain")
    for name in ("logs", "cache", "lake.json"):
        path = Path(lake._app.location) / name
        if path.exists():
            path.rename(path.with_name(f"{name}-away"))
    assert read(scan).num_rows == 900


def test_a_pin_keeps_the_version_of_a_scan(lake: lakebed.Lake) -> None:
    table = lake["plain"]
    table.change_settings(garbage_seconds_min=0)
    scan = planned(lake, "plain", ScanOptions(pin_seconds=3_600))
    before = read(scan)
    assert table.compact().files_collected == 0
    assert lake.run(["plain"]).files_collected == 0
    processes._kept_files.cache_clear()
    assert read(scan).equals(before)


def test_without_a_pin_a_scan_whose_files_went_says_so(lake: lakebed.Lake) -> None:
    table = lake["plain"]
    table.change_settings(garbage_seconds_min=0)
    newest = table.log().entries[-1].number
    scan = planned(lake, "plain")
    assert table.log().entries[-1].number == newest, "nothing is committed"
    assert table.compact().files_collected
    with pytest.raises(VersionExpiredError, match="read the table again"):
        read(scan)


def test_damage_names_the_table_and_what_finds_it(lake: lakebed.Lake) -> None:
    scan = planned(lake, "plain")
    for path in Path(lake._app.location).glob("objects/tables/*/files/**/*.parquet"):
        path.chmod(0o600)
        path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(CorruptError, match="fsck --deep plain"):
        read(scan)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"columns": ["x"]}, "x"),
        ({"ranges": {"v": (1, 2)}}, "v"),
        ({"where": (pc.field("v") + 1) > 4}, "cannot be sent"),
        ({"where": lakebed.field("v") > "text"}, "v"),
    ],
)
def test_what_is_refused_pins_nothing(lake: lakebed.Lake, asked: dict[str, Any], says: str) -> None:
    newest = lake["plain"].log().entries[-1].number
    with pytest.raises(InvalidError, match=says):
        planned(lake, "plain", ScanOptions(), **asked)
    for options in (ScanOptions(pin_seconds=-1), ScanOptions(slice_bytes=1)):
        with pytest.raises(InvalidError):
            planned(lake, "plain", options)
    assert lake["plain"].log().entries[-1].number == newest
    with pytest.raises(TableMissingError):
        planned(lake, "plane", ScanOptions())


def test_columns_are_told_without_a_plan(lake: lakebed.Lake) -> None:
    found = table_columns(lake._app.location, "plain", partial(condition_of, columns=["v", "k"]))
    assert found.names == ["v", "k"]
