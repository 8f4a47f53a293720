"""The benches' server answers as DynamoDB and SQS do, as far as we ask it."""

import random
from collections.abc import Iterator
from contextlib import closing

import pytest

from benchmarks.servers.amazon_table import clients_of
from benchmarks.servers.slow_amazon import SlowAmazon, serving
from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.job_queues import SqsJobQueue
from lakebed.backends.aws.job_tracker import DynamoDbJobTracker
from lakebed.backends.aws.transaction_logs import DynamoTransactionLogs
from lakebed.backends.memory import MemoryObjectStore, VirtualClock
from lakebed.errors import LogConflictError
from lakebed.model.names import JobId, Micros, TableId, TransactionNumber
from lakebed.ports.job_queue import Message
from lakebed.ports.job_tracker import JobReport

TABLE = TableId("t")


@pytest.fixture(scope="module")
def amazon() -> Iterator[SlowAmazon]:
    with serving(latency_ms=0) as server:
        yield server


@pytest.fixture
def clients(amazon: SlowAmazon) -> Iterator[AmazonClients]:
    with closing(clients_of(amazon)) as clients:
        yield clients


def test_a_log_is_consecutive_and_its_numbers_are_taken_once(
    amazon: SlowAmazon, clients: AmazonClients
) -> None:
    objects = MemoryObjectStore(VirtualClock())
    logs = DynamoTransactionLogs(
        clients, "log", objects=objects, rng=random.Random(1), page_entries=7
    )
    log = logs.open(TABLE)
    bodies = [bytes([n]) * 2_000 for n in range(1, 31)]
    amazon.count()
    for number, body in enumerate(bodies, 1):
        log.append(TransactionNumber(number), body)
    entry, row = 2 * 2, 2 * 1  # what a transaction writes counts twice
    assert amazon.count() == (30, 30 * entry + 29 * entry + row, 0)  # the one before it is written
    with pytest.raises(LogConflictError):
        log.append(TransactionNumber(30), b"other")
    assert [body for _, body in log.read_after(TransactionNumber(0))] == bodies
    assert [number for number, _ in log.read_after(TransactionNumber(27))] == [28, 29, 30]
    log.truncate(TransactionNumber(12))
    assert next(log.read_after(TransactionNumber(11)))[0] == 12
    assert logs.tables() == [TABLE]


def test_reports_of_jobs_come_back_the_newest_stays(clients: AmazonClients) -> None:
    tracker = DynamoDbJobTracker(clients, "tracker")

    def report(job: str, at: int) -> JobReport:
        return JobReport(
            table=TABLE, job=JobId(job), kind="compaction", event="sent", at=Micros(at)
        )

    tracker.report_many([report(f"j{n}", n) for n in range(120)])
    tracker.report_many([report("j7", 2), report("j8", 200)])
    assert tracker.last(TABLE, JobId("j7")) == report("j7", 7)
    assert tracker.last(TABLE, JobId("j8")) == report("j8", 200)
    assert tracker.last(TABLE, JobId("j119")) == report("j119", 119)


def test_messages_are_handed_out_once(amazon: SlowAmazon, clients: AmazonClients) -> None:
    url = f"{amazon.url}/000000000000/jobs.fifo"
    queue = SqsJobQueue(clients, url, rng=random.Random(2))
    queue.send([Message(b"%d" % n) for n in range(25)])
    seen = []
    while found := queue.receive(messages_max=10, hidden_seconds=60):
        seen += [message.body for message in found]
        for message in found:
            queue.delete(message.receipt)
    assert sorted(seen, key=int) == [b"%d" % n for n in range(25)]


def test_a_group_waits_while_a_message_of_it_is_in_hand(
    amazon: SlowAmazon, clients: AmazonClients
) -> None:
    url = f"{amazon.url}/000000000000/grouped.fifo"
    queue = SqsJobQueue(clients, url, rng=random.Random(3))
    queue.send([Message(b"%d" % n, message_group="a" if n < 3 else "b") for n in range(6)])
    first = queue.receive(messages_max=2, hidden_seconds=60)
    second = queue.receive(messages_max=10, hidden_seconds=60)
    assert [message.body for message in first] == [b"0", b"1"]
    assert [message.body for message in second] == [b"3", b"4", b"5"]
    queue.delete(first[0].receipt)
    assert queue.receive(messages_max=10, hidden_seconds=60) == []
    queue.delete(first[1].receipt)
    (last,) = queue.receive(messages_max=10, hidden_seconds=60)
    assert last.body == b"2"
