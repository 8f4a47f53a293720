"""What became of jobs, as people see it: jobs, dead letters, commits that wait."""

from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.backends.local import SqliteJobQueues
from lakebed.backends.system import SystemClock
from lakebed.errors import InvalidError
from tests.unit.cli.programs import Shell


@pytest.fixture
def trips(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.ok("table", "create", "trips", "--row-key", "id:string")
    return shell


def send(shell: Shell, job: str, *ids: str) -> None:
    with lakebed.connect(shell.lake) as lake:
        done = lake.table("trips").ingest(pa.table({"id": ids}), job=job, queued=True)
    assert (done.number, done.rows) == (0, len(ids))


def test_a_queued_commit_waits_until_scheduled_work_is_done(trips: Shell) -> None:
    send(trips, "monday", "a", "b")
    assert "0 rows" in trips.ok("status", "trips")
    assert [job["event"] for job in trips.json("jobs", "trips")] == ["finished"]
    done = trips.json("run")
    assert done["commits_answered"] == 1
    assert trips.ok("query", "trips", "--json").count("\n") == 2
    (job,) = trips.json("jobs", "trips")
    assert (job["event"], job["job"], job["rows"], job["number"] > 0) == (
        "committed",
        "monday",
        2,
        True,
    )


def test_jobs_tell_what_became_of_them_newest_first(trips: Shell) -> None:
    assert trips.ok("jobs", "trips") == "none yet\n"
    trips.ok("ingest", "trips", trips.write("a.parquet", {"id": ["a"]}), "--job", "good")
    bad = trips.write("b.parquet", {"id": pa.array([None], pa.string())})
    assert trips.run("ingest", "trips", bad, "--job", "bad").exit_code == 2
    heading, first, second = trips.ok("jobs", "trips").splitlines()
    assert heading.split()[:3] == ["when", "kind", "what"]
    assert first.split()[1:3] == ["ingest", "rejected"]
    assert "bad" in first
    assert "null" in first
    assert second.split()[1:3] == ["ingest", "committed"]
    jobs = trips.json("jobs", "trips", "--event", "rejected", "--since", "600")
    assert [job["job"] for job in jobs] == ["bad"]
    assert trips.json("jobs", "trips", "--event", "created") == []
    assert len(trips.json("jobs", "trips", "--limit", "1")) == 1
    history = trips.json("jobs", "trips", "--job", "good")
    assert [report["event"] for report in history] == ["started", "committed"]
    assert len({report["run"] for report in history}) == 1


def test_an_event_that_is_none_is_refused(trips: Shell) -> None:
    code, _ = trips.refused("jobs", "trips", "--event", "commited")
    assert code == 2
    with (
        lakebed.connect(trips.lake) as lake,
        pytest.raises(InvalidError, match="committed"),
    ):
        lake.table("trips").jobs(events=["commited"])


def test_what_was_given_up_is_listed_shown_and_sent_again(trips: Shell) -> None:
    assert trips.ok("dead-letters", "list") == "no dead letters\n"
    assert trips.ok("dead-letters", "redrive") == "0 messages sent again\n"
    assert trips.json("dead-letters", "redrive") == {"sent": 0, "refused": []}
    send(trips, "monday", "a")
    queues = SqliteJobQueues(Path(trips.lake) / "queues", SystemClock())
    (message,) = queues.open("commits").receive(messages_max=1, hidden_seconds=60)
    queues.open("commits").give_up(message)
    queues.close()
    heading, line = trips.ok("dead-letters", "list").splitlines()
    assert heading.split()[:4] == ["queue", "waiting", "dead", "table"]
    assert line.split()[:5] == ["commits", "0", "1", "trips", "1"]
    shown = trips.ok("dead-letters", "show", "--queue", "commits").splitlines()
    assert shown[:3] == ["queue: commits", "table: trips", "job: monday"]
    code, _ = trips.refused("dead-letters", "show", "--queue", "comits")
    assert code == 2
    assert trips.ok("dead-letters", "redrive", "--table", "other") == "0 messages sent again\n"
    assert trips.ok("dead-letters", "redrive") == "1 message sent again\n"
    assert trips.json("commit") == {"commits_answered": 1}
    assert trips.json("dead-letters", "show") == []


def test_workers_tell_how_many_jobs_they_have_done(trips: Shell) -> None:
    assert trips.ok("tasks") == "none yet\n"
    trips.ok("run")
    assert trips.json("tasks") == []
    for name in "ab":
        trips.ok("ingest", "trips", trips.write(f"{name}.parquet", {"id": [name]}))
    trips.ok("compact", "trips")
    (task,) = trips.json("tasks")
    assert (task["kind"], task["jobs"], task["ended"]) == ("compaction", 1, True)
    heading, line = trips.ok("tasks").splitlines()
    assert heading.split()[-1] == "task"
    assert line.split()[-1] == task["task"]


def test_a_committer_puts_what_is_queued_into_the_log(trips: Shell) -> None:
    assert trips.ok("commit") == "0 queued commits answered\n"
    send(trips, "monday", "a", "b")
    send(trips, "tuesday", "c")
    assert trips.json("commit") == {"commits_answered": 2}
    assert trips.ok("query", "trips", "--json").count("\n") == 3
    numbers = {job["number"] for job in trips.json("jobs", "trips")}
    assert len(numbers) == 1
