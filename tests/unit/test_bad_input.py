"""What can never work is refused: by name, with a hint, and the table is as before.

All through the public face, on a lake in a directory.
"""

import datetime
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import lakebed
from lakebed.errors import (
    InvalidError,
    JobIdReusedError,
    TableExistsError,
    TableMissingError,
    UnreadableInputError,
)
from lakebed.feed_errors import InvalidKeyError

SCHEMA = lakebed.schema_of(
    row_keys={"id": "string", "number": "int64"},
    values={"count": "int32", "note": "string?", "day": "date32?"},
)
GOOD = {
    "id": ["a"],
    "number": pa.array([1], pa.int64()),
    "count": pa.array([1], pa.int32()),
}


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[lakebed.Lake]:
    with lakebed.connect(tmp_path / "lake") as opened:
        yield opened


@pytest.fixture
def table(lake: lakebed.Lake) -> lakebed.Table:
    """A table with one row, taken in by the job `first`."""
    made = lake.create_table("trips", SCHEMA)
    made.ingest(pa.table(GOOD), job="first")
    return made


def with_column(name: str, values: Any) -> pa.Table:  # noqa: ANN401 - any column
    return pa.table({**GOOD, name: values})


def without(name: str) -> pa.Table:
    return pa.table({key: column for key, column in GOOD.items() if key != name})


def refused(
    lake: lakebed.Lake,
    act: Callable[[], object],
    kind: type[InvalidError] = InvalidError,
    *,
    names: str,
) -> InvalidError:
    """The error of `act`, which names `names`, has a hint, and changed nothing."""

    def seen() -> object:
        (status,) = lake.status("trips")
        rows = lake.table("trips").query().read_all()
        return status.number, status.files, status.leaves, status.settings, rows, lake.tables()

    before = seen()
    with pytest.raises(kind) as raised:
        act()
    error = raised.value
    assert type(error) is kind
    assert names in " ".join([error.message, *error.facts, *map(str, error.facts.values())])
    assert error.hint
    assert error.exit_code == 2
    assert seen() == before
    return error


LONG = "x" * 1_025
LONG_KEY = with_column("id", [LONG])
ROWS: list[tuple[str, pa.Table, str]] = [
    ("an unknown column", with_column("cuont", [1]), "cuont"),
    ("a missing column", without("count"), "count"),
    ("a missing key", without("id"), "id"),
    ("text for a number", with_column("count", ["1"]), "count"),
    ("a number for text", with_column("note", [1]), "note"),
    ("a wider integer", with_column("count", pa.array([1], pa.int64())), "count"),
    ("a float for an integer", with_column("number", [1.0]), "number"),
    ("a time for a day", with_column("day", pa.array([0], pa.timestamp("us"))), "day"),
    ("a list for text", with_column("note", [["a"]]), "note"),
    ("a null key", with_column("id", pa.array([None], pa.string())), "id"),
    ("a null in a required value", with_column("count", pa.array([None], pa.int32())), "count"),
    ("a key that is too long", LONG_KEY, "id"),
    ("two columns of one name", pa.table([[1], [1]], names=["count", "count"]), "count"),
    (
        "text that is not UTF-8",
        with_column("note", pa.array([b"\xff"], pa.binary()).view(pa.string())),
        "note",
    ),
]


@pytest.mark.parametrize(("rows", "names"), [case[1:] for case in ROWS], ids=[c[0] for c in ROWS])
def test_rows_that_do_not_fit_are_refused(
    lake: lakebed.Lake, table: lakebed.Table, rows: pa.Table, names: str
) -> None:
    refused(lake, lambda: table.ingest(rows), kind_of(rows), names=names)


def kind_of(rows: pa.Table) -> type[InvalidError]:
    """The kind of refusal: keys that cannot be have one of their own."""
    return InvalidKeyError if rows is LONG_KEY else InvalidError


