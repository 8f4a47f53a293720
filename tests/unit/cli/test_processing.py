"""What a person types to have a table work on its rows."""

import json
from pathlib import Path

import pytest

from tests.unit.cli.programs import Shell

OPTIONS = ("--row-key", "id:string", "--value", "n:int64", "--value", "at:timestamp[us, UTC]")
SUMS = {"filter": "id != 'x'", "aggregate": {"n": "sum", "at": "max"}}


def written(shell: Shell, text: str) -> str:
    path = shell.folder / "processing.json"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_a_table_adds_up_and_describe_says_so(shell: Shell) -> None:
    given = written(shell, json.dumps(SUMS))
    shell.ok("table", "create", "sums", *OPTIONS, "--processing", given)
    rows = shell.folder / "rows.csv"
    at = "2013-01-01T00:00:00Z"
    rows.write_text(f"id,n,at\na,1,{at}\nx,5,{at}\na,2,{at}\n")
    assert shell.json("ingest", "sums", str(rows))["rows"] == 1
    shell.ok("ingest", "sums", str(rows))
    assert json.loads(shell.ok("query", "sums", "--json", "--columns", "id,n")) == {
        "id": "a",
        "n": 6,
    }
    shell.ok("compact", "sums")
    assert json.loads(shell.ok("query", "sums", "--json", "--columns", "n")) == {"n": 6}
    described = shell.json("table", "describe", "sums")["processing"]
    assert described["aggregate"] == SUMS["aggregate"]
    assert described["filter"] == {"test": "compare", "field": "id", "is": "!=", "value": "x"}
    assert 'aggregate {"n": "sum", "at": "max"}' in shell.ok("table", "describe", "sums")


def test_ingest_says_what_was_left_out_and_warns_when_everything_was(shell: Shell) -> None:
    given = written(shell, json.dumps(SUMS))
    shell.ok("table", "create", "sums", *OPTIONS, "--processing", given)
    at = "2013-01-01T00:00:00Z"
    some, none = shell.folder / "some.csv", shell.folder / "none.csv"
    some.write_text(f"id,n,at\na,1,{at}\nx,5,{at}\na,2,{at}\n")
    none.write_text(f"id,n,at\nx,1,{at}\nx,5,{at}\n")
    taken = shell.run("ingest", "sums", str(some))
    assert "1 row in 1 file (3 read, 1 left out by filter or age-off), job " in taken.stdout
    assert "warning" not in taken.stderr
    left_out = shell.run("ingest", "sums", str(none), "--job", "none")
    assert "0 rows in 0 files (2 read, 2 left out by filter or age-off)" in left_out.stdout
    assert "warning: filter or age-off of sums left out all 2 rows\n" in left_out.stderr
    told = shell.json("ingest", "sums", str(none))
    assert (told["read"], told["filtered"], told["rows"]) == (2, 2, 0)
    (report,) = shell.json("jobs", "sums", "--job", "none")[-1:]
    assert (report["event"], report["filtered"]) == ("committed", 2)


def test_a_table_without_processing_says_nothing_of_it(shell: Shell) -> None:
    shell.ok("table", "create", "plain", *OPTIONS)
    assert shell.json("table", "describe", "plain")["processing"] is None
    assert "processing" not in shell.ok("table", "describe", "plain")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "for instance"),
        ("[" * 100_000, "for instance"),
        ('{"aggregate": {"n": "avg"}}', "use one of"),
        ('{"agregate": {}}', "did you mean 'aggregate'"),
        ('{"latest": {"sequence": "n"}, "aggregate": {"n": "sum", "at": "max"}}', "choose one"),
        ('{"iterator": {"name": "nobody"}}', "there is no iterator yet"),
        ("{}", "leave it out"),
    ],
)
def test_what_cannot_be_is_refused_and_no_table_is_made(shell: Shell, text: str, says: str) -> None:
    shell.ok("table", "create", "other", *OPTIONS)
    given = written(shell, text)
    code, error = shell.refused("table", "create", "t", *OPTIONS, "--processing", given)
    assert code == 2
    assert says in error["hint"]
    assert shell.json("table", "list") == ["other"]


def test_fields_that_processing_names_stay(shell: Shell) -> None:
    given = written(shell, json.dumps(SUMS))
    shell.ok("table", "create", "sums", *OPTIONS, "--processing", given)
    code, error = shell.refused("table", "alter", "sums", "--rename", "n=m")
    assert code == 2
    assert "cannot be renamed or dropped" in error["hint"]
