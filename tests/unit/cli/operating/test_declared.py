"""What a person types to keep tables as files declare them."""

from pathlib import Path

import pytest

from tests.unit.cli.programs import Shell

TRIPS = """
name = "trips"
split_points = ["g", "p"]
[row_keys]
id = "string"
[values]
fare = "float32?"
note = "string?"
[settings]
leaf_rows_max = 5_000_000
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def tables(shell: Shell) -> Path:
    """A folder with a file of one table, which is applied."""
    folder = shell.folder / "tables"
    folder.mkdir()
    (folder / "trips.toml").write_text(TRIPS)
    said = shell.ok("apply", str(folder)).splitlines()
    assert said == [
        "create table trips  (trips.toml)",
        "  fields id: string, fare: float32?, note: string?",
        "  leaf_rows_max = 5000000",
        "  3 leaves",
    ]
    return folder


def test_applying_again_has_nothing_to_do(shell: Shell, tables: Path) -> None:
    assert shell.ok("apply", str(tables)) == "nothing to do\n1 table as declared\n"
    assert shell.ok("diff", str(tables)) == "nothing would change\n1 table as declared\n"
    none = {"steps": [], "unchanged": ["trips"], "left_alone": [], "quarantined": []}
    assert shell.json("diff", str(tables)) == shell.json("apply", str(tables)) == none


def test_a_difference_is_shown_and_then_applied(shell: Shell, tables: Path) -> None:
    wide = TRIPS.replace("float32", "float64").replace("5_000_000", "7")
    (tables / "trips.toml").write_text(wide)
    lines = ["widen fare to float64", "leaf_rows_max: 5000000 -> 7"]
    shown = ["change table trips  (trips.toml)", *(f"  {line}" for line in lines)]
    assert shell.ok("diff", str(tables)).splitlines() == shown
    (step,) = shell.json("diff", str(tables))["steps"]
    assert (step["action"], step["table"], step["details"]) == ("change", "trips", lines)
    assert shell.ok("apply", str(tables)).splitlines() == shown
    assert shell.json("table", "describe", "trips")["settings"]["leaf_rows_max"] == 7


def test_what_drops_something_asks_and_tells_rows_and_bytes(shell: Shell, tables: Path) -> None:
    rows = shell.write("rows.parquet", {"id": ["a", "b"], "note": ["x", "y"]})
    shell.ok("ingest", "trips", rows)
    (tables / "trips.toml").write_text(TRIPS.replace('note = "string?"\n', ""))
    code, error = shell.refused("apply", str(tables))
    assert (code, error["hint"]) == (2, "add --yes")
    assert "field 'note' of table trips (2 rows, " in error["facts"]["drops"]
    assert "drops field 'note' of table trips (2 rows, " in shell.ok("diff", str(tables))
    assert "drop note" in shell.ok("apply", str(tables), "--yes")
    (tables / "rides.toml").write_text('name = "rides"\n[row_keys]\nid = "int64"\n')
    (tables / "trips.toml").unlink()
    said = shell.ok("apply", str(tables)).splitlines()[-1]
    assert said.startswith("left alone, no file declares them any more: trips")
    said = shell.ok("apply", str(tables), "--remove", "offline")
    assert said.startswith("offline table trips  (no file declares it any more)")
    code, error = shell.refused("apply", str(tables), "--remove", "drop")
    assert error["facts"]["drops"].startswith("table trips (2 rows, ")
    assert shell.json("table", "list") == ["rides", "trips"]
    assert "drop table trips" in shell.ok("apply", str(tables), "--remove", "drop", "--yes")
    assert shell.json("table", "list") == ["rides"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name = ", "it is no TOML"),
        ('name = "trips"\nnam = 1', "did you mean 'name'?"),
        ('name = "trips"\nleaf_rows_max = 7', "write it below [settings]"),
        ('[row_keys]\nid = "string"', 'write `name = "wrong"`'),
        ('name = "Trips"\n[row_keys]\nid = "string"', "not a table name"),
        ('name = "t"\nwas = "t"\n[row_keys]\nid = "string"', "called as it is"),
        ('name = "t"\nadopt = "yes"\n[row_keys]\nid = "string"', "write true or false"),
        ('name = "t"\nrow_keys = ["id"]', "write [row_keys]"),
        ('name = "t"', "a schema needs a row key"),
        ('name = "t"\n[row_keys]\nid = "text8"', "'field': 'id'"),
        ('name = "t"\n[row_keys]\nid = { type = "string", nul = 1 }', "unknown part of a field"),
        ('name = "t"\n[row_keys]\nid = { type = "string", was = "id" }', "not a former name"),
        ('name = "t"\n[row_keys]\nid = "string"\n[settings]\nleaf_rows = 1', "leaf_rows_max"),
        ('name = "t"\n[row_keys]\nid = "string"\n[settings]\nsize_ratio = 12', "merge nothing"),
        ('name = "t"\n[row_keys]\nid = "string"\n[processing]\nfilter = "x > 1"', "no such field"),
        ('name = "t"\n[row_keys]\nid = "string"\n[processing]\nfold = 1', "part of processing"),
        ('name = "t"\nsplit_points = 7\n[row_keys]\nid = "string"', "no split points"),
        ('name = "t"\nsplit_points = ["a", 1]\n[row_keys]\nid = "int64"', "'at': 'split_points[0]"),
        ('name = "t"\nsplit_points = "p.jsonl"\n[row_keys]\nid = "int64"', "points.jsonl"),
        ('name = "trips"\n[row_keys]\nid = "string"', "two files declare one table"),
    ],
)
def test_a_file_that_is_wrong_is_named_and_nothing_changes(
    shell: Shell, tables: Path, text: str, says: str
) -> None:
    (tables / "wrong.toml").write_text(text)
    (tables / "points.jsonl").write_text("1\n")
    (tables / "trips.toml").write_text(TRIPS.replace("float32", "float64"))
    code, error = shell.refused("apply", str(tables))
    said = f"{error['message']} {error['facts']} {error['hint']}"
    assert code == 2
    assert says in said
    assert error["facts"]["file"] == "wrong.toml"
    assert "float32" in str(shell.json("table", "describe", "trips")["schema"])


def test_several_wrong_files_are_told_at_once(shell: Shell, tables: Path) -> None:
    (tables / "a.toml").write_text("name =")
    (tables / "b.toml").write_text('name = "b"\n[row_keys]\nid = "strin"')
    _, error = shell.refused("diff", str(tables))
    assert error["message"] == "several files of tables are wrong"
    assert "file=a.toml" in error["hint"]
    assert "did you mean 'string'?" in error["hint"]


def test_a_folder_that_is_none_is_refused(shell: Shell, tables: Path) -> None:
    code, error = shell.refused("apply", str(shell.folder / "gone"))
    assert (code, error["code"]) == (2, "unreadable-input")
    _, error = shell.refused("apply", str(shell.folder))
    assert error["hint"] == f"did you mean {tables}?"
    empty = shell.folder / "empty"
    empty.mkdir()
    _, error = shell.refused("apply", str(empty), "--remove", "drop", "--yes")
    assert error["message"] == "no file declares a table"
    (tables / "b.toml").write_bytes(b"\xff")
    _, error = shell.refused("apply", str(tables))
    assert (error["code"], error["facts"]["path"]) == ("unreadable-input", str(tables / "b.toml"))


def test_what_is_there_is_written_and_compared(shell: Shell, tables: Path) -> None:
    shell.ok("table", "create", "own", "--row-key", "k:int64", "--split-point", "7")
    shell.ok("table", "offline", "own")
    there = shell.folder / "there"
    written = ["own.toml", "own.split_points.jsonl", "trips.toml", "trips.split_points.jsonl"]
    done = shell.json("config", "download", str(there))
    assert done.pop("settings_written") is False, "a directory has none"
    assert done == {"written": written, "unchanged": [], "not_there": [], "failed": []}
    assert (there / "tables" / "own.toml").read_text() == (
        'name = "own"\nadopt = true\nonline = false\nsplit_points = "own.split_points.jsonl"\n'
        '\n[row_keys]\nk = "int64"\n'
    )
    assert (there / "tables" / "trips.split_points.jsonl").read_text() == '"g"\n"p"\n'
    assert shell.ok("config", "diff", str(there)) == "all tables are as the files say\n"
    assert shell.json("config", "download", str(there))["written"] == []
    assert [s["action"] for s in shell.json("apply", str(there / "tables"))["steps"]] == ["adopt"]
    shell.ok("table", "set", "own", "leaf_rows_max=7")
    shell.ok("table", "create", "more", "--row-key", "k:int64")
    shell.ok("table", "drop", "trips", "--yes")
    assert shell.ok("config", "diff", str(there)).splitlines() == [
        "table more: in no file",
        "table own (tables/own.toml)",
        "  leaf_rows_max: 7 -> 20000000",
        "table trips: only in tables/trips.toml",
    ]
    code, error = shell.refused("config", "download", str(there))
    assert (code, error["facts"]["files"]) == (2, "own.toml")
    done = shell.json("config", "download", str(there), "--replace")
    assert done["written"] == ["more.toml", "own.toml"]
    assert done["not_there"] == ["trips.toml"]


def test_a_table_that_cannot_be_written_down_is_named(shell: Shell, tables: Path) -> None:
    shell.ok("table", "create", "own", "--row-key", "k:int64")
    shell.ok("table", "quarantine", "own")
    result = shell.run("config", "download", str(shell.folder / "there"))
    assert result.exit_code == 2
    assert "failed: table own, download: table-quarantined" in result.stderr
    assert "written: tables/trips.toml" in result.stdout
    shell.ok("table", "quarantine", "trips")
    assert "left alone, in quarantine: trips" in shell.ok("diff", str(tables))
