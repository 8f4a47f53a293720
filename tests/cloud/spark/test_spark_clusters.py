"""Bulk imports on clusters of EMR: one for each, by kinds of machines, and one that stays."""

import json
import os
import signal
from collections.abc import Iterator

import pytest

from lakebed.backends.system.clock import SystemClock
from localcloud.cloud import LocalCloud
from localcloud.programs.emulator_emr import cluster_id
from localcloud.templates.synthesis import synthesize
from tests.cloud import users
from tests.cloud.conftest import ROOT
from tests.cloud.instance import INSTANCE, SOURCES, RunningInstance
from tests.cloud.users import put, until, waiting
from tests.dsl.table_rows import SCHEMA, SMALL_LEAVES, rows, same_rows
from tests.spark.shell import spark_home

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

NAME = f"lakebed-{INSTANCE}-bulk-import"
SECONDS_MAX = 300
TYPES = ["m7g.2xlarge", "m6g.2xlarge"]
SHARED = cluster_id("shared")


@pytest.fixture(scope="module")
def with_clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningInstance]:
    """An instance of its own: others have no clusters."""
    folder = tmp_path_factory.mktemp("clusters")
    settings = {"instance": INSTANCE, "architecture": "machine", "sources": SOURCES}
    settings |= {"spark_clusters": "true", "shared_cluster": SHARED}
    settings |= {"spark_cluster_types": ",".join(TYPES), "spark_cluster_units_max": "3"}
    synthesize(ROOT, folder / "assembly", settings)
    with LocalCloud(folder / "assembly", folder / "cloud", clock=SystemClock()) as cloud:
        yield RunningInstance(cloud, folder / "cache")


@pytest.fixture
def clusters(
    with_clusters: RunningInstance, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RunningInstance]:
    monkeypatch.syspath_prepend(spark_home("4"))
    with with_clusters.led_here():
        yield with_clusters
    with_clusters.cloud.spark_clusters.no_capacity.clear()
    with_clusters.forget()


def send(instance: RunningInstance, **message: object) -> None:
    users.send(instance, "bulk-import", json.dumps(message), message_group="one")
    instance.cloud.settle()


def finish(instance: RunningInstance) -> None:
    assert instance.cloud.finish_tasks(seconds_max=SECONDS_MAX)
    instance.cloud.fire(NAME)


def told(instance: RunningInstance, table: str, job: str) -> list[str]:
    with instance.lake() as lake:
        return [report.event for report in lake.table(table).jobs(job=job)]


def reason(instance: RunningInstance, table: str, job: str) -> str:
    with instance.lake() as lake:
        return list(lake.table(table).jobs(job=job))[-1].reason


def test_a_cluster_is_made_for_an_import_and_ends_with_it(clusters: RunningInstance) -> None:
    with clusters.lake() as lake:
        table = lake.create_table("alone", SCHEMA, settings=SMALL_LEAVES)
        file = put(clusters, "alone.parquet", rows(300))
        message = {"id": "j", "table": "alone", "files": [file], "platform": "cluster"}
        send(clusters, **message, spot=True, units_max=2)
        finish(clusters)
        assert not clusters.cloud.failures
        why = reason(clusters, "alone", "j")
        assert told(clusters, "alone", "j") == ["accepted", "started", "committed"], why
        assert same_rows(table, rows(300))
    found = clusters.cloud.client("emr").list_clusters()["Clusters"]
    assert [one["Status"]["State"] for one in found] == ["TERMINATED"]


def test_machines_that_are_lacking_are_asked_for_again(clusters: RunningInstance) -> None:
    clusters.cloud.spark_clusters.no_capacity.add(TYPES[0])
    with clusters.lake() as lake:
        table = lake.create_table("lacking", SCHEMA)
        file = put(clusters, "lacking.parquet", rows(100))
        send(clusters, id="j", table="lacking", files=[file], platform="cluster")
        finish(clusters)
        finish(clusters)
        assert told(clusters, "lacking", "j") == ["accepted", "started", "committed"]
        assert same_rows(table, rows(100))


def test_an_import_that_never_gets_machines_fails_with_the_reason_and_the_logs(
    clusters: RunningInstance,
) -> None:
    clusters.cloud.spark_clusters.no_capacity.update(TYPES)
    with clusters.lake() as lake:
        lake.create_table("never", SCHEMA)
    file = put(clusters, "never.parquet", rows(10))
    send(clusters, id="j", table="never", files=[file], platform="cluster")
    for _ in range(7):
        finish(clusters)
        clusters.cloud.advance(601, schedules=False)
    assert told(clusters, "never", "j") == ["accepted", "failed"]
    assert "INSTANCE_FLEET_TIMEOUT" in reason(clusters, "never", "j")
    assert "/spark-logs/j-" in reason(clusters, "never", "j")


def test_a_cluster_that_is_killed_in_the_middle_is_told_with_its_logs(
    clusters: RunningInstance,
) -> None:
    with clusters.lake() as lake:
        table = lake.create_table("killed", SCHEMA)
        file = put(clusters, "killed.parquet", rows(300))
        send(clusters, id="j", table="killed", files=[file], platform="cluster")
        until(clusters, "it is started", lambda: "started" in told(clusters, "killed", "j"))
        (step,) = clusters.cloud.spark_clusters.running.values()
        os.killpg(step.process.pid, signal.SIGKILL)
        finish(clusters)
        assert told(clusters, "killed", "j") == ["accepted", "started", "failed"]
        assert "exit code -9" in reason(clusters, "killed", "j")
        assert "/spark-logs/j-" in reason(clusters, "killed", "j")
        assert table.query().read_all().num_rows == 0


def test_a_shared_cluster_takes_steps_one_after_the_other(clusters: RunningInstance) -> None:
    emr = clusters.cloud.client("emr")
    fleet = {"InstanceFleetType": "MASTER", "InstanceTypeConfigs": [{"InstanceType": TYPES[0]}]}
    started = emr.run_job_flow(
        Name="shared",
        ServiceRole="service",
        JobFlowRole=f"lakebed-{INSTANCE}-spark-machines",
        Instances={"InstanceFleets": [fleet], "KeepJobFlowAliveWhenNoSteps": True},
    )
    assert started["JobFlowId"] == SHARED
    with clusters.lake() as lake:
        tables = [lake.create_table(name, SCHEMA) for name in ("first", "second")]
        for table in tables:
            file = put(clusters, f"{table.name}.parquet", rows(50))
            send(clusters, id="j", table=table.name, files=[file], platform="shared")
        finish(clusters)
        for table in tables:
            assert told(clusters, table.name, "j") == ["accepted", "started", "committed"]
            assert same_rows(table, rows(50))
    (cluster,) = [c for c in emr.list_clusters()["Clusters"] if c["Id"] == SHARED]
    assert cluster["Status"]["State"] == "WAITING"


def test_what_a_platform_or_the_instance_refuses_is_a_dead_letter(
    clusters: RunningInstance,
) -> None:
    with clusters.lake() as lake:
        lake.create_table("refused", SCHEMA)
    file = put(clusters, "refused.parquet", rows(1))
    asked = {"table": "refused", "files": [file], "platform": "cluster"}
    send(clusters, id="many", **asked, units_max=4)
    send(clusters, id="odd", **asked, instance_types=["xx.unknown"])
    assert waiting(clusters, "bulk-import-dead") == 2
    assert "units_max=4" in reason(clusters, "refused", "many")
    assert "'xx.unknown' is not supported" in reason(clusters, "refused", "odd")
