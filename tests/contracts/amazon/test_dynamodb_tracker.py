"""What only reports in DynamoDB can meet: lost answers, items that expire, a table that lacks."""

from collections.abc import Iterator

import pytest

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.job_tracker import DynamoDbJobTracker
from lakebed.config.dynamo_tables import TRACKER_TABLE
from lakebed.errors import InvalidError, UnavailableError
from lakebed.model.names import JobId, Micros, TableId
from lakebed.ports.job_tracker import JobReport
from tests.servers.faulty_proxy import LOST, UNANSWERED, Answer, FaultyProxy
from tests.servers.s3 import S3Server

TABLE = TableId("t1")
FIRST = JobReport(table=TABLE, job=JobId("j"), kind="ingest", event="started", at=Micros(5))
LATER = JobReport(table=TABLE, job=JobId("j"), kind="ingest", event="committed", at=Micros(7))
BUSY = Answer(400, "ThrottlingException")


@pytest.fixture
def clients(ministack: S3Server, proxy: FaultyProxy) -> Iterator[AmazonClients]:
    clients = ministack.clients(url=proxy.url)
    yield clients
    clients.close()


@pytest.mark.parametrize("fault", [LOST, UNANSWERED, BUSY, Answer(500, "InternalServerError")])
def test_a_report_that_is_repeated_is_there_once(
    ministack: S3Server, clients: AmazonClients, proxy: FaultyProxy, fault: str | Answer
) -> None:
    tracker = DynamoDbJobTracker(clients, ministack.new_table(TRACKER_TABLE))
    for one in (FIRST, LATER):
        proxy.times(1, "POST", fault)
        tracker.report(one)
    assert tracker.history(TABLE, FIRST.job) == [FIRST, LATER]
    assert tracker.find(TABLE, reports_max=9) == [LATER]
    proxy.times(99, "POST", fault)
    with pytest.raises(UnavailableError):
        tracker.last(TABLE, FIRST.job)


def test_items_expire(ministack: S3Server, clients: AmazonClients) -> None:
    table = ministack.new_table(TRACKER_TABLE)
    now = Micros(1_000_000_000_000_000)
    DynamoDbJobTracker(clients, table, kept_seconds=60).report(
        JobReport(table=TABLE, job=JobId("j"), kind="ingest", event="started", at=now)
    )
    found = clients.dynamodb.scan(TableName=table)["Items"]
    assert [item["expires"] for item in found] == [{"N": "1000000060"}] * 2


def test_a_table_that_is_not_there_is_named(clients: AmazonClients) -> None:
    with pytest.raises(InvalidError, match="no such table"):
        DynamoDbJobTracker(clients, "nowhere").report(FIRST)
