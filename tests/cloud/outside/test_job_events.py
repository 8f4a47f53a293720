"""Ends of users' jobs are events of EventBridge: at least once, under one id, and nothing else."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from localcloud.services.emulator import ACCOUNT, REGION
from tests.cloud.instance import INSTANCE, RunningInstance
from tests.cloud.outside.listeners import heard, listening
from tests.cloud.permission_notes import without
from tests.cloud.users import send
from tests.dsl.table_rows import SCHEMA, rows

RULE = f"arn:aws:events:{REGION}:{ACCOUNT}:rule/ends"
FUNCTION = f"lakebed-{INSTANCE}-job-events-publish"
ROLE = f"lakebed-{INSTANCE}-job-events-Publish"
AGAIN_SECONDS = 61


@pytest.fixture
def url(instance: RunningInstance) -> Iterator[str]:
    """The queue of somebody whose rule wants all events of jobs."""
    queue = listening(instance, "ends", service="events", source=RULE)
    events = instance.cloud.client("events")
    events.put_rule(Name="ends", EventPattern=json.dumps({"source": ["lakebed.job"]}))
    target = {"Id": "ends", "Arn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:ends"}
    events.put_targets(Rule="ends", Targets=[target])
    instance.cloud.settle()
    heard(instance, queue)
    yield queue
    events.remove_targets(Rule="ends", Ids=["ends"])
    events.delete_rule(Name="ends")


def ends(instance: RunningInstance, url: str) -> list[dict[str, Any]]:
    instance.cloud.settle()
    found = heard(instance, url)
    assert {event["detail-type"] for event in found} <= {"Job ended"}
    return [event["detail"] for event in found]


@pytest.mark.timeout(300)
def test_a_committed_and_a_rejected_job_are_told(instance: RunningInstance, url: str) -> None:
    with instance.lake() as lake:
        table = lake.create_table("told", SCHEMA)
        table.ingest(rows(30), job="in")
        table.ingest(rows(20), job="queued", queued=True)
        asked = {"id": "out", "table": "told", "ranges": [{}], "columns": ["nothing"]}
        send(instance, "query", json.dumps(asked), message_group="one")
        asked = {"id": "told-lost", "table": "nowhere", "ranges": [{}]}
        send(instance, "query", json.dumps(asked), message_group="two")
        found = {detail["job"]: detail for detail in ends(instance, url)}
        assert set(found) == {"in", "queued", "out", "told-lost"}
        assert {detail["instance"] for detail in found.values()} == {INSTANCE}
        for job, count in (("in", 30), ("queued", 20)):
            told = found[job]
            assert (told["event"], told["kind"]) == ("committed", "ingest")
            assert (told["table"], told["rows"], told["reason"]) == ("told", count, "")
            reports = [one for one in table.jobs(job=job) if one.event == "committed"]
            assert (told["number"], told["at"]) in {(one.number, one.at) for one in reports}
        told = found["out"]
        assert (told["event"], told["kind"], told["table"]) == ("rejected", "query", "told")
        assert "nothing" in told["reason"]
        assert found["told-lost"]["table"] is None
        assert found["told-lost"]["reason"].startswith("table-missing")


@pytest.mark.timeout(300)
def test_an_end_is_told_at_least_once_and_always_under_one_id(
    instance: RunningInstance, url: str
) -> None:
    cloud = instance.cloud
    with instance.lake() as lake:
        table = lake.create_table("twice", SCHEMA)
        with without(cloud, ROLE, "events:PutEvents", "event-bus"):
            table.ingest(rows(10), job="late")
            assert not ends(instance, url)
            assert FUNCTION in {failure.function for failure in cloud.failures}
        cloud.failures.clear()
        cloud.advance(AGAIN_SECONDS, schedules=False)
        assert [detail["job"] for detail in ends(instance, url)] == ["late"]
        cloud.faults.delivers_twice = lambda function, _: function == FUNCTION
        table.ingest(rows(10, seed=1), job="doubled")
        told = ends(instance, url)
        assert [detail["job"] for detail in told] == ["doubled", "doubled"]
        assert len({detail["id"] for detail in told}) == 1
        kills = iter([True])
        cloud.faults.delivers_twice = lambda *_: False
        cloud.faults.dies_before_delete = lambda function, _: (
            function == FUNCTION and next(kills, False)
        )
        table.ingest(rows(10, seed=2), job="killed")
        before = ends(instance, url)
        cloud.advance(AGAIN_SECONDS, schedules=False)
        after = ends(instance, url)
        assert [detail["id"] for detail in before] == [detail["id"] for detail in after]
        assert [detail["job"] for detail in after] == ["killed"]
