"""Functions and tasks of an instance say their release, and the gate is raised when no older one
may live."""

import json

import pytest

from lakebed.backends.aws.releases.processes import DynamoProcessReports
from lakebed.backends.aws.table_registry import DynamoTableRegistry
from lakebed.bootstrap.functions.function_clients import amazon_clients
from lakebed.errors import OlderProcessError, ReleaseSkippedError
from lakebed.model.formats import NEWEST
from lakebed.model.releases import BEFORE, RELEASES, THIS
from lakebed.ports.processes import SILENT_SECONDS, ProcessReport
from tests.cloud.instance import INSTANCE, SOURCES, RunningInstance
from tests.cloud.users import send
from tests.dsl.table_rows import SCHEMA

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.usefixtures("no_tasks_left"),
]

NAME = f"lakebed-{INSTANCE}"
OLDER = f"an older task of {NAME}"


def report_older(instance: RunningInstance, release: str) -> None:
    """Say what a task of an older release would."""
    now = instance.cloud.clock.now()
    DynamoProcessReports(amazon_clients(), f"{NAME}-tracker").report(
        ProcessReport(
            process="older",
            program=OLDER,
            release=release,
            reads={"entry": BEFORE.formats.entry, "state": BEFORE.formats.state},
            started=now,
            at=now,
        )
    )


def test_an_instance_is_finished_when_no_older_process_may_live(instance: RunningInstance) -> None:
    cloud = instance.cloud
    with instance.lake() as lake:
        lake.create_table("upgraded", SCHEMA)
        cloud.fire(f"{NAME}-garbage")
        message = {"id": "one", "table": "upgraded", "files": [f"{SOURCES}/nowhere"]}
        send(instance, "ingest", json.dumps(message), message_group="one")
        cloud.fire(f"{NAME}-ingest-tasks")
        assert cloud.finish_tasks(seconds_max=120)
        assert not cloud.failures
        status = lake.upgrade_status()
        assert status.deployed == THIS.name
        seen = {one.program: one for one in status.processes}
        for function in ("garbage-trigger", "garbage-handle", "ingest-tasks-start"):
            assert f"function {NAME}-{function}" in seen
        assert {(one.release, one.reads["entry"]) for one in seen.values()} == {
            (THIS.name, NEWEST.entry)
        }

        report_older(instance, BEFORE.name)
        with pytest.raises(OlderProcessError) as refused:
            lake.finish_upgrade()
        assert refused.value.facts["process"] == OLDER
        assert "or wait" in (refused.value.hint or "")
        report_older(instance, RELEASES[-3].name)
        with pytest.raises(ReleaseSkippedError):
            lake.plan_upgrade()

        cloud.advance(SILENT_SECONDS + 60, schedules=False)
        assert lake.upgrade_status().processes == [], "nothing worked for an hour"
        cloud.fire(f"{NAME}-garbage")
        assert {one.release for one in lake.upgrade_status().processes} == {THIS.name}
        assert lake.finish_upgrade().is_finished()
        assert DynamoTableRegistry(amazon_clients(), f"{NAME}-registry").formats() == NEWEST
