"""Files and rows as people have them: compressed, in arrays, by patterns, on stdin, as dicts."""

import datetime
import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import lakebed
from lakebed.cli.main import program
from lakebed.errors import InvalidError, JobIdReusedError, UnreadableInputError
from lakebed.table import Table
from tests.unit.cli.programs import Shell

SCHEMA = lakebed.schema_of(
    row_keys={"id": "int64"}, values={"n": "float64?", "at": "timestamp[us, UTC]?"}
)
AT = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    with lakebed.connect(tmp_path / "lake") as lake:
        yield lake.create_table("t", SCHEMA)


def ids(table: Table) -> list[int]:
    found: list[int] = table.query().read_all()["id"].to_pylist()
    return found


TEXTS = {
    "rows.csv.gz": "id,n\n1,2\n3,4\n",
    "rows.tsv": "id\tn\n1\t2\n3\t4\n",
    "rows.tsv.gz": "id\tn\n1\t2\n3\t4\n",
    "rows.jsonl.gz": '{"id": 1, "n": 2}\n{"id": 3, "n": 4}\n',
    "lines.json": '{"id": 1, "n": 2}\n{"id": 3, "n": 4}\n',
    "array.json": '\n[\n {"id": 1,\n  "n": 2},\n {"id": 3, "n": 4}\n]\n',
    "flat.json.gz": '[{"id":1,"n":2},{"id":3,"n":4}]',
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_file_is_read_as_its_name_tells(table: Table, tmp_path: Path, name: str) -> None:
    body = TEXTS[name].encode()
    (tmp_path / name).write_bytes(gzip.compress(body) if name.endswith("gz") else body)
    table.ingest(tmp_path / name)
    assert table.query(columns=["id", "n"]).read_all().to_pydict() == {"id": [1, 3], "n": [2, 4]}


@pytest.mark.parametrize("letter", [";", "|", "tab"])
def test_a_delimiter_is_said(table: Table, tmp_path: Path, letter: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,n\n1,2\n".replace(",", "\t" if letter == "tab" else letter), "utf-8")
    with pytest.raises(UnreadableInputError, match="names no field of the table"):
        table.ingest(path)
    table.ingest(path, delimiter=letter, job="one")
    assert ids(table) == [1]
    with pytest.raises(JobIdReusedError):
        table.ingest(path, delimiter=",", job="one")
    with pytest.raises(InvalidError, match="not a delimiter"):
        table.ingest(path, delimiter=";;")


@pytest.mark.parametrize("body", [b"not gzip", gzip.compress(b"id\n" + b"1\n" * 99_999)[:-30]])
def test_a_damaged_archive_is_told(table: Table, tmp_path: Path, body: bytes) -> None:
    for name in ("rows.csv.gz", "rows.jsonl.gz"):
        (tmp_path / name).write_bytes(body)
        with pytest.raises(UnreadableInputError, match=r"rows\."):
            table.ingest(tmp_path / name)
    assert ids(table) == []


@pytest.mark.parametrize("text", ['[{"id": 1}, {"id": ', "[1, 2]", '[{"id": "x"}]', '[{"no": 1}]'])
def test_an_array_that_holds_no_rows_is_refused(table: Table, tmp_path: Path, text: str) -> None:
    (tmp_path / "rows.json").write_text(text, "utf-8")
    with pytest.raises(InvalidError, match=r"rows\.json"):
        table.ingest(tmp_path / "rows.json")


def test_a_pattern_means_the_files_that_it_matches(table: Table, tmp_path: Path) -> None:
    for name in ("day-1.csv", "day-2.csv", "night-3.csv", "deep/day-4.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"id\n{name.partition('-')[2][0]}\n", "utf-8")
    table.ingest(tmp_path / "day-*.csv")
    assert ids(table) == [1, 2]
    table.ingest(str(tmp_path / "**" / "day-4.*"))
    assert ids(table) == [1, 2, 4]
    with pytest.raises(InvalidError, match="no such file or directory"):
        table.ingest(tmp_path / "week-*.csv")


def test_a_stray_file_is_named_and_may_be_left_out(table: Table, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "README.txt").write_text("hello", "utf-8")
    (folder / "bad.parquet").write_bytes(b"PAR1 no PAR1")
    (folder / "good.csv").write_text("id\n7\n", "utf-8")
    with pytest.raises(InvalidError, match=r"README\.txt"):
        table.ingest(folder)
    done = table.ingest(folder, skip_unreadable=True)
    assert sorted(Path(path).name for path in done.skipped) == ["README.txt", "bad.parquet"]
    assert ids(table) == [7]
    with pytest.raises(InvalidError, match=r"README\.txt"):  # it was named, not found
        table.ingest(folder / "README.txt", skip_unreadable=True)
    (folder / "wrong.csv").write_text("id,m\n8,9\n", "utf-8")
    with pytest.raises(InvalidError, match="unknown column"):  # readable, and not as it should be
        table.ingest(folder, skip_unreadable=True)


def test_a_list_of_dicts_is_rows(table: Table) -> None:
    table.ingest([{"id": 2, "n": 1, "at": AT}, {"id": 1}])
    assert table.to_arrow().to_pylist() == [
        {"id": 1, "n": None, "at": None},
        {"id": 2, "n": 1.0, "at": AT},
    ]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([{"id": 1}, {"id": "x"}], "field=id row=1 got=str"),
        ([{"id": 1, "n": "many"}], "field=n row=0 got=str"),
        ([{"id": 1, "m": 1}], "unknown column"),
        ([{"id": 1}, {"n": 1}], "a required field holds nulls"),
        ([{"id": 1, "at": AT.replace(tzinfo=None)}], "say which zone"),
        ([{1: 1}], "a name of a column is text"),
    ],
)
def test_a_dict_that_does_not_fit_is_told(
    table: Table, rows: list[dict[str, Any]], says: str
) -> None:
    with pytest.raises(InvalidError) as caught:
        table.ingest(rows)
    assert says in str(caught.value)


def test_a_plan_of_polars_is_collected(table: Table) -> None:
    table.ingest(pl.LazyFrame({"id": [3, 1]}).filter(pl.col("id") > 1))
    assert ids(table) == [3]


def test_an_open_file_is_its_bytes(table: Table) -> None:
    with pytest.raises(InvalidError, match="an open file has no name") as caught:
        table.ingest(io.BytesIO(b"id\n1\n"))
    assert caught.value.hint == "say format=parquet or format=csv or format=jsonl"
    assert table.ingest(io.BytesIO(b"id\n1\n"), format="csv", job="one").rows == 1
    assert table.ingest(io.BytesIO(b"id\n1\n"), format="csv", job="one").repeated
    with pytest.raises(JobIdReusedError):
        table.ingest(io.BytesIO(b"id\n2\n"), format="csv", job="one")
    packed = io.BytesIO()
    pq.write_table(pa.table({"id": [5]}), packed)
    packed.seek(0)
    table.ingest(packed, format="parquet")
    assert ids(table) == [1, 5]
    with pytest.raises(InvalidError, match="an open file gives text"):
        table.ingest(io.StringIO("id\n1\n"), format="csv")


def test_the_shell_reads_stdin_and_speaks_its_own_language(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.ok("table", "create", "t", "--row-key", "id:int64")
    environment = {"LAKEBED_LAKE": str(shell.lake)}

    def piped(*args: str) -> Any:  # noqa: ANN401 - whatever JSON holds
        words = ["ingest", "t", "-", "--json", *args]
        done = CliRunner().invoke(program, words, input=b"id;n\n4;1\n", env=environment)
        return json.loads(done.stdout or done.stderr)

    assert piped()["error"]["hint"] == "say --format parquet or --format csv or --format jsonl"
    told = piped("--format", "csv", "--delimiter", ";")["error"]
    assert told["hint"].endswith("or add --extra-columns drop")
    assert piped("--format", "csv", "--delimiter", ";", "--extra-columns", "drop")["rows"] == 1
    code, error = shell.refused("ingest", "t", "-", "more.csv")
    assert (code, error["message"]) == (2, "stdin cannot be combined with files")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "note.txt").write_text("x", "utf-8")
    (tmp_path / "in" / "a.csv").write_text("id\n6\n", "utf-8")
    skipped = shell.run("ingest", "t", str(tmp_path / "in"), "--skip-unreadable")
    assert skipped.exit_code == 0
    assert "note.txt: the name does not show the file's format" in skipped.stderr


class Frame:
    """What pandas does with columns that Arrow does not hold."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise self._error


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (
            pa.ArrowTypeError(
                "Expected bytes, got a 'int' object",
                "Conversion failed for column obj with type object",
            ),
            "field=obj type=object problem=Expected bytes, got a 'int' object): give it one type",
        ),
        (
            pa.ArrowNotImplementedError(
                "Unsupported numpy type 15", "Conversion failed for column td with type complex128"
            ),
            "no type holds complex128: give the column another, or leave it out",
        ),
        (
            ValueError("Duplicate column names found: ['id', 'id']"),
            "problem=Duplicate column names found: ['id', 'id']): give each column one name",
        ),
    ],
)
def test_a_messy_column_of_pandas_is_named(table: Table, error: Exception, says: str) -> None:
    with pytest.raises(InvalidError) as caught:
        table.ingest(Frame(error))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"id": pa.array([1, None], pa.float64())}, "in pandas: df[NAME].astype('Int64')"),
        ({"id": pa.array([1], pa.duration("ms"))}, "put the unit, ms, into the field's name"),
        ({"id": [1], "__index_level_0__": ["a"]}, "give df.reset_index(drop=True)"),
    ],
)
def test_what_pandas_makes_of_columns_is_told_in_its_words(
    table: Table, columns: dict[str, Any], says: str
) -> None:
    with pytest.raises(InvalidError) as caught:
        table.ingest(pa.table(columns))
    assert says in str(caught.value)
