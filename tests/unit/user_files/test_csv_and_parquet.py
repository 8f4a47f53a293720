import base64
import datetime
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakebed
from lakebed.errors import InvalidError, UnreadableInputError
from lakebed.model.schema import schema_of
from lakebed.user_files.casting import conform
from lakebed.user_files.csv_and_parquet import csv_batches, parquet_batches, parquet_columns
from lakebed.user_files.json_lines import json_batches

READINGS = schema_of(
    row_keys={"id": "string"},
    sort_keys={"at": "timestamp[us, UTC]"},
    values={"n": "int64?", "raw": "binary?", "price": "decimal128(8,2)?", "day": "date32?"},
)

NOTES = schema_of(row_keys={"id": "string"}, values={"note": "string?"})


def test_a_parquet_file_comes_row_group_by_row_group(tmp_path: Path) -> None:
    table = pa.table({"id": [str(n) for n in range(1000)], "n": range(1000)})
    path = tmp_path / "in.parquet"
    pq.write_table(table, path, row_group_size=300)
    batches = list(parquet_batches(path))
    assert pa.Table.from_batches(batches).equals(table)
    assert max(len(b) for b in batches) <= 300
    pq.write_table(table.slice(0, 0), path)
    assert sum(len(b) for b in parquet_batches(path)) == 0
    assert parquet_columns(path).names == ["id", "n"]


def test_sparks_times_are_utc(tmp_path: Path) -> None:
    path = tmp_path / "spark.parquet"
    far = datetime.datetime.fromisoformat("3000-01-01")  # beyond what nanoseconds reach
    table = pa.table({"id": ["a"], "at": pa.array([far], pa.timestamp("us"))})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True, store_schema=False)
    (batch,) = parquet_batches(path)
    assert parquet_columns(path).field("at").type == pa.timestamp("us", tz="UTC")
    assert conform(batch, READINGS).column("at").to_pylist() == [far.replace(tzinfo=datetime.UTC)]


@pytest.mark.parametrize("body", [b"", b"PAR1", b"id,at\n", b"PAR1" + bytes(50) + b"PAR1"])
def test_what_is_not_parquet_is_refused_by_name(tmp_path: Path, body: bytes) -> None:
    path = tmp_path / "bad.parquet"
    path.write_bytes(body)
    for read in (parquet_batches, lambda p: [parquet_columns(p)]):
        with pytest.raises(UnreadableInputError, match=r"bad\.parquet"):
            list(read(path))
    with pytest.raises(UnreadableInputError, match="no such file"):
        list(parquet_batches(tmp_path / "gone.parquet"))


