"""What only reports in DynamoDB can meet: lost answers, items that expire, a table that lacks."""

from collections.abc import Iterator

import msgspec
import pytest

from lakebed.backends.aws import Patience
from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.job_tracker import DynamoDbJobTracker
from lakebed.backends.memory import VirtualClock
from lakebed.config.dynamo_tables import TRACKER_TABLE
from lakebed.errors import InvalidError, UnavailableError
from lakebed.model.names import JobId, Micros, TableId
from lakebed.ports.job_tracker import JobReport
from tests.servers.faulty_proxy import HALVED, LOST, UNANSWERED, Answer, FaultyProxy
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


@pytest.fixture
def patient(ministack: S3Server, proxy: FaultyProxy) -> Iterator[AmazonClients]:
    """Clients whose patience is counted in tries, as what waits, waits in virtual time."""
    clients = ministack.clients(url=proxy.url, clock=VirtualClock(), patience=Patience())
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


def together(count: int) -> list[JobReport]:
    return [
        JobReport(table=TABLE, job=JobId(f"j{n}"), kind="ingest", event="committed", at=Micros(n))
        for n in range(count)
    ]


@pytest.mark.parametrize("fault", [HALVED, LOST, UNANSWERED, BUSY])
@pytest.mark.parametrize("operation", ["BatchWriteItem", "TransactWriteItems"])
def test_reports_that_are_told_together_are_all_there_once(
    ministack: S3Server,
    patient: AmazonClients,
    proxy: FaultyProxy,
    fault: str | Answer,
    operation: str,
) -> None:
    if fault == HALVED and operation != "BatchWriteItem":
        pytest.skip("a transaction is done as a whole")
    tracker = DynamoDbJobTracker(patient, ministack.new_table(TRACKER_TABLE))
    reports = together(110)
    proxy.times(2, "POST", fault, operation)
    tracker.report_many(reports)
    for one in (reports[0], reports[24], reports[25], reports[109]):
        assert tracker.history(TABLE, one.job) == [one]
        assert tracker.last(TABLE, one.job) == one
    assert tracker.find(TABLE, reports_max=200) == reports[::-1]


def test_reports_that_dynamodb_keeps_leaving_out_are_given_up_in_the_end(
    ministack: S3Server, patient: AmazonClients, proxy: FaultyProxy
) -> None:
    tracker = DynamoDbJobTracker(patient, ministack.new_table(TRACKER_TABLE))
    proxy.times(1_000, "POST", HALVED, "BatchWriteItem")
    with pytest.raises(UnavailableError):
        tracker.report_many(together(30))
    assert len(proxy.seen) < 50
    proxy.times(0, "POST", HALVED)
    tracker.report_many(together(30))
    assert tracker.find(TABLE, reports_max=40) == together(30)[::-1]


def test_items_expire(ministack: S3Server, clients: AmazonClients) -> None:
    table = ministack.new_table(TRACKER_TABLE)
    now = Micros(1_000_000_000_000_000)
    DynamoDbJobTracker(clients, table, kept_seconds=60).report(
        JobReport(table=TABLE, job=JobId("j"), kind="ingest", event="started", at=now)
    )
    found = clients.dynamodb.scan(TableName=table)["Items"]
    assert [item["expires"] for item in found] == [{"N": "1000000060"}] * 2


def test_items_of_a_report_that_is_renewed_expire_later(
    ministack: S3Server, clients: AmazonClients
) -> None:
    table = ministack.new_table(TRACKER_TABLE)
    tracker = DynamoDbJobTracker(clients, table, kept_seconds=60)
    for renewed in (0, 2_000_000, 5_000_000):
        tracker.report(msgspec.structs.replace(FIRST, renewed=Micros(renewed)))
    found = clients.dynamodb.scan(TableName=table)["Items"]
    assert [item["expires"] for item in found] == [{"N": "65"}] * 2


def test_a_table_that_is_not_there_is_named(clients: AmazonClients) -> None:
    with pytest.raises(InvalidError, match="no such table"):
        DynamoDbJobTracker(clients, "nowhere").report(FIRST)
