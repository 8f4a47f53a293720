"""What a person types, and what comes back."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.cli.programs import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def trips(shell: Shell) -> Shell:
    """A table of three rows."""
    shell.ok("table", "create", "trips", "--row-key", "id:string", "--value", "n:int64?")
    rows = {"id": ["b", "a", "c"], "n": pa.array([2, 1, None], pa.int64())}
    shell.ok("ingest", "trips", shell.write("rows.parquet", rows), "--job", "first")
    return shell


def test_the_first_steps_of_the_help_work(trips: Shell) -> None:
    assert "nothing was due" in trips.ok("run")
    assert trips.ok("query", "trips", "--key", "b").splitlines()[-1].split() == ["b", "2"]
    assert "3 rows" in trips.ok("status")


def test_rows_come_back_in_key_order_as_json_lines(trips: Shell) -> None:
    lines = trips.ok("query", "trips", "--json").splitlines()
    assert [json.loads(line) for line in lines] == [
        {"id": "a", "n": 1},
        {"id": "b", "n": 2},
        {"id": "c", "n": None},
    ]


def test_a_range_is_half_open_and_its_empty_end_unbounded(trips: Shell) -> None:
    def ids(*args: str) -> list[str]:
        return [json.loads(line)["id"] for line in trips.ok("query", "trips", *args).splitlines()]

    assert ids("--range", "id=a..c", "--format", "jsonl") == ["a", "b"]
    assert ids("--range", "id=b..", "--json") == ["b", "c"]
    assert ids("--range", "id=..b", "--range", "id=c..", "--json") == ["a", "c"]
    assert ids("--key", "a", "--key", "id=c", "--json") == ["a", "c"]
    assert ids("--limit", "1", "--json") == ["a"]


def test_rows_are_chosen_by_their_values(trips: Shell) -> None:
    def ids(*args: str) -> list[str]:
        given = ("--json", "--columns", "id", *args)
        return [json.loads(line)["id"] for line in trips.ok("query", "trips", *given).splitlines()]

    assert ids("--where", "n >= 2 or n is null") == ["b", "c"]
    assert ids("--where", "n is not null and id in ('b', 'c')") == ["b"]
    assert ids("--where", "id != 'a'", "--limit", "1") == ["b"]
    assert ids("--where", "id > 'a'", "--range", "id=..c") == ["b"]
    assert ids("--where", "id between 'b' and 'c' and not n is null") == ["b"]
    assert ids("--where", "id LIKE 'b%' or n == 1") == ["a", "b"]
    assert ids("--where", "\"id\" not like '_' or n <> 1") == ["b"]
    code, error = trips.refused("query", "trips", "--where", "id like b")
    assert (code, error["facts"]["at"]) == (2, "b")
    assert "single quotes" in error["hint"]
    code, error = trips.refused("query", "trips", "--where", "m > 2")
    assert (code, error["facts"]["field"]) == (2, "m")
    code, error = trips.refused("query", "trips", "--where", "__import__('os')")
    assert (code, error["message"]) == (2, "not a predicate")


def test_a_test_of_the_key_reads_what_the_key_reads(trips: Shell) -> None:
    def explained(*args: str) -> dict[str, object]:
        trips.ok("query", "trips", *args, "--json")
        told = json.loads(trips.ok("query", "trips", *args, "--explain", "--json"))
        return {name: told[name] for name in ("rows", "files_matching", "pages_read", "bytes")}

    assert explained("--where", "id = 'b'") == explained("--key", "b")
    assert trips.ok("query", "trips", "--where", "id = 'b' and n = 2", "--count").strip() == "1"
    nothing = explained("--where", "id = 'b' and id = 'c'")
    assert nothing == dict.fromkeys(nothing, 0)


def test_a_query_may_be_given_a_cap(trips: Shell) -> None:
    code, error = trips.refused("query", "trips", "--scan-bytes-max", "10")
    assert (code, error["code"], error["facts"]["scan_bytes_max"]) == (2, "query-too-large", "10")
    code, error = trips.refused("query", "trips", "--scan-bytes-max", "-1")
    assert (code, error["message"]) == (2, "not a cap")
    trips.ok("table", "set", "trips", "scan_bytes_max=10")
    code, error = trips.refused("query", "trips", "--count", "--where", "n = 1")
    assert (code, error["code"]) == (2, "query-too-large")
    assert trips.ok("query", "trips", "--count").strip() == "3"


def test_a_range_of_a_sort_key_is_asked_for_by_a_test(shell: Shell) -> None:
    shell.ok("table", "create", "t", "--row-key", "id:string", "--sort-key", "at:int64")
    shell.ok("ingest", "t", shell.write("rows.parquet", {"id": ["a", "a"], "at": [1, 2]}))
    code, error = shell.refused("query", "t", "--range", "at=2..")
    assert code == 2
    assert "--where" in error["hint"]
    assert shell.ok("query", "t", "--where", "at >= 2", "--count").strip() == "1"


def test_a_key_of_several_fields_is_given_in_order_or_by_name(shell: Shell) -> None:
    shell.ok("table", "create", "t", "--row-key", "who:string", "--row-key", "number:int32")
    rows = {"who": ["a", "a", "b,c"], "number": pa.array([1, 2, 2], pa.int32())}
    shell.ok("ingest", "t", shell.write("rows.parquet", rows))

    def count(*args: str) -> int:
        return len(shell.ok("query", "t", "--json", *args).splitlines())

    assert count("--key", "a,2") == 1
    assert count("--key", "a") == 2
    assert count("--key", '"b,c",2') == 1
    assert count("--key", "who=b,c,number=2") == 1
    assert count("--range", "number=2..3") == 2
    assert count("--range", "who=a..b", "--range", "number=2..3") == 1


def test_csv_that_was_written_can_be_taken_in_again(shell: Shell) -> None:
    columns = {
        "id": pa.array([1, 2, 3], pa.int64()),
        "text": ["", None, 'a "quote",\nand a line'],
        "raw": [b"", b"\x00\xff", None],
        "at": pa.array([0, None, 1_234_567], pa.timestamp("us", "UTC")),
        "f": [float("nan"), float("-inf"), 0.1],
    }
    path = shell.write("rows.parquet", columns)
    for name in ("one", "two"):
        shell.ok("table", "create", name, "--like", path, "--row-key", "id")
    shell.ok("ingest", "one", path)
    copy = str(shell.folder / "copy.csv")
    assert "3 rows" in shell.ok("query", "one", "--format", "csv", "--output", copy)
    shell.ok("ingest", "two", copy)
    assert shell.ok("query", "two", "--json") == shell.ok("query", "one", "--json")


def test_json_lines_that_were_written_can_be_taken_in_again(shell: Shell) -> None:
    columns = {
        "id": pa.array([1, 1 << 60, 3], pa.int64()),
        "text": ["", None, 'a "quote",\nand a line'],
        "raw": [b"", b"\x00\xff", None],
        "at": pa.array([0, None, 1_234_567], pa.timestamp("us", "UTC")),
        "f": [float("nan"), float("-inf"), 0.1],
        "tags": pa.array([["a"], [], None], pa.list_(pa.string())),
        "map": pa.array([[("a", 1 << 60)], [], None], pa.map_(pa.string(), pa.int64())),
    }
    path = shell.write("rows.parquet", columns)
    for name in ("one", "two"):
        shell.ok("table", "create", name, "--like", path, "--row-key", "id")
    shell.ok("ingest", "one", path)
    for copy in ("copy.ndjson", "copy.txt"):
        written = str(shell.folder / copy)
        shell.ok("query", "one", "--format", "jsonl", "--output", written)
        shell.ok("table", "clear", "two", "--yes")
        shell.ok("ingest", "two", written, "--format", "jsonl")
        assert shell.ok("query", "two", "--json") == shell.ok("query", "one", "--json")


def test_parquet_goes_to_a_file_that_appears_when_it_is_complete(trips: Shell) -> None:
    path = trips.folder / "out.parquet"
    trips.ok("query", "trips", "--format", "parquet", "--output", str(path), "--columns", "n")
    assert pq.read_table(path).to_pydict() == {"n": [1, 2, None]}
    assert not list(trips.folder.glob("*.unfinished"))
    code, error = trips.refused("query", "trips", "--format", "parquet")
    assert (code, error["hint"]) == (2, "add --output FILE")


def test_the_table_for_people_shows_some_rows_and_says_so(shell: Shell) -> None:
    shell.ok("table", "create", "t", "--row-key", "id:int64")
    shell.ok("ingest", "t", shell.write("rows.parquet", {"id": range(2_500)}))
    short = shell.run("query", "t")
    assert len(short.stdout.splitlines()) == 2 + 40
    assert "--limit shows more" in short.stderr
    long = shell.ok("query", "t", "--limit", "2500").splitlines()
    assert [int(line) for line in long[2:]] == list(range(2_500))


def test_a_job_that_is_sent_again_is_done_once(trips: Shell) -> None:
    again = trips.json("ingest", "trips", str(trips.folder / "rows.parquet"), "--job", "first")
    assert again["repeated"] is True
    assert len(trips.ok("query", "trips", "--json").splitlines()) == 3


def test_split_points_make_leaves(shell: Shell) -> None:
    made = shell.json(
        "table",
        "create",
        "t",
        "--row-key",
        "id:int64",
        "--split-point",
        "10",
        "--split-point",
        "20",
    )
    assert made["leaves"] == 3
    points = shell.folder / "points.txt"
    points.write_text("Zw==\ncA==\n")
    options = ("--row-key", "id:string", "--split-points", str(points), "--base64")
    assert shell.json("table", "create", "u", *options)["leaves"] == 3
    assert "g to p" in shell.ok("status", "u")


def test_a_sample_gives_split_points(shell: Shell) -> None:
    path = shell.write("rows.parquet", {"id": [f"{n:04d}" for n in range(1_000)]})
    create = ("table", "create", "t", "--like", path, "--row-key", "id")
    for missing in (("--split-sample", path), ("--leaves", "4")):
        assert "--split-sample FILE and --leaves N" in shell.refused(*create, *missing)[1]["hint"]
    both = ("--split-sample", path, "--leaves", "4")
    assert shell.refused(*create, *both, "--split-point", "5")[1]["message"] == "split points twice"
    assert shell.json(*create, *both)["leaves"] == 4
    assert "0250 to 0500" in shell.ok("status", "t")


def test_a_table_is_created_from_a_schema_file_and_describes_itself(shell: Shell) -> None:
    path = shell.folder / "schema.json"
    schema = {
        "row_keys": [{"name": "id", "type": "string"}],
        "values": [{"name": "tags", "type": {"list": "string"}, "nullable": True}],
    }
    path.write_text(json.dumps(schema))
    shell.ok("table", "create", "t", "--schema", str(path), "--set", "leaf_rows_max=1000")
    described = shell.json("table", "describe", "t")
    assert [f["name"] for f in described["schema"]["values"]] == ["tags"]
    assert described["settings"]["leaf_rows_max"] == 1000
    text = shell.ok("table", "describe", "t")
    assert "list<string>?" in text
    assert "* leaf_rows_max = 1000" in text


def test_a_table_is_dropped_only_when_that_is_meant(trips: Shell) -> None:
    assert "would drop" in trips.ok("table", "drop", "trips", "--dry-run")
    code, error = trips.refused("table", "drop", "trips")
    assert (code, error["hint"]) == (2, "add --yes")
    assert trips.json("table", "list") == ["trips"]
    trips.ok("table", "drop", "trips", "--yes")
    assert trips.json("table", "list") == []


def test_compact_leaves_one_file(trips: Shell) -> None:
    for job in ("second", "third"):
        trips.ok("ingest", "trips", str(trips.folder / "rows.parquet"), "--job", job)
    assert trips.json("compact", "trips")["jobs_done"] == 1
    (status,) = trips.json("status", "trips")
    assert (status["files"], status["rows"]) == (1, 9)


def test_fsck_is_clean_and_finds_what_is_gone(trips: Shell) -> None:
    assert trips.ok("fsck", "--deep") == "1 table and 1 file checked: clean\n"
    (lost,) = (path for path in (trips.lake / "objects").rglob("*.parquet"))
    lost.unlink()
    found = trips.run("fsck", "trips", "--json")
    assert found.exit_code == 7
    assert [one["code"] for one in json.loads(found.stdout)["findings"]] == ["file-missing"]
    assert "means: a referenced file is not there" in trips.run("fsck").stdout


def test_a_damaged_file_is_told_with_its_table_and_the_command_that_finds_it(
    trips: Shell,
) -> None:
    (file,) = (trips.lake / "objects").rglob("*.parquet")
    body = bytearray(file.read_bytes())
    body[40] ^= 1
    file.write_bytes(body)
    told = trips.run("query", "trips")
    assert told.exit_code == 7
    assert "table=trips" in told.stderr
    assert file.name in told.stderr
    assert "`lakebed fsck --deep trips` finds it" in told.stderr
    assert "not read: the pages and rows of files" in trips.ok("fsck", "trips")
    assert trips.run("fsck", "--deep", "trips").exit_code == 7


def test_fsck_shows_its_plan_before_it_repairs(trips: Shell) -> None:
    (cache,) = trips.lake.glob("cache/*.sqlite")
    cache.write_bytes(b"\x00" * cache.stat().st_size)
    planned = trips.run("fsck", "--repair", "--dry-run")
    assert planned.exit_code == 7
    assert "1. rebuild-cache trips: delete the local cache of the state" in planned.stdout
    assert planned.stdout.endswith("nothing was changed\n")
    assert trips.run("fsck", "--repair").exit_code == 2  # nobody to ask
    done = trips.json("fsck", "--repair", "--yes")
    assert [one["step"]["action"] for one in done["done"]] == ["rebuild-cache"]
    assert done["after"]["findings"] == []
    assert trips.ok("fsck", "--repair") == (
        "1 table and 1 file checked: clean\n"
        "not read: the pages and rows of files; `lakebed fsck --deep` reads them\n\n"
        "nothing that could be repaired\nnothing was changed\n"
    )
    assert trips.refused("fsck", "--yes")[0] == 2


def test_options_are_understood_before_and_after_the_command(trips: Shell) -> None:
    assert (
        trips.run("--json", "table", "list").stdout == trips.run("table", "list", "--json").stdout
    )
    elsewhere = str(trips.folder / "elsewhere")
    code, error = trips.refused("table", "list", "--lake", elsewhere)
    assert (code, error["facts"]["path"]) == (2, elsewhere)


@pytest.mark.parametrize(
    "args",
    [
        ("table", "list"),
        ("table", "describe", "t"),
        ("table", "drop", "t", "--yes"),
        ("query", "t"),
        ("ingest", "t", "rows.parquet"),
        ("run",),
        ("compact", "t"),
        ("status",),
        ("fsck",),
    ],
)
def test_only_create_makes_a_lake(shell: Shell, args: tuple[str, ...]) -> None:
    code, error = shell.refused(*args)
    assert (code, error["message"]) == (2, "there is no lake")
    assert not shell.lake.exists()


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (("query", "tripps"), "table-missing", "did you mean 'trips'?"),
        (("qery", "trips"), "invalid", "did you mean 'query'?"),
        (("table", "creat", "x"), "invalid", "did you mean 'create'?"),
        (("query", "trips", "--limt", "3"), "invalid", "`lakebed query --help` shows how"),
        (("query",), "invalid", "`lakebed query --help` shows how"),
        (
            ("query", "trips", "--key", "idd=3,4", "--columns", "m"),
            "invalid",
            "known fields: id, n",
        ),
        (("query", "trips", "--range", "id"), "invalid", "FIELD=MIN..MAX"),
        (("query", "trips", "--range", "n=1..2"), "invalid", "row keys are: id"),
        (("query", "trips", "--range", "id=c..a"), "invalid", "give the smaller one as min"),
        (("explain", "table-mising"), "invalid", "did you mean 'table-missing'?"),
        (("table", "create", "u"), "invalid", "name at least one field as row key"),
        (("table", "create", "u", "--row-key", "id"), "invalid", "write NAME:TYPE"),
        (("table", "create", "u", "--row-key", "id:int63"), "invalid", "did you mean 'int64'?"),
        (("table", "create", "u", "--schema", "no.json"), "unreadable-input", "for instance"),
    ],
)
def test_a_mistake_is_answered_with_what_to_do(
    trips: Shell, args: tuple[str, ...], code: str, says: str
) -> None:
    exit_code, error = trips.refused(*args)
    assert (exit_code, error["code"]) == (2, code)
    assert says in error["hint"]


def test_an_error_for_people_has_a_hint_and_a_code(trips: Shell) -> None:
    result = trips.run("query", "tripps")
    assert result.stderr.splitlines() == [
        "error: no such table (table=tripps)",
        "  hint: did you mean 'trips'?",
        "  code: table-missing, see `lakebed explain table-missing`",
    ]


def test_explain_says_cause_what_is_done_and_what_you_can_do(shell: Shell) -> None:
    text = shell.ok("explain", "job-id-reused")
    assert "exit code 2" in text
    assert "What is done: the first request stands" in text
    assert "What you can do: choose a new id" in text
    assert "job-id-reused" in shell.ok("explain")
    assert shell.json("explain", "corrupt")["exit_code"] == 7


def test_a_query_is_explained_to_people_and_to_programs(trips: Shell) -> None:
    told = trips.ok("query", "trips", "--key", "b", "--explain")
    names = [line.split("  ")[0] for line in told.splitlines()]
    assert names == ["rows", "leaves", "files", "row groups", "pages", "tails", "requests", "time"]
    found = trips.json("query", "trips", "--key", "b", "--explain")
    assert (found["rows"], found["leaves"], found["files_matching"]) == (1, 1, 1)
    assert found["requests"] >= found["rounds"] >= 1
    assert found["milliseconds"]["total"] >= found["milliseconds"]["state"]
    nothing = trips.json("query", "trips", "--key", "zz", "--explain")
    assert (nothing["files_reached"], nothing["files_matching"]) == (1, 0)
    assert (nothing["rows"], nothing["requests"]) == (0, 0)
    code, error = trips.refused("query", "trips", "--explain", "--format", "csv")
    assert (code, error["hint"]) == (2, "leave --format and --output out; --json is possible")


def test_the_log_and_its_states_can_be_looked_into(trips: Shell) -> None:
    said = trips.ok("state", "log", "trips")
    assert "create the table with 1 leaf" in said
    assert "rows in leaf 1" in said
    shown = trips.ok("state", "show", "trips", "--number", "1")
    assert shown.startswith("trips at entry 1, ")
    assert "0 rows in 0 files" in shown
    listed = trips.json("state", "show", "trips", "--files")
    assert len(listed["references"]) == listed["files"] == 1
    assert trips.ok("state", "snapshot", "trips") == "trips: a snapshot of entry 2\n"
    assert trips.refused("state", "show", "trips", "--number", "9")[1]["hint"] == "its last is 2"
    assert trips.ok("state", "log", "trips", "--after", "2") == "no entry there\n"
