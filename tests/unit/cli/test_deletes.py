"""What a person types to delete rows."""

from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import InvalidError
from tests.unit.cli.programs import Shell


@pytest.fixture
def trips(tmp_path: Path) -> Shell:
    """A table of four rows in two leaves."""
    shell = Shell(tmp_path)
    options = ("--row-key", "id:string", "--value", "n:int64?", "--split-point", "b")
    shell.ok("table", "create", "trips", *options)
    rows = {"id": ["b", "a", "c", "d"], "n": pa.array([2, 1, None, 4], pa.int64())}
    shell.ok("ingest", "trips", shell.write("rows.parquet", rows))
    return shell


def ids(shell: Shell) -> list[str]:
    lines = shell.ok("query", "trips", "--columns", "id", "--format", "csv").splitlines()
    return [line.strip('"') for line in lines[1:]]


@pytest.mark.parametrize(
    ("args", "left", "rows"),
    [
        (("--key", "b"), ["a", "c", "d"], 1),
        (("--key", "b", "--key", "c"), ["a", "d"], 2),
        (("--range", "id=b..d"), ["a", "d"], 2),
        (("--range", "id=..c"), ["c", "d"], 2),
        (("--where", "n > 1"), ["a", "c"], 2),
        (("--range", "id=b..", "--where", "n is null"), ["a", "b", "d"], 1),
        (("--all",), [], 4),
        (("--key", "nowhere"), ["a", "b", "c", "d"], 0),
    ],
)
def test_rows_that_a_query_would_give_go(
    trips: Shell, args: tuple[str, ...], left: list[str], rows: int
) -> None:
    would = trips.json("delete", "trips", *args, "--dry-run")
    assert would == {"would_delete": "trips", "rows": rows}
    assert len(ids(trips)) == 4
    done = trips.json("delete", "trips", *args, "--yes")
    assert (done["table"], done["rows"], done["exact"]) == ("trips", rows, True)
    assert ids(trips) == left
    said = trips.ok("delete", "trips", *args, "--yes")
    assert said == "deleted 0 rows of table trips\n"


def test_it_says_what_went_and_that_it_was_done_before(trips: Shell) -> None:
    said = trips.ok("delete", "trips", "--key", "b", "--job", "erase", "--yes")
    assert said == "deleted 1 row of table trips\n"
    again = trips.ok("delete", "trips", "--key", "b", "--job", "erase", "--yes")
    assert again.startswith("job erase was done before, in log entry ")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((), "a delete without a condition"),
        (("--all", "--key", "b"), "--all goes with no condition"),
        (("--range", "nothing=1..2"), "nothing"),
        (("--range", "n=1..2"), "row key"),
        (("--where", "n >"), ""),
        (("--where", "nothing > 1"), "nothing"),
        (("--key", "b", "--job", ""), "not a job id"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_goes(
    trips: Shell, args: tuple[str, ...], says: str
) -> None:
    code, error = trips.refused("delete", "trips", *args, "--yes")
    assert code == 2
    assert says in error["message"] + str(error)
    assert len(ids(trips)) == 4


def test_rows_go_only_when_that_is_meant(trips: Shell) -> None:
    code, error = trips.refused("delete", "trips", "--key", "b")
    assert (code, error["hint"]) == (2, "look with --dry-run, then add --yes")
    assert len(ids(trips)) == 4


def test_rows_are_upserted_where_the_latest_counts(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    options = ("--row-key", "id:string", "--value", "n:int64")
    (tmp_path / "latest.json").write_text('{"latest": {"sequence": "n"}}')
    processing = ("--processing", str(tmp_path / "latest.json"))
    shell.ok("table", "create", "orders", *options, *processing)
    shell.ok("upsert", "orders", shell.write("one.parquet", {"id": ["a", "b"], "n": [1, 1]}))
    shell.ok("upsert", "orders", shell.write("two.parquet", {"id": ["b", "c"], "n": [2, 2]}))
    lines = shell.ok("query", "orders", "--json").splitlines()
    assert lines == ['{"id":"a","n":1}', '{"id":"b","n":2}', '{"id":"c","n":2}']


def test_a_table_that_keeps_all_rows_refuses_an_upsert(trips: Shell) -> None:
    path = trips.write("more.parquet", {"id": ["b"], "n": pa.array([7], pa.int64())})
    code, error = trips.refused("upsert", "trips", path)
    assert (code, error["message"]) == (2, "the table keeps all rows of a key")
    assert len(ids(trips)) == 4


def test_a_table_with_rows_takes_an_upsert_once_its_processing_is_changed_as_the_hint_says(
    tmp_path: Path,
) -> None:
    schema = lakebed.schema_of(row_keys={"id": "string"}, values={"n": "int64"})
    latest = lakebed.Processing(latest=lakebed.Latest("n"))
    with lakebed.connect(tmp_path / "lake") as lake:
        table = lake.create_table("orders", schema)
        table.ingest([{"id": "a", "n": 1}, {"id": "b", "n": 2}])
        with pytest.raises(InvalidError, match="keeps all rows of a key") as raised:
            table.upsert([{"id": "b", "n": 7}])
        way_out = "call change_processing(lakebed.Processing(latest=lakebed.Latest(FIELD))) on it"
        assert way_out in str(raised.value.hint)
        table.change_processing(latest)
        table.upsert([{"id": "b", "n": 7}])
        assert table.to_arrow().to_pylist() == [{"id": "a", "n": 1}, {"id": "b", "n": 7}]
