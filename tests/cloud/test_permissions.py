"""Each statement of each role is needed by some story, and each action is used, as the emulator
judges; some statements are really dropped, to see that its judgement is the truth."""

import json
import os
import re
import subprocess
import sys
from typing import Any, NamedTuple

import pytest

from tests.cloud.conftest import NOTES_VARIABLE, ROOT
from tests.cloud.instance import INSTANCE, RunningInstance
from tests.cloud.permission_notes import without
from tests.cloud.users import put, send, stop_tasks, until, waiting
from tests.dsl.table_rows import SCHEMA, SMALL_LEAVES, rows, same_rows
from tests.spark.shell import spark_home

pytestmark = pytest.mark.slow

STORIES = (
    "bulk_import",
    "functions",
    "query",
    "rare_entries",
    "rare_work",
    "splitting",
    "tasks",
    "upkeep",
    "written_once",
)
FOLDERS = [
    *("tests/cloud/feeds", "tests/cloud/ledger", "tests/cloud/outside/test_job_events.py"),
    *("tests/cloud/stories", "tests/cloud/upgrades/test_release.py"),
]
LEFT_OUT = "not killed_in_mid_job and not leave_an_idle and not memory and not directory"
"""They take long and use nothing that others do not, or do not run on what is deployed."""
STORIES_SECONDS_MAX = 1_800
NAME = f"lakebed-{INSTANCE}"


class Unseen(NamedTuple):
    """What stories in the local cloud cannot show, or do not. role, actions, resource: patterns
    that are found in a statement's. now_and_then: whether it is shown when work happens to meet."""

    role: str
    actions: str
    resource: str
    reason: str
    now_and_then: bool = False


EMPTIED = "a log that was emptied meanwhile"
UNSEEN = (
    Unseen("", "logs:", "log-group", "the platform writes logs, here to files"),
    Unseen("", "sqs:GetQueueAttributes", ".fifo", "Lambda asks for them to map a queue"),
    Unseen("ExecutionRole", "ecr:", "", "Fargate fetches images, here they are folders"),
    Unseen("", "s3:AbortMultipartUpload", "", "an upload of parts that fails half-way"),
    Unseen("query-", "s3:ListBucket", "-results-", "S3 answers 403 without it, not 404"),
    Unseen("", "dynamodb:ConditionCheckItem", "-log$", "a process of the release before"),
    Unseen("networking-Machines", "ecs:", "", "the agent of a machine, which EC2 alone starts"),
    Unseen("bulk-import-[FJ]", "dynamodb:GetItem", "-log$", EMPTIED, now_and_then=True),
    Unseen("bulk-import-[SJ]", "s3:ListBucket", "-data-", "S3 answers 403 without it, not 404"),
    Unseen("bulk-import-J", "s3:ListBucket", "-assets-", "EMR Serverless fetches what Spark runs"),
    Unseen("bulk-import-Start", "s3:DeleteObject", "", "a run that the platform refuses"),
    Unseen("feeds-Ta", "dynamodb:GetItem", "-log$", EMPTIED, now_and_then=True),
    Unseen("batching-H", "dynamodb:GetItem", "-log$", EMPTIED, now_and_then=True),
    Unseen("batching-H", "dynamodb:GetItem", "-tracker$", "a bulk import that was rejected"),
    Unseen("events-Pub", "dynamodb:ListStreams", "", "Lambda lists streams to map one"),
    Unseen("events-Pub", "dynamodb:DescribeStream", "", "Lambda looks at a stream to map it"),
    Unseen("query-H", "dynamodb:Query", "-tracker$", "a budget that refuses queries"),
    Unseen("bulk-import-J", "dynamodb:Query", "-tracker$", "a budget that stops imports"),
    Unseen("committer-", "dynamodb:Query", "registry", "an entry that not all lakes allow"),
)

