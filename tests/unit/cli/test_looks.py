"""A look at a table in the shell: how many rows, the first, some by lot, its files."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.cli.programs import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A table of two leaves that share a file."""
    shell = Shell(tmp_path)
    keys = ("--row-key", "id:string", "--value", "n:int64?", "--split-point", "b")
    shell.ok("table", "create", "trips", *keys)
    rows = {"id": ["b", "a", "c"], "n": pa.array([2, 1, None], pa.int64())}
    shell.ok("ingest", "trips", shell.write("rows.parquet", rows))
    return shell


def test_rows_are_counted_by_all_that_chooses_them(shell: Shell) -> None:
    assert shell.ok("count", "trips") == "3\n"
    assert shell.ok("count", "trips", "--key", "a", "--key", "c") == "2\n"
    assert shell.json("count", "trips", "--range", "id=b..") == {"rows": 2}
    assert shell.json("count", "trips", "--where", "n is not null", "--range", "id=b..") == {
        "rows": 1
    }
    assert shell.refused("count", "trips", "--where", "m = 1")[1]["code"] == "invalid"


def test_the_first_rows_and_some_by_lot(shell: Shell) -> None:
    def ids(*args: str) -> list[str]:
        return [json.loads(line)["id"] for line in shell.ok(*args, "--json").splitlines()]

    assert ids("head", "trips", "--rows", "2") == ["a", "b"]
    assert shell.ok("head", "trips").splitlines()[-1].split() == ["c", "null"]
    assert set(ids("sample", "trips")) == {"a", "b", "c"}
    one = ids("sample", "trips", "--rows", "1", "--seed", "3")
    assert len(one) == 1
    assert one == ids("sample", "trips", "--rows", "1", "--seed", "3")
    for args in (("--rows", "-1"), ("--seed", "-1")):
        assert shell.refused("sample", "trips", *args)[1]["code"] == "invalid"
    assert shell.refused("head", "trips", "--rows", "-1")[1]["code"] == "invalid"


def test_files_are_listed_for_others(shell: Shell) -> None:
    lines = [line.split() for line in shell.ok("files", "trips").splitlines()]
    assert lines[0] == ["PATH", "MIN", "MAX", "ROWS", "BYTES", "WHOLE"]
    assert [line[1:4] + line[5:] for line in lines[1:]] == [
        ["-", "b", "1", "no"],
        ["b", "-", "2", "no"],
    ]
    found = shell.json("files", "trips")
    assert [(one["min"], one["max"], one["rows"]) for one in found] == [
        (None, ["b"], 1),
        (["b"], None, 2),
    ]
    assert pq.read_metadata(found[0]["path"]).num_rows == 3
    shell.ok("table", "create", "empty", "--row-key", "id:binary")
    assert shell.ok("files", "empty") == "no files\n"
    assert shell.refused("files", "tirps")[1]["code"] == "table-missing"
