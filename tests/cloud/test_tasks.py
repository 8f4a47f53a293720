"""Users' messages and compaction jobs, done by tasks that are started while there is something to
do."""

import json
from pathlib import Path

import pytest

from lakebed.backends.system.clock import SystemClock
from lakebed.table import Table
from localcloud.cloud import LocalCloud
from tests.cloud import users
from tests.cloud.instance import INSTANCE, SOURCES, RunningInstance
from tests.cloud.users import put, until, waiting
from tests.dsl.table_rows import SCHEMA, rows, same_rows

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("no_tasks_left")]
"""The first test also waits for the synthesis, and for the packages of bundles."""

INGEST, COMPACTION = f"lakebed-{INSTANCE}-ingest", f"lakebed-{INSTANCE}-compaction"
SECONDS_MAX = 120
HEAVY_FILES = 10
"""Of a job that takes many times as long as to see that it began."""


def send(instance: RunningInstance, **message: object) -> None:
    """Send a message for ingest, in a group of its own."""
    users.send(instance, "ingest", json.dumps(message), message_group=str(message["id"]))


def test_a_schedule_that_fires_twice_starts_tasks_once(instance: RunningInstance) -> None:
    cloud = instance.cloud
    with instance.lake() as lake:
        lake.create_table("once", SCHEMA)
        for id_ in ("one", "other"):
            send(instance, id=id_, table="once", files=[f"{SOURCES}/nowhere"])
        for _ in range(2):
            tick = {"time": "2026-11-22T10:00:00Z"}
            assert cloud.invoke(f"{INGEST}-tasks-start", tick).error is None
        cloud.settle()
        assert len(cloud.tasks.running) == 2
        cluster, arns = f"lakebed-{INSTANCE}-tasks", [task.arn for task in cloud.tasks.running]
        asked = {"cluster": cluster, "tasks": arns, "include": ["TAGS"]}
        for task in cloud.client("ecs").describe_tasks(**asked)["tasks"]:
            tags = {tag["key"]: tag["value"] for tag in task["tags"]}
            assert tags == {"lakebed:instance": INSTANCE, "team": "data"}
            assert task["capacityProviderName"] == f"lakebed-{INSTANCE}-machines"


def held(table: Table) -> int:
    """Return how many files a table has."""
    with table._opened.head.reading() as state:
        return len(list(state.all_references()))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ingest", "compaction"])
def test_a_task_that_is_killed_in_mid_job_loses_nothing_and_doubles_nothing(
    instance: RunningInstance, kind: str
) -> None:
    cloud, queue = instance.cloud, f"lakebed-{INSTANCE}-{kind}"
    many = [rows(100_000, seed=seed) for seed in range(HEAVY_FILES)]
    with instance.lake() as lake:
        settings = {"job_files_max": HEAVY_FILES}
        table = lake.create_table(f"killed-{kind}", SCHEMA, settings=settings)
        if kind == "ingest":
            files = [put(instance, f"killed/{n}.parquet", part) for n, part in enumerate(many)]
            send(instance, id="heavy", table=table.name, files=files)
        else:
            for part in many:
                table.ingest(part)
            cloud.fire(f"{COMPACTION}-creation")
        entries = table.log().entries
        cloud.fire(f"{queue}-tasks")
        (task,) = cloud.tasks.running
        end = cloud.clock.monotonic() + SECONDS_MAX
        while not any(report.event == "started" for report in table.jobs()):
            said = task.log.read_text()[-2_000:]
            assert cloud.clock.monotonic() < end, f"the job never began\n{cloud.queues()}\n{said}"
            cloud.clock.sleep(0.01)
        task.process.kill()
        assert cloud.finish_tasks(seconds_max=30)
        assert table.log().entries == entries, "it was not in mid-job any more"
        assert cloud.queues()[f"{queue}.fifo"]["hidden"] == 1
        cloud.advance(180, schedules=False)
        cloud.fire(f"{queue}-tasks")
        until(instance, "the job is done", lambda: not waiting(instance, kind))
        assert same_rows(table, *many)
        assert kind == "ingest" or held(table) == 1
        assert waiting(instance, f"{kind}-dead") == 0


@pytest.mark.slow
def test_tasks_that_cannot_be_started_set_off_their_alarm(assembly: Path, tmp_path: Path) -> None:
    """In a cloud of its own: what an alarm counted is not forgotten."""
    with LocalCloud(assembly, tmp_path / "cloud", clock=SystemClock()) as cloud:
        instance = RunningInstance(cloud, tmp_path / "cache")
        with instance.led_here():
            refuse_and_allow(instance)


def refuse_and_allow(instance: RunningInstance) -> None:
    cloud = instance.cloud
    iam, statements = cloud.client("iam"), "Own"
    (name,) = [
        role["RoleName"]
        for role in iam.list_roles()["Roles"]
        if role["RoleName"].startswith(f"{INGEST}-TasksStart")
    ]
    before = iam.get_role_policy(RoleName=name, PolicyName=statements)["PolicyDocument"]
    less = [s for s in before["Statement"] if s["Action"] != "iam:PassRole"]
    assert len(less) < len(before["Statement"])
    with instance.lake() as lake:
        lake.create_table("late", SCHEMA)
        send(instance, id="late", table="late", files=[f"{SOURCES}/nowhere"])
        iam.put_role_policy(
            RoleName=name,
            PolicyName=statements,
            PolicyDocument=json.dumps(before | {"Statement": less}),
        )
        try:
            for _ in range(3):
                cloud.fire(f"{INGEST}-tasks")
                cloud.advance(60, schedules=False)
        finally:
            iam.put_role_policy(
                RoleName=name, PolicyName=statements, PolicyDocument=json.dumps(before)
            )
        assert not cloud.tasks.running
        assert waiting(instance, "ingest") == 1
        assert cloud.alarms()[f"lakebed-{INSTANCE}-tasks-not-started"] == "ALARM"
        cloud.fire(f"{INGEST}-tasks")
        assert len(cloud.tasks.running) == 1
