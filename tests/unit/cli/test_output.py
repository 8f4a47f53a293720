"""Where rows of a query go, and as what: the name of the output tells."""

import csv
import gzip
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.unit.cli.programs import Shell


@pytest.fixture
def trips(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.ok("table", "create", "trips", "--row-key", "id:string", "--value", "n:int64")
    shell.ok("ingest", "trips", shell.write("rows.parquet", {"id": ["b", "a"], "n": [2, 1]}))
    return shell


def written(shell: Shell, name: str, *args: str) -> Path:
    path = shell.folder / name
    assert "2 rows" in shell.ok("query", "trips", "--output", str(path), *args)
    return path


def test_the_name_of_the_output_tells_the_format(trips: Shell) -> None:
    assert pq.read_table(written(trips, "out.parquet")).to_pydict() == {
        "id": ["a", "b"],
        "n": [1, 2],
    }
    with written(trips, "out.CSV").open(encoding="utf-8") as file:
        assert list(csv.reader(file)) == [["id", "n"], ["a", "1"], ["b", "2"]]
    for name in ("out.jsonl", "out.ndjson"):
        lines = written(trips, name).read_text("utf-8").splitlines()
        assert [json.loads(line)["id"] for line in lines] == ["a", "b"]


def test_a_name_that_ends_with_gz_is_compressed(trips: Shell) -> None:
    for name, first in (("out.csv.gz", b'"id","n"\n'), ("out.jsonl.gz", b'{"id":"a","n":1}\n')):
        with gzip.open(written(trips, name)) as file:
            assert file.readline() == first


def test_what_is_said_goes_before_the_name(trips: Shell) -> None:
    assert written(trips, "out.txt", "--format", "table").read_text("utf-8").startswith("id  n\n")
    assert written(trips, "a.parquet", "--format", "csv").read_bytes().startswith(b'"id"')


def test_with_json_the_name_tells_all_the_same(trips: Shell) -> None:
    path = trips.folder / "out.parquet"
    assert trips.json("query", "trips", "--output", str(path))["rows"] == 2
    assert pq.read_table(path).num_rows == 2


@pytest.mark.parametrize("name", ["out.txt", "out", "out.xlsx", "out.parquet.gz"])
def test_a_name_that_tells_nothing_is_refused_before_a_row_is_read(trips: Shell, name: str) -> None:
    code, error = trips.refused("query", "trips", "--output", str(trips.folder / name))
    assert (code, error["message"]) == (2, "the name does not show the output's format")
    assert error["hint"].startswith("name it .parquet, .csv, .csv.gz, .jsonl or .jsonl.gz, or say")
    assert not (trips.folder / name).exists()


def test_rows_are_counted(trips: Shell) -> None:
    assert trips.ok("query", "trips", "--count") == "2\n"
    assert trips.json("query", "trips", "--count", "--where", "n > 1") == {"rows": 1}
    assert trips.ok("query", "trips", "--count", "--key", "zz") == "0\n"
    for more in (("--limit", "1"), ("--format", "csv"), ("--columns", "n"), ("--explain",)):
        code, error = trips.refused("query", "trips", "--count", *more)
        assert (code, error["message"]) == (2, "--count cannot be combined with output options")
