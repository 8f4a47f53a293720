"""What a person types to change a table that is there."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from tests.unit.cli.programs import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def trips(tmp_path: Path) -> Shell:
    """A table of three rows in two leaves."""
    shell = Shell(tmp_path)
    options = ("--row-key", "id:string", "--value", "n:int64?", "--split-point", "b")
    shell.ok("table", "create", "trips", *options)
    rows = {"id": ["b", "a", "c"], "n": pa.array([2, 1, None], pa.int64())}
    shell.ok("ingest", "trips", shell.write("rows.parquet", rows))
    return shell


def count(shell: Shell, table: str = "trips") -> int:
    return len(shell.ok("query", table, "--json").splitlines())


def test_settings_are_set_and_their_history_is_told(trips: Shell) -> None:
    said = trips.ok("table", "set", "trips", "leaf_rows_max=1000", "compaction_strategy=basic")
    assert said == "leaf_rows_max = 1000\ncompaction_strategy = basic\n"
    assert trips.json("table", "describe", "trips")["settings"]["leaf_rows_max"] == 1000
    told = trips.json("table", "history", "trips")
    assert told["since"] == 1
    assert [one["what"] for one in told["changes"]] == ["created", "settings"]
    assert told["changes"][1]["settings"]["leaf_rows_max"] == 1000
    assert told["changes"][1]["at"].endswith("Z")
    assert "settings: leaf_rows_max = 1000, " in trips.ok("table", "history", "trips")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("leaf_rows_max",), "write NAME=VALUE"),
        (("leaf_row_max=5",), "did you mean 'leaf_rows_max'?"),
        (("leaf_rows_max=1",), "`lakebed explain settings`"),
        (("size_ratio=3", "size_ratio=4"), "name it once"),
        ((), "`lakebed table set --help` shows how"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(
    trips: Shell, args: tuple[str, ...], says: str
) -> None:
    code, error = trips.refused("table", "set", "trips", *args)
    assert code == 2
    assert says in error["hint"]


def test_a_table_is_cleared_only_when_that_is_meant(trips: Shell) -> None:
    assert "would remove 3 rows" in trips.ok("table", "clear", "trips", "--dry-run")
    code, error = trips.refused("table", "clear", "trips")
    assert (code, error["hint"]) == (2, "add --yes")
    assert count(trips) == 3
    said = trips.ok("table", "clear", "trips", "--yes")
    assert said == "removed 3 rows of table trips, leaves: 2\n"
    assert count(trips) == 0


def test_a_table_is_cleared_with_new_split_points(trips: Shell) -> None:
    points = trips.folder / "points.txt"
    points.write_text("c\nd\ne\n")
    args = ("table", "clear", "trips", "--yes", "--split-points", str(points))
    assert trips.json(*args)["leaves"] == 4
    assert trips.json("table", "clear", "trips", "--yes", "--split-point", "x")["leaves"] == 2
    points.write_text("")
    assert trips.json(*args)["leaves"] == 1
    code, error = trips.refused(*args, "--split-point", "x")
    assert (code, error["message"]) == (2, "split points twice")
    last = trips.ok("table", "history", "trips").splitlines()[-1]
    assert last.endswith("cleared, leaves: 1")
    assert json.loads(trips.ok("status", "trips", "--json"))[0]["rows"] == 0


def test_a_table_that_is_offline_says_so_and_is_passed_over(trips: Shell) -> None:
    trips.ok("table", "create", "other", "--row-key", "id:string")
    trips.ok("table", "set", "trips", "leaf_rows_max=2")
    trips.ok("ingest", "trips", str(trips.folder / "rows.parquet"))
    assert trips.json("table", "offline", "trips") == {"table": "trips", "online": False}
    assert trips.ok("table", "list") == "other\ntrips  (offline)\n"
    assert trips.json("table", "list") == ["other", "trips"]
    assert trips.ok("status", "trips").splitlines()[0].endswith(", 2 leaves, offline")
    assert "split" not in trips.ok("run")
    assert trips.ok("table", "online", "trips") == "table trips is online\n"
    assert "split" in trips.ok("run")
    code, error = trips.refused("table", "offline", "tripps")
    assert (code, error["hint"]) == (2, "did you mean 'trips'?")


def test_a_table_is_renamed_and_a_name_that_is_taken_is_refused(trips: Shell) -> None:
    trips.ok("table", "create", "other", "--row-key", "id:string")
    code, error = trips.refused("table", "rename", "trips", "other")
    assert (code, error["code"]) == (2, "table-exists")
    assert trips.json("table", "rename", "trips", "rides") == {"table": "rides", "before": "trips"}
    assert trips.json("table", "list") == ["other", "rides"]
    assert count(trips, "rides") == 3
    code, error = trips.refused("query", "trips")
    assert (code, error["code"]) == (2, "table-missing")


def test_fields_are_altered_and_the_history_is_told(trips: Shell) -> None:
    said = trips.ok(
        *("table", "alter", "trips", "--add", "tip:float64?", "--rename", "n=count"),
        *("--add", 'tags:{"list": "string"}'),
    )
    assert said == 'rename n to count\nadd tip: float64\nadd tags: {"list": "string"}\n'
    fields = {f["name"] for f in trips.json("table", "describe", "trips")["schema"]["values"]}
    assert fields == {"count", "tip", "tags"}
    assert "2: rename n to count, add tip: float64" in trips.ok("table", "describe", "trips")
    assert "fields: rename n to count, " in trips.ok("table", "history", "trips")
    told = json.loads(trips.ok("query", "trips", "--json").splitlines()[0])
    assert told == {"id": "a", "count": 1, "tip": None, "tags": None}


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((), "name a field to add, rename, drop or widen"),
        (("--add", "tip"), "write NAME:TYPE"),
        (("--add", "tip:int8"), "write 'int8?'"),
        (("--rename", "n"), "write --rename OLD=NEW"),
        (("--rename", "n=a", "--rename", "n=b"), "once for each field"),
        (("--drop", "m"), "known fields: id, n"),
        (("--drop", "id"), "a new table can have other keys"),
        (("--widen", "n:float64"), "this type has no wider one"),
    ],
)
def test_fields_that_cannot_be_altered_so_are_refused(
    trips: Shell, args: tuple[str, ...], says: str
) -> None:
    code, error = trips.refused("table", "alter", "trips", *args)
    assert code == 2
    assert says in error["hint"]
    assert trips.json("table", "describe", "trips")["schema"]["format"] == 1


def test_the_leaves_of_a_table_are_copied_by_its_split_points(shell: Shell) -> None:
    keys = ("--row-key", "who:string", "--row-key", "day:date32")
    given = ("b", '"c,d",2013-01-31', '"c,d",2013-02-01', '"e ""f"""')
    points = [option for point in given for option in ("--split-point", point)]
    shell.ok("table", "create", "one", *keys, *points)
    written = shell.ok("table", "split-points", "one")
    assert written.splitlines() == list(given)
    (shell.folder / "points.txt").write_text(written, encoding="utf-8")
    file = str(shell.folder / "points.txt")
    shell.ok("table", "create", "two", *keys, "--split-points", file)
    shell.ok("table", "create", "three", *keys)
    shell.ok("table", "clear", "three", "--split-points", file, "--yes")
    trees = [shell.json("status", name)[0]["nodes"] for name in ("one", "two", "three")]
    assert [(n["min"], n["max"]) for n in trees[0]] == [(n["min"], n["max"]) for n in trees[1]]
    for name in ("two", "three"):
        assert shell.json("table", "split-points", name)["split_points"] == list(given)