@pytest.mark.parametrize(("rows", "names"), [case[1:] for case in ROWS], ids=[c[0] for c in ROWS])
def test_one_bad_file_keeps_the_good_ones_out_and_is_named(
    lake: lakebed.Lake, table: lakebed.Table, tmp_path: Path, rows: pa.Table, names: str
) -> None:
    good, bad = tmp_path / "a.parquet", tmp_path / "bad.parquet"
    pq.write_table(pa.table(GOOD), good)
    pq.write_table(rows, bad)
    error = refused(lake, lambda: table.ingest([good, bad]), kind_of(rows), names=names)
    assert error.facts["path"] == bad


def test_a_name_that_is_nearly_right_is_told(lake: lakebed.Lake, table: lakebed.Table) -> None:
    error = refused(lake, lambda: table.ingest(with_column("cuont", [1])), names="cuont")
    assert "'count'" in str(error.hint)


def a_file(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def parquet_bytes() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(GOOD), sink)
    return bytes(sink.getvalue())


FILES: list[tuple[str, bytes]] = [
    ("zero.parquet", b""),
    ("zero.csv", b""),
    ("cut.parquet", parquet_bytes()[:-20]),
    ("beheaded.parquet", parquet_bytes()[20:]),
    ("text.parquet", b"id,number,count\na,1,1\n"),
    ("not-utf8.csv", b"id,number,count\n\xff,1,1\n"),
    ("ragged.csv", b"id,number,count\na,1\n"),
    ("no-number.csv", b"id,number,count\na,one,1\n"),
    ("too-large.csv", b"id,number,count\na,1,3000000000\n"),
    ("binary.csv", parquet_bytes()),
    ("binary.jsonl", parquet_bytes()),
    ("cut.ndjson", b'{"id": "a", "number": 1, "count": 1}\n{"id": "a"'),
    ("too-large.jsonl", b'{"id": "a", "number": 1, "count": 3000000000}\n'),
]


@pytest.mark.parametrize(("name", "content"), FILES, ids=[name for name, _ in FILES])
def test_a_file_that_cannot_be_read_is_refused(
    lake: lakebed.Lake, table: lakebed.Table, tmp_path: Path, name: str, content: bytes
) -> None:
    path = a_file(tmp_path, name, content)
    refused(lake, lambda: table.ingest(path), UnreadableInputError, names=name)


def test_a_damaged_page_is_refused(
    lake: lakebed.Lake, table: lakebed.Table, tmp_path: Path
) -> None:
    rows = pa.table({**GOOD, "note": ["a note that is long enough to be found in the file"]})
    pq.write_table(rows, tmp_path / "a.parquet", compression="none", write_page_checksum=True)
    content = (tmp_path / "a.parquet").read_bytes().replace(b"long enough", b"wrong enoug", 1)
    path = a_file(tmp_path, "flipped.parquet", content)
    refused(lake, lambda: table.ingest(path), UnreadableInputError, names="flipped.parquet")


