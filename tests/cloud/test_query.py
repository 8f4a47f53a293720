"""Queries as users send them: to the function, which answers, and to the queue."""

import json
import random
from typing import Any

import pyarrow as pa
import pytest

from lakebed.config.job_queues import QUERY_HELD_SECONDS
from lakebed.ports.job_tracker import JobReport
from tests.cloud.instance import INSTANCE, RunningInstance
from tests.cloud.users import fetched, send, waiting
from tests.dsl.table_rows import SCHEMA, rows

pytestmark = pytest.mark.timeout(600)
"""The first test also waits for the synthesis, and for the packages of bundles."""

NAME = f"lakebed-{INSTANCE}"
FUNCTION = f"{NAME}-query-answer"


def invoked(instance: RunningInstance, **asked: object) -> dict[str, Any]:
    outcome = instance.cloud.invoke(FUNCTION, asked)
    assert outcome.error is None, outcome.error
    found: dict[str, Any] = outcome.value
    return found


def reports(instance: RunningInstance, table: str | None, job: str) -> list[JobReport]:
    asked: Any = {"job": job, "events": (), "since_seconds": None, "limit": 10}
    with instance.lake() as lake:
        return lake.nameless_jobs(**asked) if table is None else lake.table(table).jobs(**asked)


def test_queries_are_answered_written_down_or_refused(instance: RunningInstance) -> None:
    with instance.lake() as lake:
        lake.create_table("trips", SCHEMA).ingest(rows(300))
    wanted = rows(300).sort_by("id")

    found = invoked(instance, table="trips", ranges=[{}], where="at = 0", columns=["id"])
    told = [json.loads(line)["id"] for line in found["data"].splitlines()]
    assert told == wanted["id"].to_pylist()
    refused = invoked(instance, table="tripz", ranges=[{}])
    assert "did you mean 'trips'" in refused["reason"]

    send(
        instance,
        "query",
        json.dumps({"id": "all", "table": "trips", "ranges": [{}]}),
        message_group="a",
    )
    bad = {"id": "bad", "table": "trips", "ranges": [{}], "limit": -1}
    send(instance, "query", json.dumps(bad), message_group="a")
    send(instance, "query", "{", message_group="b")
    instance.cloud.settle()
    assert not instance.cloud.failures
    (bucket,) = [
        found["Name"]
        for found in instance.cloud.client("s3").list_buckets()["Buckets"]
        if found["Name"].startswith(f"{NAME}-results-")
    ]
    answered = invoked(instance, id="all", table="trips", ranges=[{}])
    assert answered["manifest"].startswith(f"s3://{bucket}/")
    kept = fetched(instance, answered["manifest"])
    assert kept.select(wanted.column_names).cast(wanted.schema).equals(wanted)
    assert [r.event for r in reports(instance, "trips", "all")] == ["finished", "finished"]
    (rejected,) = reports(instance, None, "bad")
    assert rejected.event == "rejected"
    assert "limit" in rejected.reason
    assert waiting(instance, "query") == 0
    assert waiting(instance, "query-dead") == 2
    with instance.lake() as lake:
        (counted,) = lake.dead_letters(queues=["query"])
        assert (counted.dead, [of.table for of in counted.tables]) == (2, ["", "trips"])
        (letter,) = lake.show_dead_letters(queues=["query"], table="trips")
        assert letter.reason == rejected.reason
        done = lake.redrive(queues=["query"])
    assert done.sent == 0
    assert any(told.startswith("query: invalid") for told in done.refused)
    assert any("it can never work" in told and "limit" in told for told in done.refused)
    instance.cloud.settle()
    assert waiting(instance, "query-dead") == 2
    instance.cloud.advance(360, schedules=False)
    assert instance.cloud.alarms()[f"{NAME}-query-dead-letters"] == "ALARM"


def wide(count: int) -> pa.Table:
    """Return rows of a kilobyte each that do not shrink."""
    rng = random.Random(7)
    texts = [f"{rng.getrandbits(4_096):01024x}" for _ in range(count)]
    return pa.table({"id": [f"k{n:06}" for n in range(count)], "at": [0] * count, "text": texts})


@pytest.mark.slow
def test_a_large_result_is_written_down_by_whichever_function(instance: RunningInstance) -> None:
    """Each of them puts some 36 MB, which go in parts and are moved to their place."""
    ingested = wide(70_000)
    with instance.lake() as lake:
        lake.create_table("wide", SCHEMA).ingest(ingested)
    asked = {"table": "wide", "ranges": [{}]}
    found = invoked(instance, id="now", **asked)
    assert (found["rows"], "data" in found) == (70_000, False)
    kills = iter([True])
    handle = f"{NAME}-query-handle"  # schedules go on, and call others
    instance.cloud.faults.dies_before_delete = lambda f, _: f == handle and next(kills, False)
    send(instance, "query", json.dumps({"id": "later", **asked}), message_group="a")
    instance.cloud.settle()
    assert waiting(instance, "query") == 1
    instance.cloud.advance(QUERY_HELD_SECONDS, schedules=False)
    assert waiting(instance, "query") == 0
    later = invoked(instance, id="later", **asked)
    for answer in (found, later):
        kept = fetched(instance, answer["manifest"])
        assert kept.select(ingested.column_names).cast(ingested.schema).equals(ingested)
