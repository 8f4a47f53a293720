"""`lakebed report`: the same figures as text, JSON, CSV and Parquet."""

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lakebed.backends.local.job_tracker import SqliteJobTracker
from lakebed.backends.memory.job_tracker import MemoryJobTracker
from lakebed.bootstrap.reporting.reports import REPORTS
from lakebed.cli.reports import NAMES
from lakebed.model.names import JobId, Micros, TableId
from lakebed.ports.job_tracker import JobReport, JobTracker
from lakebed.tasks.job_pages import each_job
from tests.unit.cli.programs import Shell

TABLE = TableId("t")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    made = Shell(tmp_path)
    made.ok("table", "create", "trips", "--row-key", "id:string", "--value", "n:int64")
    made.ok("table", "set", "trips", "leaf_rows_max=100")
    made.ok("table", "create", "empty", "--row-key", "id:string")
    ids = [f"{n:03}" for n in range(250)]
    rows = made.write("rows.parquet", {"id": ids, "n": list(range(250))})
    made.ok("ingest", "trips", rows, "--job", "monday")
    return made


def test_the_command_knows_all_reports() -> None:
    assert set(NAMES) == set(REPORTS)


def test_partitions_tell_which_will_be_split_by_which_key_and_where(shell: Shell) -> None:
    found = {row["table"]: row for row in shell.json("report", "partitions")}
    trips, empty = found["trips"], found["empty"]
    assert (trips["will_split"], trips["split_key"], trips["rows_until_split"]) == (True, "id", 0)
    points = trips["split_at"].split("; ")
    assert points == sorted(points)
    assert (empty["will_split"], empty["split_at"]) == (False, None)
    assert empty["rows_until_split"] == 20_000_001
    shell.ok("run", "trips")
    after = shell.json("report", "partitions", "trips")
    assert [row["min"] for row in after if row["min"]] == points
    assert not any(row["will_split"] for row in after)
    assert all(row["rows_until_split"] == 101 - row["rows"] for row in after)


def test_a_leaf_without_a_split_point_is_asked_again_when_it_has_doubled(shell: Shell) -> None:
    shell.ok("table", "create", "same", "--row-key", "id:string")
    shell.ok("table", "set", "same", "leaf_rows_max=100")
    shell.ok("ingest", "same", shell.write("same.parquet", {"id": ["a"] * 150}))
    shell.ok("run", "same")
    (leaf,) = shell.json("report", "partitions", "same")
    assert (leaf["splittable"], leaf["will_split"], leaf["rows_until_split"]) == (False, False, 151)


@pytest.mark.parametrize("name", sorted(REPORTS))
def test_all_forms_say_the_same(shell: Shell, name: str) -> None:
    check_forms(shell, name)


def check_forms(shell: Shell, name: str) -> None:
    values = shell.json("report", name)
    lines = list(csv.DictReader(io.StringIO(shell.ok("report", name, "--csv"))))
    file = shell.folder / "report.parquet"
    shell.ok("report", name, "--parquet", str(file))
    table = pq.read_table(file)
    names = [column.name for column in REPORTS[name].columns]
    assert table.column_names == names
    assert table.num_rows == len(values) == len(lines)
    assert all(list(value) == names for value in values)
    text = shell.ok("report", name)
    if values:
        assert len(text.splitlines()) == len(values) + 1
    else:
        assert text == "none yet\n"


def test_batches_are_told_with_what_became_of_them(shell: Shell) -> None:
    shell.ok("table", "set", "trips", "batch_seconds_max=0", "batch_bytes_min=0")
    for day in ("tuesday", "wednesday"):
        shell.ok("submit", "trips", shell.write(f"{day}.parquet", {"id": [day], "n": [1]}))
        shell.ok("run", "trips")
    found = shell.json("report", "batches")
    assert [(row["table"], row["batch"], row["state"]) for row in found] == [
        ("trips", 2, "committed"),
        ("trips", 1, "committed"),
    ]
    listed = shell.json("batches", "trips")
    for name in ("job", "planned", "files", "bytes", "number", "target", "sends"):
        assert [row[name] for row in found] == [one[name] for one in listed]
    assert shell.json("report", "batches", "empty") == []
    assert len(shell.json("report", "batches", "trips", "--limit", "1")) == 1
    assert shell.json("report", "batches", "--since", "0") == []
    check_forms(shell, "batches")