def test_split_points_that_no_line_can_hold_are_refused(shell: Shell) -> None:
    import lakebed

    with lakebed.connect(shell.lake) as lake:
        schema = lakebed.schema_of(row_keys={"id": "string"})
        table = lake.create_table("odd", schema, split_points=["a\nb", "c"])
        assert table.split_points == ["a\nb", "c"]
        assert lake.create_table("copy", schema, split_points=table.split_points).split_points == [
            *("a\nb", "c")
        ]
    code, error = shell.refused("table", "split-points", "odd")
    assert (code, error["hint"]) == (2, "take Table.split_points in Python")
    args = ("--row-key", "a:string", "--row-key", "b:int32", "--split-point", "x,1,2")
    code, error = shell.refused("table", "create", "t", *args)
    assert (code, error["facts"]["row_keys"]) == (2, "a, b")


def test_processing_is_changed_from_a_file_and_told_in_the_history(trips: Shell) -> None:
    rule = trips.folder / "rule.json"
    rule.write_text('{"filter": "n > 1"}')
    alter = ("table", "alter", "trips", "--processing", str(rule))
    assert "filter" in trips.ok(*alter)
    assert count(trips) == 1
    assert '"filter"' in trips.ok("table", "history", "trips")
    assert "stricter" not in trips.ok(*alter)
    rule.write_text("null")
    code, error = trips.refused(*alter)
    assert (code, "stricter" in error["message"]) == (2, True)
    code, error = trips.refused(*alter, "--drop", "n")
    assert (code, "cannot change in one command" in error["message"]) == (2, True)
    code, error = trips.refused(*alter[:-1], str(trips.folder / "none.json"))
    assert code == 2
    assert count(trips) == 1


def test_a_directory_is_told_of_no_files_and_says_what_reads_them(trips: Shell) -> None:
    assert trips.ok("table", "watch", "trips") == "table trips watches no folder\n"
    code, error = trips.refused("table", "watch", "trips", "s3://landing/trips/")
    assert (code, error["message"]) == (2, "a lake in a directory is not told of files")
    assert "`lakebed explain feed-settings`" in error["hint"]
    assert trips.json("table", "watch", "trips", "--none") == {"table": "trips", "watch": None}
    _, error = trips.refused("table", "watch", "trips", "s3://landing/", "--none")
    assert error["hint"] == "give one of them"
    _, error = trips.refused("table", "watch", "tripz")
    assert "trips" in error["hint"]
