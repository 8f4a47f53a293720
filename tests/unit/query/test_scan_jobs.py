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
from lakebed.bootstrap.local import open_local
from lakebed.errors import (
    CorruptError,
    FormatGateError,
    InvalidError,
    TableMissingError,
    VersionExpiredError,
)
from lakebed.model.formats import Formats
from lakebed.model.versions import time_of
from lakebed.query.conditions import condition_of
from lakebed.statestore.version_pin import VersionPin

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
    with table._opened.head.reading() as state:
        (pin,) = state.pins()
        assert pin.until <= state.head().at + 3_600 * 10**6
    before = read(scan)
    assert table.compact().files_collected == 0
    assert lake.run(["plain"]).files_collected == 0
    processes._kept_files.cache_clear()
    assert read(scan).equals(before)


def test_a_scan_is_of_the_version_that_is_pinned_whatever_is_committed_meanwhile(
    lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, put = lake["plain"], VersionPin.put
    table.change_settings(garbage_seconds_min=0)
    wanted = table.query().read_all()

    def put_and_overtaken(pin: VersionPin) -> None:
        put(pin)
        table.ingest(rows(7))

    with monkeypatch.context() as patched:
        patched.setattr(VersionPin, "put", put_and_overtaken)
        scan = planned(lake, "plain", ScanOptions(pin_seconds=3_600))
    table.compact()
    lake.run(["plain"])
    processes._kept_files.cache_clear()
    assert read(scan).equals(wanted)


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
        ({"where": pc.sqrt(pc.field("v")) > 2}, "cannot be sent"),
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
    ask = partial(condition_of, columns=["v", "k"])
    assert table_columns(lake._app.location, "plain", ask, SMALL).names == ["v", "k"]


@pytest.mark.parametrize("table", PROCESSINGS)
def test_an_older_version_is_read_by_number_time_and_tag(lake: lakebed.Lake, table: str) -> None:
    opened = lake[table]
    number = opened.log().entries[-2].number
    opened.tag("two", as_of=number)
    opened.change_fields(rename={"k": "later"})
    asked: dict[str, Any] = {"columns": ["k", "n"], "where": lakebed.field("n") >= 40}
    wanted = opened.query(as_of=number, **asked).read_all()
    assert bool(wanted.num_rows) is (table != "aged")
    for as_of in (number, str(number), "two"):
        scan = planned(lake, table, SMALL._replace(as_of=as_of), **asked)
        assert read(scan).equals(wanted)
    for options, has_it in ((SMALL._replace(as_of="two"), False), (SMALL, True)):
        columns = table_columns(lake._app.location, table, condition_of, options)
        assert ("later" in columns.names) is has_it
    made = time_of(opened.log().entries[1].at)
    first = planned(lake, table, SMALL._replace(as_of=made))
    assert read(first).equals(opened.query(as_of=made).read_all())


def test_the_pin_is_of_the_older_version(lake: lakebed.Lake) -> None:
    table = lake["plain"]
    table.change_settings(garbage_seconds_min=0)
    number = table.log().entries[-2].number
    wanted = table.query(as_of=number).read_all()
    scan = planned(lake, "plain", ScanOptions(pin_seconds=3_600, as_of=number))
    with table._opened.head.reading() as state:
        (pin,) = state.pins()
        assert pin.number == number
    assert table.compact().files_collected == 0
    processes._kept_files.cache_clear()
    assert read(scan).equals(wanted)
    assert read(planned(lake, "plain", SMALL._replace(as_of=number))).equals(wanted)


def test_where_older_releases_may_work_an_older_version_is_read_without_a_pin(
    tmp_path: Path,
) -> None:
    app = open_local(tmp_path / "old")
    app.registry.raise_formats(Formats(entry=5, state=3))
    with lakebed.Lake(app) as old:
        table = old.create_table("plain", SCHEMA)
        number = table.ingest(rows(0)).number
        newest = table.ingest(rows(1)).number
        with pytest.raises(FormatGateError, match="upgrade finish"):
            planned(old, "plain", ScanOptions(as_of=number))
        assert table.log().entries[-1].number == newest
        assert read(planned(old, "plain", SMALL._replace(as_of=number))).num_rows == 300
        assert read(planned(old, "plain", ScanOptions())).num_rows == 600


@pytest.mark.parametrize("pin_seconds", [0, 3_600])
def test_a_version_that_is_not_there_is_refused_and_pins_nothing(
    lake: lakebed.Lake, pin_seconds: int
) -> None:
    table = lake["plain"]
    table.change_settings(garbage_seconds_min=0)
    first = table.log().entries[-2].number
    assert table.compact().files_collected
    newest = table.log().entries[-1].number
    for as_of, kind in (
        (first, VersionExpiredError),
        (newest + 10, InvalidError),
        ("no-such-tag", InvalidError),
        ("2013-01-01", InvalidError),
        (2.5, InvalidError),
    ):
        asked: Any = as_of
        options = ScanOptions(pin_seconds=pin_seconds, as_of=asked)
        with pytest.raises(kind) as caught:
            planned(lake, "plain", options)
        assert caught.value.hint
    assert table.log().entries[-1].number == newest