DROPPED = (
    ("query-Answer", "s3:GetObject", "-data-"),
    ("query-Answer", "dynamodb:Query", "registry"),
    ("splitting-SplittingTrigger", "sqs:SendMessage", "splitting"),
    ("splitting-SplittingHandle", "dynamodb:PutItem", "-log"),
)


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each statement was good for, when all stories ran in one instance. Needs Spark."""
    spark_home("4")
    file = tmp_path_factory.mktemp("notes") / "notes.json"
    stories = [f"tests/cloud/test_{name}.py" for name in STORIES] + FOLDERS
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", *stories, "-k", LEFT_OUT]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, NOTES_VARIABLE: str(file), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=STORIES_SECONDS_MAX,
    )
    assert done.returncode == 0, done.stdout[-5_000:]
    found: list[dict[str, Any]] = json.loads(file.read_text())
    return found


def unseen(note: dict[str, Any], action: str) -> list[Unseen]:
    """Return the reasons for which an action of a statement may be unused."""
    named = note["resource"]
    places = [named] if isinstance(named, str) else named
    return [
        reason
        for reason in UNSEEN
        if re.search(reason.role, note["role"])
        and action.startswith(reason.actions)
        and any(re.search(reason.resource, place) for place in places)
    ]


@pytest.mark.timeout(STORIES_SECONDS_MAX)
def test_what_roles_may_do_is_needed_by_some_story(notes: list[dict[str, Any]]) -> None:
    for note in notes:
        role = note["role"].removeprefix(f"{NAME}-")
        first = " ".join(note["needed"]) if note["needed"] else "-"
        print(f"{role} | {note['statement']} | {first}")  # noqa: T201 - for people: pytest -s
    assert len({note["role"] for note in notes}) >= 20
    idle = {
        (note["role"], note["statement"], action)
        for note in notes
        for action in note["actions"]
        if action not in note["used"] and not unseen(note, action)
    }
    assert not idle, f"granted, and used by no story: {sorted(idle)}"
    spare = [(n["role"], n["statement"]) for n in notes if n["used"] and not n["needed"]]
    assert not spare, f"nothing is denied without them: {spare}"
    reasons = {
        reason
        for note in notes
        for action in note["actions"]
        if action not in note["used"]
        for reason in unseen(note, action)
    }
    used = {one for one in UNSEEN if one not in reasons and not one.now_and_then}
    assert not used, f"a reason for what some story uses: {used}"


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("role", "action", "resource"), DROPPED)
def test_a_story_fails_without_a_statement(
    instance: RunningInstance, role: str, action: str, resource: str
) -> None:
    with instance.lake() as lake:
        lake.create_table("dropped", SCHEMA, settings=SMALL_LEAVES).ingest(rows(300))
    with without(instance.cloud, f"{NAME}-{role}", action, resource):
        assert not is_split_and_answered(instance)
    instance.cloud.advance(900)
    instance.cloud.failures.clear()
    assert is_split_and_answered(instance)


@pytest.mark.timeout(600)
def test_a_message_waits_while_its_task_lacks_a_permission(instance: RunningInstance) -> None:
    """What lacks is told where its sender looks, and the message is not refused."""
    cloud, tasks = instance.cloud, f"{NAME}-ingest-tasks"
    with instance.lake() as lake:
        table = lake.create_table("denied", SCHEMA)
        message = {"id": "j", "table": "denied", "files": [put(instance, "d.parquet", rows(50))]}
        with without(cloud, f"{NAME}-ingest-TasksRole", "s3:PutObject", "/files/"):
            send(instance, "ingest", json.dumps(message), message_group="one")
            cloud.fire(tasks)
            until(instance, "it has failed", lambda: table.jobs(events=["failed"]))
            stop_tasks(instance)
        (report,) = table.jobs()
        assert report.reason.startswith("denied: ")
        assert f"bucket={NAME}-data-" in report.reason
        assert "permission=s3:PutObject" in report.reason
        assert (waiting(instance, "ingest"), waiting(instance, "ingest-dead")) == (1, 0)
        cloud.advance(120, schedules=False)
        cloud.fire(tasks)
        until(instance, "it is done", lambda: not waiting(instance, "ingest"))
        stop_tasks(instance)
        assert same_rows(table, rows(50))


@pytest.mark.timeout(600)
def test_spark_has_its_own_role_and_says_what_that_lacks(
    instance: RunningInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(spark_home("4"))
    cloud, name = instance.cloud, f"{NAME}-bulk-import"
    with instance.lake() as lake:
        table = lake.create_table("sparkless", SCHEMA)
        message = {"id": "s", "table": table.name, "files": [put(instance, "s.parquet", rows(50))]}
        with without(cloud, f"{name}-JobRole", "s3:PutObject", "/runs/"):
            send(instance, "bulk-import", json.dumps(message), message_group="one")
            cloud.settle()
            assert cloud.finish_tasks(seconds_max=300)
        cloud.fire(name)
        assert [report.event for report in table.jobs(job="s")] == ["accepted", "started", "failed"]
        (report,) = table.jobs()
        assert report.reason.startswith("denied: ")
        assert f"bucket={NAME}-data-" in report.reason
        assert "permission=s3:PutObject" in report.reason
        assert not list(table.query())


def is_split_and_answered(instance: RunningInstance) -> bool:
    instance.cloud.fire(f"{NAME}-splitting")
    asked = {"table": "dropped", "ranges": [{}]}
    outcome = instance.cloud.invoke(f"{NAME}-query-answer", asked)
    answered = outcome.error is None and outcome.value.get("rows") == 300
    return answered and not instance.cloud.failures
