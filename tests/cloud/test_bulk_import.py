"""Bulk imports that users send: Spark is started for them, and their senders hear how they end."""

import json
import os
import random
import signal

import pytest

from lakebed.bulk_import.requests import name_of
from lakebed.config.job_queues import BULK_IMPORT_JOBS
from lakebed.model.names import JobId, Micros
from lakebed.ports.job_tracker import JobReport
from tests.cloud import users
from tests.cloud.instance import INSTANCE, SOURCES, RunningInstance
from tests.cloud.operators import keys_in_bucket, spoiled
from tests.cloud.users import put, until, waiting
from tests.dsl.table_rows import SCHEMA, rows, same_rows
from tests.spark.shell import spark_home

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

NAME = f"lakebed-{INSTANCE}-bulk-import"
SECONDS_MAX = 300


@pytest.fixture(autouse=True)
def spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark is where the local cloud looks for it."""
    monkeypatch.syspath_prepend(spark_home("4"))


def send(instance: RunningInstance, *, sent: int | None = None, **message: object) -> None:
    """Send a message and let it be taken; what was started for it goes on. sent: of one that was
    sent earlier, in microseconds."""
    users.send(instance, "bulk-import", json.dumps(message), message_group="one", sent=sent)
    instance.cloud.settle()


def finish(instance: RunningInstance) -> None:
    """Let runs end, and be looked after."""
    assert instance.cloud.finish_tasks(seconds_max=SECONDS_MAX)
    instance.cloud.fire(NAME)


def reports(instance: RunningInstance, table: str, job: str) -> list[JobReport]:
    with instance.lake() as lake:
        return list(lake.table(table).jobs(job=job))


def told(instance: RunningInstance, table: str, job: str) -> list[str]:
    return [report.event for report in reports(instance, table, job)]


def tags_of_last_run(instance: RunningInstance) -> dict[str, str]:
    emr = instance.cloud.client("emr-serverless")
    (application,) = instance.cloud.deployment.running.spark
    *_, run = emr.list_job_runs(applicationId=application)["jobRuns"]
    told = emr.get_job_run(applicationId=application, jobRunId=run["id"])["jobRun"]
    found: dict[str, str] = told["tags"]
    return found


def test_files_of_a_message_become_rows_once(instance: RunningInstance) -> None:
    with instance.lake() as lake:
        table = lake.create_table("bulk", SCHEMA, split_points=["k03", "k06"])
        given = [rows(300, seed=seed) for seed in range(3)]
        for number, some in enumerate(given):
            put(instance, f"bulk/{number}.parquet", some)
        message = {"id": "all", "table": "bulk", "files": [f"{SOURCES}/bulk/"]}
        send(instance, **message, spark_conf={"spark.executor.cores": "1"})
        finish(instance)
        assert not instance.cloud.failures
        assert same_rows(table, *given)
        assert told(instance, "bulk", "all") == ["accepted", "started", "committed"]
        assert tags_of_last_run(instance) == {"lakebed:instance": INSTANCE, "team": "data"}
        send(instance, **message)  # under the same id, as another text
        assert not instance.cloud.spark.running
        assert same_rows(table, *given)
        assert told(instance, "bulk", "all")[3:] == []
        assert waiting(instance, "bulk-import-dead") == 0


def test_a_batch_of_submitted_files_becomes_rows_by_spark(instance: RunningInstance) -> None:
    with instance.lake() as lake:
        settings = {"batch_target": "bulk-import", "batch_seconds_max": 0}
        table = lake.create_table("batched", SCHEMA, settings=settings)
        given = [rows(300, seed=seed) for seed in range(3)]
        for number, some in enumerate(given):
            put(instance, f"batched/{number}.parquet", some)
        assert table.submit([f"{SOURCES}/batched/"]).added == 3
        instance.cloud.fire(f"lakebed-{INSTANCE}-batching")
        instance.cloud.settle()
        finish(instance)
        instance.cloud.fire(f"lakebed-{INSTANCE}-batching")
        assert not instance.cloud.failures
        assert same_rows(table, *given)
        (batch,) = table.batches()
        assert (batch.state, batch.files, batch.target) == ("committed", 3, "bulk-import")
        assert table.submit([f"{SOURCES}/batched/"]).doubles == 3


def test_what_can_never_work_is_refused_where_its_sender_looks(instance: RunningInstance) -> None:
    with instance.lake() as lake:
        table = lake.create_table("refused", SCHEMA)
        send(instance, id="elsewhere", table="refused", files=["s3://other/file.parquet"])
        conf = {"spark.jars": "s3://x"}
        send(instance, id="conf", table="refused", files=["x"], spark_conf=conf)
        assert waiting(instance, "bulk-import-dead") == 2
        for job, says in {"elsewhere": "s3://landing/files/", "conf": "spark_conf"}.items():
            (report,) = reports(instance, "refused", job)
            assert report.event == "rejected"
            assert says in report.reason
        put(instance, "somebody.parquet", rows(1))
        send(instance, id="missing", table="refused", files=[f"{SOURCES}/nobody.parquet"])
        finish(instance)
        assert told(instance, "refused", "missing") == ["accepted", "started", "rejected"]
        assert f"{SOURCES}/nobody.parquet" in reports(instance, "refused", "missing")[-1].reason
        assert table.query().read_all().num_rows == 0


def started_by_an_earlier_deployment(instance: RunningInstance, name: str) -> None:
    """Start a run under the name of a message's, with a program that is there no more."""
    roles = instance.cloud.client("iam").list_roles(MaxItems=1_000)["Roles"]
    (role,) = [role["Arn"] for role in roles if role["RoleName"].startswith(f"{NAME}-JobRole")]
    (application,) = instance.cloud.deployment.running.spark
    program = {
        "entryPoint": "s3://assets/earlier.py",
        "sparkSubmitParameters": "--conf spark.app.name=earlier",
    }
    instance.cloud.client("emr-serverless").start_job_run(
        applicationId=application,
        clientToken=name,
        name=name,
        executionRoleArn=role,
        jobDriver={"sparkSubmit": program},
    )


