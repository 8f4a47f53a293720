"""`lakebed sql`: what a person types, and what comes back."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.cli.programs import Shell


@pytest.fixture
def trips(tmp_path: Path) -> Shell:
    """A table of three rows."""
    shell = Shell(tmp_path)
    shell.ok("table", "create", "trips", "--row-key", "id:string", "--value", "n:int64?")
    rows = {"id": ["b", "a", "c"], "n": pa.array([2, 1, None], pa.int64())}
    shell.ok("ingest", "trips", shell.write("rows.parquet", rows), "--job", "first")
    return shell


def test_rows_come_as_a_table_as_json_lines_and_as_csv(trips: Shell) -> None:
    text = "select id, n from trips where n is not null order by id desc"
    assert [line.split() for line in trips.ok("sql", text).splitlines()] == [
        ["id", "n"],
        ["--", "-"],
        ["b", "2"],
        ["a", "1"],
    ]
    lines = trips.ok("sql", text, "--json").splitlines()
    assert [json.loads(line) for line in lines] == [{"id": "b", "n": 2}, {"id": "a", "n": 1}]
    assert trips.ok("sql", text, "--format", "csv").splitlines() == ['"id","n"', '"b",2', '"a",1']


def test_parameters_come_by_position_or_by_name(trips: Shell) -> None:
    def found(*args: str) -> list[object]:
        return [json.loads(line) for line in trips.ok("sql", *args, "--json").splitlines()]

    by_position = "select id from trips where id > ? and n = ?"
    assert found(by_position, "--param", "a", "--param", "2") == [{"id": "b"}]
    by_name = "select id from trips where id = $id"
    assert found(by_name, "--param", "id=c") == [{"id": "c"}]
    assert trips.refused("sql", by_name, "--param", "c")[1]["code"] == "invalid"
    doubled = ("--param", "id=c", "--param", "id=b")
    assert trips.refused("sql", by_name, *doubled)[1]["code"] == "invalid"
    assert trips.refused("sql", by_position, "--param", "a")[1]["code"] == "invalid"


def test_rows_go_to_a_file(trips: Shell, tmp_path: Path) -> None:
    output = tmp_path / "out.parquet"
    said = trips.ok("sql", "select count(*) n from trips", "--output", str(output))
    assert "1 row in" in said
    assert pq.read_table(output).to_pylist() == [{"n": 3}]
    assert trips.refused("sql", "select 1", "--format", "parquet")[1]["code"] == "invalid"


def test_an_explanation_shows_the_plan_and_what_was_read(trips: Shell) -> None:
    said = trips.ok("sql", "select count(*) from trips where id = 'b'", "--explain")
    assert "scan of trips" in said
    assert "PYTHON_ARROW_SCAN" in said
    value = json.loads(trips.ok("sql", "select 1 from trips", "--explain", "--json"))
    assert [scan["table"] for scan in value["scans"]] == ["trips"]


def test_what_is_no_question_is_refused_with_a_hint(trips: Shell) -> None:
    for text in ("drop table trips", "select 1; select 2", "from tripz", "from read_csv('x')"):
        _, error = trips.refused("sql", text)
        assert error["hint"], text


def test_older_versions_are_read_of_all_tables_or_of_one(trips: Shell) -> None:
    def counts(*args: str) -> list[object]:
        return list(json.loads(trips.ok("sql", *args, "--json")).values())

    number = json.loads(trips.ok("table", "tag", "trips", "first", "--json"))["number"]
    more = {"id": ["x", "y"], "n": pa.array([8, 9], pa.int64())}
    trips.ok("ingest", "trips", trips.write("more.parquet", more), "--job", "second")
    trips.ok("table", "create", "cities", "--row-key", "id:string")
    one = "select count(*) from trips"
    both = "select (select count(*) from trips), (select count(*) from cities)"
    assert counts(one) == [5]
    assert counts(one, "--as-of", "first") == counts(one, "--as-of", str(number)) == [3]
    assert counts(both, "--as-of", "trips=first") == [3, 0]
    assert counts(both, "--as-of", "trips=first", "--as-of", "cities=1") == [3, 0]
    said = trips.ok("sql", one, "--as-of", "first", "--explain", "--json")
    assert json.loads(said)["scans"][0]["read"]["number"] == number
    refused = [
        (one, "--as-of", "last"),
        (one, "--as-of", "999"),
        (one, "--as-of", ""),
        (one, "--as-of", "trip=first"),
        (one, "--as-of", "trips=first", "--as-of", "trips=first"),
        (one, "--as-of", "trips=first", "--as-of", "first"),
        (one, "--as-of", "first", "--as-of", "first"),
        (both, "--as-of", str(number)),
    ]
    for given in refused:
        _, error = trips.refused("sql", *given)
        assert error["code"] == "invalid", given
        assert error["hint"], given
