"""Feeds that trickle: a function of the instance takes what there is each minute, and no task is
started for them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cloud.feeds.test_feeds import MESSAGES_COUNT, Operator, send, trips
from tests.cloud.instance import FEED_QUEUE, INSTANCE, SOURCES, RunningInstance
from tests.cloud.users import put_bytes

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("no_tasks_left")]

TAKE = f"lakebed-{INSTANCE}-feeds-take"
RUNS_MAX = 10
FEW = """
[feed.few]
run = "function"
source = {{ s3 = "{sources}/few/", list_seconds = 1 }}
decoder = {{ format = "json" }}
[connection.few]
feed = "few"
table = "few"
"""
MESSAGES = """
[feed.news]
run = "function"
source = {{ sqs = "{queue}", hidden_seconds = 4 }}
"""


@pytest.fixture
def operator(instance: RunningInstance, tmp_path: Path) -> Iterator[Operator]:
    operator = Operator(instance, tmp_path)
    yield operator
    operator.drop_all()


def test_objects_are_rows_after_a_run_and_each_is_taken_once(operator: Operator) -> None:
    instance, cloud = operator.instance, operator.cloud
    operator.types("table", "create", "few", "--row-key", "id:int64")
    cloud.fire(TAKE)
    put_bytes(instance, "few/a.json", trips(range(10)))
    operator.starts("few", FEW.format(sources=SOURCES))
    assert operator.tick() == 0, "it is left to the function"
    cloud.fire(TAKE)
    assert operator.ids("few") == list(range(10)), "landed, and taken from there"
    put_bytes(instance, "few/b.json", trips(range(10, 20)))
    cloud.fire(TAKE, TAKE)
    cloud.fire(TAKE)
    assert operator.ids("few") == list(range(20)), "two runs at once have not doubled any"
    assert "0 workers live" in operator.types("feed", "status")
    assert not cloud.failures


def test_messages_are_landed_and_deleted_by_runs_of_a_minute(operator: Operator) -> None:
    cloud = operator.cloud
    url = cloud.client("sqs").create_queue(QueueName=FEED_QUEUE)["QueueUrl"]
    send(operator, url, range(MESSAGES_COUNT))
    operator.starts("news", MESSAGES.format(queue=url))
    for _ in range(RUNS_MAX):
        cloud.fire(TAKE)
        if not any(cloud.queues()[FEED_QUEUE].values()):
            break
    assert not any(cloud.queues()[FEED_QUEUE].values())
    with operator.instance.lake() as lake:
        values = lake.table("news_landing").query().read_all()["value"].to_pylist()
    assert sorted(json.loads(value)["id"] for value in values) == list(range(MESSAGES_COUNT))
    assert operator.tick() == 0
    assert not cloud.failures