def test_a_start_that_fails_is_killed_and_meets_another_run_is_done_once(
    instance: RunningInstance,
) -> None:
    cloud, sent = instance.cloud, 1_795_341_600_000_000
    message = {"id": "late", "table": "late", "files": [f"{SOURCES}/late.parquet"]}
    kills = iter([True])
    with instance.lake() as lake:
        table = lake.create_table("late", SCHEMA)
        with spoiled(instance, table):
            send(instance, **message, sent=sent)
            assert waiting(instance, "bulk-import") == 1
        name = name_of(JobId("late"), json.dumps(message).encode(), Micros(sent))
        started_by_an_earlier_deployment(instance, name)
        cloud.faults.dies_before_delete = lambda f, _: f == f"{NAME}-start" and next(kills, False)
        cloud.advance(120, schedules=False)
        assert told(instance, "late", "late") == ["accepted"]
        assert waiting(instance, "bulk-import") == 1
        cloud.advance(BULK_IMPORT_JOBS.hidden_seconds, schedules=False)
        assert waiting(instance, "bulk-import") == 0
        finish(instance)
        assert told(instance, "late", "late") == ["accepted", "failed"]
        assert "no asset" in reports(instance, "late", "late")[-1].reason


def test_a_request_that_is_damaged_is_told_once_and_put_aside(instance: RunningInstance) -> None:
    s3 = instance.cloud.client("s3")
    names = [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]
    (bucket,) = [name for name in names if name.startswith(f"lakebed-{INSTANCE}-data-")]
    s3.put_object(Bucket=bucket, Key="bulk-import/objects/requests/damaged.json", Body=b"{")
    for _ in range(2):
        instance.cloud.fire(NAME)
        assert not instance.cloud.failures
        found = s3.list_objects_v2(Bucket=bucket, Prefix="bulk-import/objects/")["Contents"]
        assert [one["Key"] for one in found] == ["bulk-import/objects/unreadable/damaged.json"]
        with instance.lake() as lake:
            jobs = lake.nameless_jobs(job="damaged")
        assert [report.event for report in jobs] == ["failed"]
        assert "corrupt: " in jobs[0].reason
    assert instance.cloud.alarms()[f"lakebed-{INSTANCE}-corruption-found"] == "ALARM"


def test_rows_for_thousands_of_leaves_are_committed(instance: RunningInstance) -> None:
    """The entry of their commit is too large for the log's own items."""
    points = [f"k{number:06}{'-' * 200}" for number in range(10, 80_000, 10)]
    with instance.lake() as lake:
        table = lake.create_table("broad-import", SCHEMA, split_points=points)
        bodies = keys_in_bucket(instance, f"logs/{table._opened.id}/")
        file = put(instance, "broad.parquet", rows(30_000))
        send(instance, id="broad", table="broad-import", files=[file])
        finish(instance)
        assert told(instance, "broad-import", "broad") == ["accepted", "started", "committed"]
        assert len(keys_in_bucket(instance, f"logs/{table._opened.id}/")) == len(bodies) + 1
        assert same_rows(table, rows(30_000))


def test_a_driver_that_is_killed_is_told_and_its_message_can_be_sent_again(
    instance: RunningInstance,
) -> None:
    with instance.lake() as lake:
        points = sorted(f"{random.Random(n).getrandbits(512):0128x}" for n in range(900))
        table = lake.create_table("killed", SCHEMA, split_points=points)  # a large first entry
        file = put(instance, "killed.parquet", rows(300))
        message = {"id": "j", "table": "killed", "files": [file]}
        send(instance, **message)
        until(instance, "it is started", lambda: "started" in told(instance, "killed", "j"))
        (run,) = instance.cloud.spark.running.values()
        os.killpg(run.process.pid, signal.SIGKILL)
        finish(instance)
        assert told(instance, "killed", "j") == ["accepted", "started", "failed"]
        assert "exit code -9" in reports(instance, "killed", "j")[-1].reason
        assert table.query().read_all().num_rows == 0
        assert instance.cloud.alarms()[f"lakebed-{INSTANCE}-bulk-imports-failed"] == "ALARM"
        instance.cloud.advance(301, schedules=False)  # the same text, swallowed until then
        send(instance, **message)
        finish(instance)
        assert told(instance, "killed", "j")[3:] == ["accepted", "started", "committed"]
        assert same_rows(table, rows(300))