def test_costs_add_up_to_what_was_counted(shell: Shell) -> None:
    shell.ok("query", "trips")
    found = shell.json("report", "costs", "trips")
    counted = {
        line["name"]: line["counts"]
        for line in shell.json("cost", "trips", "--by", "kind")["lines"]
    }
    assert {row["kind"] for row in found} == set(counted)
    (taken_in,) = (row for row in found if row["kind"] == "ingest")
    assert (taken_in["table"], taken_in["rows_in"], taken_in["dollars"]) == ("trips", 250, 0.0)
    assert taken_in["bytes_written"] == counted["ingest"]["local_put_bytes"]
    assert taken_in["day"] % (86_400 * 1_000_000) == 0
    assert {row["table"] for row in shell.json("report", "costs")} == {"trips", "-"}


def test_queries_are_told_by_hour_and_table(shell: Shell) -> None:
    for _ in range(2):
        shell.ok("query", "trips")
    found = shell.json("report", "queries")
    assert {row["table"] for row in found} == {"trips"}
    assert sum(row["queries"] for row in found) == 2
    assert sum(row["rows_read"] for row in found) == 500
    assert shell.json("report", "queries", "empty") == []
    check_forms(shell, "queries")


def test_reports_are_of_one_table_or_all(shell: Shell) -> None:
    assert [row["table"] for row in shell.json("report", "status")] == ["empty", "trips"]
    assert [row["table"] for row in shell.json("report", "status", "trips")] == ["trips"]
    (job,) = shell.json("report", "jobs")
    assert (job["table"], job["job"], job["event"], job["rows"]) == (
        "trips",
        "monday",
        "committed",
        250,
    )
    assert shell.json("report", "jobs", "empty") == []
    assert shell.json("report", "jobs", "--since", "0") == []
    (file,) = shell.json("report", "files", "trips")
    assert (file["rows"], file["min"], file["whole"]) == (250, None, True)


def test_bad_questions_are_refused(shell: Shell) -> None:
    for args in (
        ("partition",),
        ("jobs", "trips", "--csv", "--parquet", "x.parquet"),
        ("tasks", "trips"),
        ("jobs", "trip"),
        ("jobs", "--parquet", str(shell.folder / "none" / "x.parquet")),
        ("jobs", "--limit", "0"),
    ):
        code, error = shell.refused("report", *args)
        assert code == 2
        assert error["hint"]


def test_a_table_that_cannot_be_read_harms_no_other(shell: Shell) -> None:
    shell.ok("table", "quarantine", "empty")
    result = shell.run("report", "status", "--csv")
    assert result.exit_code == 4
    assert result.stdout.count("\n") == 2
    assert "could not be told: empty: table-quarantined" in result.stderr


def in_a_file(folder: Path) -> JobTracker:
    return SqliteJobTracker(folder)


def in_memory(_: Path) -> JobTracker:
    return MemoryJobTracker()


@pytest.mark.parametrize("made", [in_a_file, in_memory])
@pytest.mark.parametrize("page", [1, 2, 3, 7, 100])
def test_each_job_is_told_once_however_pages_fall(
    tmp_path: Path, made: Callable[[Path], JobTracker], page: int
) -> None:
    tracker = made(tmp_path)
    moments = [1, 1, 1, 1, 2, 3, 3, 4, 4, 4, 5, 9, 9]
    for number, at in enumerate(moments):
        tracker.report(
            JobReport(
                table=TABLE, job=JobId(f"j{number}"), kind="ingest", event="failed", at=Micros(at)
            )
        )
    found = [(one.at, one.job) for one in each_job(tracker, TABLE, page=page)]
    assert [at for at, _ in found] == sorted(moments, reverse=True)
    assert len({job for _, job in found}) == len(moments)
    asked = each_job(tracker, TABLE, since=Micros(2), until=Micros(5), page=page)
    some = [one.at for one in asked]
    assert some == [4, 4, 4, 3, 3, 2]
