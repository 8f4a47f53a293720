"""Times without an offset: what they become, and what is refused."""

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import InvalidError, JobIdReusedError
from lakebed.table import Table

NAIVE = pa.array(["2024-07-01T12:00", None]).cast(pa.timestamp("ms"))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    schema = lakebed.schema_of(
        row_keys={"id": "int64"},
        values={
            "at": "timestamp[us, UTC]?",
            "seen": "timestamp[us, UTC]?",
            "day": "timestamp[us]?",
        },
    )
    return lakebed.connect(tmp_path / "lake").create_table("t", schema)


def times(table: Table, column: str = "at") -> list[str | None]:
    values = table.query(columns=[column]).read_all().column(column).to_pylist()
    return [value and value.isoformat() for value in values]


def test_times_without_an_offset_get_the_zone_that_is_said(table: Table) -> None:
    rows = pa.table({"id": [1, 2], "at": NAIVE, "seen": NAIVE})
    with pytest.raises(InvalidError, match=r"say which zone they are in, for instance zone='UTC'"):
        table.ingest(rows)
    table.ingest(rows, zone={"at": "Europe/Berlin", "seen": "UTC"})
    assert times(table) == ["2024-07-01T10:00:00+00:00", None]
    assert times(table, "seen") == ["2024-07-01T12:00:00+00:00", None]


def test_one_zone_is_meant_for_all_fields_in_utc(table: Table) -> None:
    table.ingest(pa.table({"id": [1, 2], "at": NAIVE, "seen": NAIVE, "day": NAIVE}), zone="+02:00")
    for column in ("at", "seen"):
        assert times(table, column) == ["2024-07-01T10:00:00+00:00", None]
    assert times(table, "day") == ["2024-07-01T12:00:00", None]


@pytest.mark.parametrize("type_", [pa.date32(), pa.date64()])
def test_a_date_is_its_midnight(table: Table, type_: pa.DataType) -> None:
    days = pa.array([dt.date(2024, 7, 1)], type_)
    rows = pa.table({"id": [1], "at": days, "day": days})
    with pytest.raises(InvalidError, match="say which zone"):
        table.ingest(rows)
    table.ingest(rows, zone="Europe/Berlin")
    assert times(table) == ["2024-06-30T22:00:00+00:00"]
    assert times(table, "day") == ["2024-07-01T00:00:00"]


TEXTS = ["2024-07-01", "2024-07-01 12:30", "2024-07-01T12:30:00Z", "2024-07-01T12:30:00.5+04:00"]
IN_UTC = [
    "2024-06-30T22:00:00+00:00",
    "2024-07-01T10:30:00+00:00",
    "2024-07-01T12:30:00+00:00",
    "2024-07-01T08:30:00.500000+00:00",
]


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
def test_texts_keep_the_offset_that_they_have(table: Table, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    lines = [f'{{"id": {n}, "at": "{text}"}}' for n, text in enumerate(TEXTS)]
    if name.endswith("csv"):
        lines = ["id,at", *(f"{n},{text}" for n, text in enumerate(TEXTS))]
    path.write_text("\n".join(lines), "utf-8")
    with pytest.raises(InvalidError) as caught:
        table.ingest(path)
    assert "say which zone they are in, for instance zone='UTC'" in str(caught.value)
    assert "assume_timezone" not in str(caught.value)
    table.ingest(path, zone="Europe/Berlin")
    assert times(table) == IN_UTC


@pytest.mark.parametrize(
    ("at", "says"),
    [("2024-03-31T02:30:00", "doesn't exist"), ("2024-10-27T02:30:00", "ambiguous")],
)
def test_an_hour_that_is_skipped_or_comes_twice_is_refused(
    table: Table, at: str, says: str
) -> None:
    rows = pa.table({"id": [1], "at": pa.array([at]).cast(pa.timestamp("us"))})
    with pytest.raises(InvalidError, match=says) as caught:
        table.ingest(rows, zone="Europe/Berlin")
    assert str(caught.value).endswith(
        "clocks change then: convert the column to UTC yourself, or give the offset"
    )


@pytest.mark.parametrize(
    ("zone", "says"),
    [
        ("Europe/Berln", "did you mean 'Europe/Berlin'?"),
        (
            {"at": "UTC", "day": "UTC"},
            "fields of type 'timestamp[us, UTC]' take a zone, here: at, seen",
        ),
        ({"att": "UTC"}, "take a zone, here: at, seen"),
        ({"at": "Mars"}, "zones are UTC, names as Europe/Berlin, and offsets as +02:00"),
    ],
)
def test_a_zone_that_cannot_be_is_refused(
    table: Table, zone: str | dict[str, str], says: str
) -> None:
    with pytest.raises(InvalidError) as caught:
        table.ingest(pa.table({"id": [1]}), zone=zone)
    assert says in str(caught.value)


def test_the_same_rows_in_another_zone_are_another_request(table: Table) -> None:
    rows = pa.table({"id": [1, 2], "at": NAIVE})
    table.ingest(rows, zone="UTC", job="one")
    assert table.ingest(rows, zone="UTC", job="one").repeated
    with pytest.raises(JobIdReusedError):
        table.ingest(rows, zone="Europe/Berlin", job="one")


def test_a_key_gets_another_type_than_the_file_has() -> None:
    columns = pa.schema([("at", pa.timestamp("us")), ("n", pa.int32()), ("note", pa.string())])
    with pytest.raises(InvalidError, match=r"make it 'timestamp\[us, UTC\]', and say the zone"):
        lakebed.schema_from_arrow(columns, row_keys=["at"])
    types = {"at": "timestamp[us, UTC]", "n": "int64?"}
    schema = lakebed.schema_from_arrow(columns, row_keys=["at"], types=types)
    told = [(f.name, str(f.type), f.nullable) for f in schema.fields]
    assert told == [
        ("at", "timestamp[us, UTC]", False),
        ("n", "int64", True),
        ("note", "string", True),
    ]
    with pytest.raises(InvalidError, match="a field with a type is not among the columns"):
        lakebed.schema_from_arrow(columns, row_keys=["n"], types={"m": "int64"})