def test_a_path_with_nothing_to_ingest_is_refused(
    lake: lakebed.Lake, table: lakebed.Table, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    refused(lake, lambda: table.ingest(empty), names="empty")
    a_file(empty, "_SUCCESS", b"")
    refused(lake, lambda: table.ingest(empty), names="empty")
    refused(lake, lambda: table.ingest(tmp_path / "gone.parquet"), names="gone.parquet")
    refused(lake, lambda: table.ingest([]), names="nothing to ingest")
    refused(lake, lambda: table.ingest(a_file(tmp_path, "rows.txt", b"id\n")), names="rows.txt")
    refused(lake, lambda: table.ingest(17), names="int")
    csv = a_file(tmp_path, "rows.csv", b"id,number,count\na,1,1\n")
    refused(lake, lambda: table.ingest(csv, format="xlsx"), names="xlsx")


def test_a_job_id_is_not_used_again_for_another_request(
    lake: lakebed.Lake, table: lakebed.Table
) -> None:
    assert table.ingest(pa.table(GOOD), job="first").repeated
    other = with_column("count", pa.array([2], pa.int32()))
    refused(lake, lambda: table.ingest(other, job="first"), JobIdReusedError, names="first")


@pytest.mark.parametrize("job", ["", "a\nb", "x" * 201, "\ud800", 7])
def test_odd_job_ids_are_refused(
    lake: lakebed.Lake,
    table: lakebed.Table,
    job: Any,  # noqa: ANN401 - odd on purpose
) -> None:
    refused(lake, lambda: table.ingest(pa.table(GOOD), job=job), names="job")


QUERIES: list[tuple[str, dict[str, Any], str]] = [
    ("an unknown field", {"ranges": {"idd": ("a", "b")}}, "idd"),
    ("a field that is no row key", {"ranges": {"count": (1, 2)}}, "count"),
    ("an unknown column", {"columns": ["cuont"]}, "cuont"),
    ("a column twice", {"columns": ["count", "count"]}, "count"),
    ("no column", {"columns": []}, "column"),
    ("reversed ends", {"ranges": {"id": ("b", "a")}}, "id"),
    ("reversed numbers", {"ranges": {"number": (2, -3)}}, "number"),
    ("an end of the wrong type", {"ranges": {"number": ("1", "2")}}, "number"),
    ("a float for an integer", {"ranges": {"number": (1.0, 2.0)}}, "number"),
    ("true for an integer", {"keys": [("a", True)]}, "number"),
    ("a day for an integer", {"keys": [("a", datetime.date(2013, 1, 1))]}, "number"),
    ("an integer out of range", {"keys": [("a", 2**63)]}, "number"),
    ("a range that is none", {"ranges": {"id": "a"}}, "id"),
    ("a range of three", {"ranges": {"id": ("a", "b", "c")}}, "id"),
    ("ranges that are none", {"ranges": ["id"]}, "ranges"),
    ("a null key", {"keys": [("a", None)]}, "number"),
    ("a key with too many values", {"keys": [("a", 1, 2)]}, "3"),
    ("a key with no value", {"keys": [()]}, "0"),
    ("a key by an unknown name", {"keys": [{"idd": "a"}]}, "idd"),
    ("a text instead of keys", {"keys": "abc"}, "keys"),
    ("text that is not UTF-8", {"keys": ["\ud800"]}, "id"),
    ("a negative limit", {"limit": -1}, "limit"),
    ("a limit that is no number", {"limit": "3"}, "limit"),
    ("a test of an unknown field", {"where": lakebed.field("idd") == "a"}, "idd"),
    ("a test of the wrong type", {"where": lakebed.field("number") > "1"}, "number"),
    ("text that is no test", {"where": "number > "}, "number > "),
    ("text with a test of an unknown field", {"where": "idd like 'a%'"}, "idd"),
    ("text with a pattern for a number", {"where": "number like '1%'"}, "number"),
    ("a pattern that ends with its escape", {"where": "id like 'a!' escape '!'"}, "a!"),
    ("a test that is a number", {"where": 5}, "int"),
    ("an unknown column as text", {"columns": "idd"}, "idd"),
    ("an expression of an unknown field", {"where": pc.field("idd") == "a"}, "idd"),
]


@pytest.mark.parametrize(
    ("asked", "names"), [case[1:] for case in QUERIES], ids=[c[0] for c in QUERIES]
)
def test_a_query_that_cannot_be_meant_is_refused_before_it_reads(
    lake: lakebed.Lake, table: lakebed.Table, asked: dict[str, Any], names: str
) -> None:
    refused(lake, lambda: table.query(**asked), names=names)


NAMES = ["", "Trips", "1trips", "a b", "a/b", "../a", "a.b", "-a", "ä", "x" * 64, "a\n", "_a", None]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_odd_table_names_are_refused(
    lake: lakebed.Lake,
    table: lakebed.Table,
    name: Any,  # noqa: ANN401 - odd on purpose
) -> None:
    refused(lake, lambda: lake.create_table(name, SCHEMA), names=repr(name))
    for act in (lake.table, lake.drop_table, lambda n: lake.run([n]), lake.fsck):
        if name is not None:
            refused(lake, lambda act=act: act(name), names=repr(name))


def test_a_table_that_is_not_there_is_told_with_the_nearest_name(
    lake: lakebed.Lake, table: lakebed.Table
) -> None:
    for act in (lake.table, lake.drop_table, lake.status, lake.fsck, lambda n: lake.run([n])):
        error = refused(lake, lambda act=act: act("trisp"), TableMissingError, names="trisp")
        assert error.hint == "did you mean 'trips'?"


def test_a_name_that_is_taken_is_refused(lake: lakebed.Lake, table: lakebed.Table) -> None:
    other = lakebed.schema_of(row_keys={"id": "int64"})
    refused(lake, lambda: lake.create_table("trips", other), TableExistsError, names="trips")


@pytest.mark.parametrize(
    ("points", "names"),
    [
        (["b", "a"], "unsorted"),
        (["a", "b", "b"], "doubled"),
        ([1], "id"),
        ([None], "id"),
        ([("a", "1")], "number"),
        ([("a", 1, 2)], "id, number"),
        ([()], "id, number"),
        ([("b", 2), ("b", 1)], "unsorted"),
        ([b"a"], "id"),
        (["x" * 1_100], "id"),
        ("abc", "split points"),
        ([""], "below a split point"),
        ([("", -(2**63))], "below a split point"),
        (["a", ("a", -(2**63))], "between a split point and the one before"),
    ],
    ids=str,
)
def test_split_points_that_make_no_leaves_are_refused(
    lake: lakebed.Lake,
    table: lakebed.Table,
    points: Any,  # noqa: ANN401 - odd on purpose
    names: str,
) -> None:
    refused(lake, lambda: lake.create_table("new", SCHEMA, split_points=points), names=names)


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"leaf_row_max": 5}, "leaf_row_max"),
        ({"leaf_rows_max": 1}, "leaf_rows_max"),
        ({"leaf_rows_max": "many"}, "leaf_rows_max"),
        ({"leaf_rows_max": None}, "leaf_rows_max"),
        ({"compaction_strategy": "best"}, "compaction_strategy"),
        ({"job_files_max": 3}, "size_ratio"),
        ({"size_ratio": 12}, "job_files_max"),
        (
            {"leaf_row_max": 5, "job_files_max": 1, "size_ratio": "x"},
            "leaf_row_max, job_files_max, size_ratio",
        ),
        ({"leaf_rows_max": 2**70}, "leaf_rows_max"),
        ({3: 3}, "3"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_are_refused(
    lake: lakebed.Lake,
    table: lakebed.Table,
    settings: Any,  # noqa: ANN401 - odd on purpose
    names: str,
) -> None:
    refused(lake, lambda: lake.create_table("new", SCHEMA, settings=settings), names=names)


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"row_keys": {}}, "row key"),
        ({"row_keys": {"a": "float64"}}, "a"),
        ({"row_keys": {"a": "int64?"}}, "a"),
        ({"row_keys": {"a": "int64"}, "values": {"A": "int64"}}, "A"),
        ({"row_keys": {"a": "int64"}, "values": {"": "int64"}}, "''"),
        ({"row_keys": {"a": "int64"}, "values": {"_lakebed_x": "int64"}}, "_lakebed_x"),
        ({"row_keys": {"a": "int64"}, "values": {"b": "uint64"}}, "uint64"),
        ({"row_keys": {"a": "int64"}, "values": {"b": "decimal128(39,1)"}}, "decimal128(39,1)"),
        ({"row_keys": {"a": "int64"}, "values": {"b": {"map": ["float64", "int8"]}}}, "float64"),
        ({"row_keys": {"a": "int64"}, "values": {"b": 7}}, "7"),
        ({"row_keys": {7: "int64"}}, "7"),
    ],
    ids=str,
)
def test_schemas_that_cannot_be_are_refused(
    fields: Any,  # noqa: ANN401 - odd on purpose
    names: str,
) -> None:
    with pytest.raises(InvalidError) as raised:
        lakebed.schema_of(**fields)
    assert names in str(raised.value)
    assert raised.value.hint