def test_a_parquet_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.parquet"
    pq.write_table(pa.table({"id": ["x" * 50] * 1000}), path)
    whole = path.read_bytes()
    for size in (len(whole) - 1, len(whole) // 2, 9):
        path.write_bytes(whole[:size])
        with pytest.raises(UnreadableInputError):
            list(parquet_batches(path))


def csv(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "in.csv"
    path.write_text(text)
    return path


def test_csv_has_the_types_of_the_schema(tmp_path: Path) -> None:
    raws = [b"", b"a", b"ab", b"abc", b"\x00\xff" * 9, None]
    lines = [
        f"00{n},2013-01-31T0{n}:00:00+01:00,{n},{'NULL' if raw is None else quoted(raw)},{n}.5,,x"
        for n, raw in enumerate(raws)
    ]
    path = csv(tmp_path, "id,at,n,raw,price,day,more\n" + "\n".join(lines) + "\n")
    batches = list(csv_batches(path, READINGS))
    found = conform(pa.Table.from_batches(batches), READINGS, extra_columns="drop")
    assert found.column("id").to_pylist() == [f"00{n}" for n in range(6)]
    assert found.column("raw").to_pylist() == raws
    assert found.column("day").null_count == 6
    assert found.column("at")[1].as_py() == datetime.datetime(2013, 1, 31, tzinfo=datetime.UTC)
    assert batches[0].schema.field("more").type == pa.string()


def quoted(raw: bytes) -> str:
    return f'"{base64.b64encode(raw).decode()}"'


def test_an_empty_string_is_quoted_and_a_null_is_not(tmp_path: Path) -> None:
    schema = schema_of(row_keys={"k": "string"}, values={"v": "string?"})
    path = csv(tmp_path, 'k,v\n"",""\na,\nb,NULL\nc,"NULL"\n')
    (batch,) = csv_batches(path, schema)
    assert conform(batch, schema).column("v").to_pylist() == ["", None, None, "NULL"]
    (batch,) = csv_batches(path, schema, null_tokens=["b"])
    assert batch.column("k").to_pylist() == ["", "a", None, "c"]


def test_a_csv_file_with_a_header_only_has_no_rows(tmp_path: Path) -> None:
    assert sum(len(b) for b in csv_batches(csv(tmp_path, "id,at\n"), READINGS)) == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "id,at\nx,2013-01-31T05:00:00\n",
        "id,at,n\nx,2013-01-31T05:00:00Z,1.5\n",
        "id,at,n\nx,2013-01-31T05:00:00Z,9223372036854775808\n",
        "id,at\nx\n",
        'id,at,raw\nx,2013-01-31T05:00:00Z,"abc"\n',
        'id,at,raw\nx,2013-01-31T05:00:00Z,"a=bc"\n',
        'id,at,raw\nx,2013-01-31T05:00:00Z,"ab*="\n',
        'id,at,raw\nx,2013-01-31T05:00:00Z,"===="\n',
    ],
)
def test_csv_that_does_not_fit_is_refused_by_name(tmp_path: Path, text: str) -> None:
    with pytest.raises(UnreadableInputError, match=r"in\.csv"):
        list(csv_batches(csv(tmp_path, text), READINGS))


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("a" * (3 << 20), "a line of CSV is longer than 1 MiB"),
        ('"' + "a\n" * (1 << 20) + '"', "a quoted value of CSV has line breaks"),
    ],
    ids=["long", "quoted"],
)
def test_lines_that_are_too_long_for_csv_may_come_as_json(
    tmp_path: Path, value: str, says: str
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"id,note\nb,{value}\n")
    with pytest.raises(UnreadableInputError, match=says) as error:
        list(csv_batches(path, NOTES))
    assert "as lines of JSON" in str(error.value)
    lines = tmp_path / "rows.json"
    lines.write_text(json.dumps({"id": "b", "note": value}) + "\n")
    assert sum(batch.num_rows for batch in json_batches(lines, NOTES)) == 1


def test_nested_fields_do_not_come_from_csv(tmp_path: Path) -> None:
    schema = schema_of(row_keys={"k": "string"}, values={"v": {"list": "int8"}})
    with pytest.raises(InvalidError, match="write Parquet instead"):
        list(csv_batches(csv(tmp_path, "k,v\n"), schema))


def test_the_columns_of_a_file_without_rows_are_checked(tmp_path: Path) -> None:
    with lakebed.connect(tmp_path / "lake") as lake:
        table = lake.create_table("t", schema_of(row_keys={"id": "int64"}, values={"n": "int64?"}))
        (tmp_path / "a.csv").write_text("id,m\n")
        pq.write_table(pa.table({"id": pa.array([], pa.int64()), "m": []}), tmp_path / "a.parquet")
        for name in ("a.csv", "a.parquet"):
            with pytest.raises(InvalidError, match="unknown column"):
                table.ingest(tmp_path / name)
            assert table.ingest(tmp_path / name, extra_columns="drop").rows == 0
        (tmp_path / "b.csv").write_text("n\n")
        with pytest.raises(InvalidError, match="a column is missing"):
            table.ingest(tmp_path / "b.csv")


@pytest.mark.parametrize("text", ["7,8\n", "7,8\n9,10\n", '"7","8"'])
def test_a_first_line_that_is_a_row_is_no_header(tmp_path: Path, text: str) -> None:
    with lakebed.connect(tmp_path / "lake") as lake:
        table = lake.create_table("t", schema_of(row_keys={"id": "int64"}, values={"n": "int64?"}))
        (tmp_path / "a.csv").write_text(text)
        for extra in ("refuse", "drop"):
            with pytest.raises(UnreadableInputError, match="names no field of the table") as caught:
                table.ingest(tmp_path / "a.csv", extra_columns=extra)
            assert caught.value.facts["line"] == "7,8"
            assert caught.value.hint == "a CSV file begins with a header: the names of its columns"
