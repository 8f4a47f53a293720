"""What a person types to export a table and to restore it, and what is said and done."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pytest

import lakebed
from lakebed.exports.target import MANIFEST
from tests.unit.cli.programs import Shell


@pytest.fixture
def trips(tmp_path: Path) -> Shell:
    """A table of three rows in two leaves, and `out`, where nothing lies yet."""
    shell = Shell(tmp_path)
    options = ("--row-key", "id:string", "--value", "n:int64?", "--split-point", "b")
    shell.ok("table", "create", "trips", *options)
    columns = {"id": ["b", "a", "c"], "n": pa.array([2, 1, None], pa.int64())}
    shell.ok("ingest", "trips", shell.write("rows.parquet", columns))
    return shell


def out(shell: Shell) -> str:
    return str(shell.folder / "out")


def exported(shell: Shell) -> pa.Table:
    return pyarrow.dataset.dataset(out(shell), format="parquet").to_table()


def entries(shell: Shell, table: str = "trips") -> int:
    with lakebed.connect(shell.lake) as lake:
        return lake[table].log(entries_max=1).entries[-1].number


def test_an_export_says_how_much_lies_where(trips: Shell) -> None:
    pinned = entries(trips) + 1
    said = trips.ok("export", "trips", out(trips))
    assert entries(trips) == pinned + 1  # the pin was put, and dropped
    (file,) = Path(out(trips)).glob("*.parquet")
    size = f"{file.stat().st_size:,} bytes"
    first = f"3 rows in 1 file ({size}), up to log entry {pinned}"
    assert said == f"{first}\n{out(trips)}/{MANIFEST}\n"
    assert exported(trips).to_pydict() == {"id": ["a", "b", "c"], "n": [1, 2, None]}
    again = trips.ok("export", "trips", out(trips))
    assert again == f"{first}: it was finished before\n{out(trips)}/{MANIFEST}\n"


def test_an_export_is_told_to_programs(trips: Shell) -> None:
    pinned = entries(trips) + 1
    told = trips.json("export", "trips", out(trips))
    size = told.pop("bytes")
    assert size == sum(file.stat().st_size for file in Path(out(trips)).glob("*.parquet"))
    manifest = f"{out(trips)}/{MANIFEST}"
    counts = {"number": pinned, "rows": 3, "files": 1}
    assert told == {"table": "trips", "manifest": manifest, **counts, "repeated": False}


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (("--where", "n >= 2"), {"id": ["b"], "n": [2]}),
        (("--range", "id=b..", "--columns", "n,id"), {"n": [2, None], "id": ["b", "c"]}),
        (("--key", "a", "--key", "c", "--columns", "id"), {"id": ["a", "c"]}),
        (("--key", "x", "--workers", "2"), {"id": [], "n": []}),
    ],
)
def test_options_say_which_rows_and_columns(
    trips: Shell, options: tuple[str, ...], wanted: dict[str, Any]
) -> None:
    told = trips.json("export", "trips", out(trips), *options)
    assert exported(trips).to_pydict() == wanted
    assert told["rows"] == len(wanted["id"])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--where", "n >"), "expected a number"),
        (("--where", "nope > 3"), "nope"),
        (("--columns", "id,nope"), "nope"),
        (("--range", "n=1..2"), "id"),
        (("--workers", "0"), "give 1 or more"),
    ],
)
def test_what_cannot_be_exported_is_refused_before_anything_is_written(
    trips: Shell, options: tuple[str, ...], says: str
) -> None:
    before = entries(trips)
    code, error = trips.refused("export", "trips", out(trips), *options)
    assert code == 2
    assert says in f"{error['message']} {error['facts']} {error['hint']}"
    assert not Path(out(trips)).exists()
    assert entries(trips) == before


def test_another_export_needs_another_target_or_a_restart(trips: Shell) -> None:
    trips.ok("export", "trips", out(trips))
    other = ("export", "trips", out(trips), "--columns", "id")
    code, error = trips.refused(*other)
    assert code == 2
    assert "--restart" in error["hint"]
    assert exported(trips).column_names == ["id", "n"]
    trips.ok(*other, "--restart")
    assert exported(trips).to_pydict() == {"id": ["a", "b", "c"]}


def test_an_older_version_is_exported_or_refused(trips: Shell) -> None:
    number = entries(trips)
    trips.ok("table", "tag", "trips", "then", "--as-of", str(number))
    trips.ok("ingest", "trips", str(trips.folder / "rows.parquet"), "--job", "again")
    for as_of in ("0", str(entries(trips) + 9), "thn", "2999-01-01T00:00Z"):
        code, error = trips.refused("export", "trips", out(trips), "--as-of", as_of)
        assert (code, Path(out(trips)).exists()) == (2, False), error
    told = trips.json(
        "export", "trips", out(trips), "--as-of", "then", "--where", "n between 1 and 2"
    )
    assert (told["number"], told["rows"]) == (number, 2)
    assert exported(trips).to_pydict() == {"id": ["a", "b"], "n": [1, 2]}


def test_a_table_is_restored_once_into_a_lake_that_is_made(trips: Shell) -> None:
    trips.ok("export", "trips", out(trips))
    other = Shell(trips.folder / "other")
    said = other.ok("restore", "back", out(trips))
    assert said == f"3 rows in 1 file, log entry {entries(other, 'back')}\n"
    assert other.ok("query", "back", "--json") == trips.ok("query", "trips", "--json")
    again = other.ok("restore", "back", f"{out(trips)}/{MANIFEST}", "--verify")
    number = entries(other, "back")
    done = f"back was restored before, in log entry {number}: nothing to do"
    assert again == f"{done}; compared 3 rows: equal\n"


def test_a_restore_is_told_to_programs(trips: Shell) -> None:
    trips.ok("export", "trips", out(trips))
    told = trips.json("restore", "back", out(trips), "--verify")
    of_table = {"table": "back", "number": entries(trips, "back")}
    assert told == {**of_table, "rows": 3, "files": 1, "repeated": False, "verified": 3}
    told = trips.json("restore", "back", out(trips))
    assert told == {**of_table, "rows": 0, "files": 0, "repeated": True, "verified": None}


def test_a_restore_that_cannot_be_is_refused(trips: Shell) -> None:
    code, error = trips.refused("restore", "back", out(trips))
    assert (code, error["message"]) == (2, "no export lies there")
    trips.ok("export", "trips", out(trips))
    code, error = trips.refused("restore", "trips", out(trips))
    assert (code, error["message"]) == (2, "a table of this name has other rows")
    code, error = trips.refused("restore", out(trips), "--verify")
    assert (code, error["message"]) == (2, "--verify is for one table")
    assert trips.ok("query", "trips", "--json").count("\n") == 3


def test_rows_that_differ_end_a_restore_with_an_error(trips: Shell) -> None:
    trips.ok("export", "trips", out(trips))
    trips.ok("restore", "back", out(trips))
    trips.ok("ingest", "back", str(trips.folder / "rows.parquet"))
    code, error = trips.refused("restore", "back", out(trips), "--verify")
    assert (code, error["facts"]["rows"], error["facts"]["exported"]) == (7, "6", "3")
