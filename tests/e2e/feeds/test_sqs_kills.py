"""A queue of SQS into a landing table, and from there into a typed one, by real processes that are
killed, also between a commit and the deletion of its messages: each message is landed once."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import lakebed
from lakebed.bootstrap.app import App
from lakebed.bootstrap.local import open_local
from tests.e2e.feeds.fed_lake import PACE, FedLake
from tests.e2e.feeds.watcher import TakenRecords, Watcher, landed_ids, rows_of
from tests.servers.fixtures import elasticmq, ministack  # noqa: F401 - they are fixtures
from tests.servers.s3 import S3Server

KILLS, KILLS_MAX = 25, 200
HIDDEN_SECONDS = 3
"""Short: what a killed worker had in hand comes again, and what one that stands still has, too."""


class FedBySqs(FedLake):
    """A lake fed by a queue."""

    def __init__(self, folder: Path, server: S3Server) -> None:
        self.clients = server.clients()
        self.url = self.clients.sqs.create_queue(QueueName=server.new_prefix())["QueueUrl"]
        source = f'{{ sqs = "{self.url}", receivers = 3, hidden_seconds = {HIDDEN_SECONDS} }}'
        super().__init__(folder, source, environment=server.environment())
        self.sent = 0

    def close(self) -> None:
        super().close()
        self.clients.close()

    def send(self, _killed: int = 0) -> None:
        entries: Any = [
            {"Id": str(number), "MessageBody": self.next_record()}
            for number in range(self.rng.randrange(1, 10))
        ]
        sent = self.clients.sqs.send_message_batch(QueueUrl=self.url, Entries=entries)
        assert len(sent["Successful"]) == len(entries)
        self.sent = self.written

    def waiting(self) -> int:
        """How many messages are in the queue, those out of sight among them."""
        names: Any = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        told = self.clients.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)
        return sum(int(told["Attributes"][name]) for name in names)

    def deleted_too_early(self, app: App) -> Iterator[str]:
        """Yield what the queue has no longer, and the landing table not yet: asked in this order,
        each message is in one of them."""
        sent, waiting = self.sent, self.waiting()
        landed = len(rows_of(app, "orders_landing", "position"))
        if sent > waiting + landed:
            yield f"{sent} sent, {waiting} in the queue, {landed} landed"

    def landed(self) -> list[str]:
        with lakebed.connect(self.path) as lake:
            if "orders_landing" not in lake.tables():
                return []
            values = lake.table("orders_landing").query().read_all()["value"].to_pylist()
            return [bytes(value).decode() for value in values]

    def doubled(self) -> int:
        """How many messages came again when their rows were there."""
        with lakebed.connect(self.path) as lake:
            (status,) = lake.status("orders_landing")
            return sum(one.read - one.stored for one in status.connections)

    def check_landed(self) -> None:
        """All of the queue was taken and deleted, and each message is one row."""
        last = self.start_and_wait(pace=PACE)
        self.wait_until(lambda: self.waiting() == 0 and self.has_all())
        self.stop(last)
        found = self.landed()
        assert max(Counter(found).values()) == 1
        assert len(found) == self.written
        self.check()


@pytest.fixture(params=["ministack", pytest.param("elasticmq", marks=pytest.mark.slow)])
def fed(folder: Path, request: pytest.FixtureRequest) -> Iterator[FedBySqs]:
    given = FedBySqs(folder, request.getfixturevalue(request.param))
    yield given
    given.close()


def test_a_worker_that_dies_between_a_commit_and_its_deletions_lands_nothing_twice(
    fed: FedBySqs,
) -> None:
    for _ in range(2):
        fed.send()
        dying = fed.start(pace=PACE, dies=True)
        before = len(fed.landed())
        assert dying.wait(60) == -signal.SIGKILL
        fed.running.remove(dying)
        assert len(fed.landed()) > before
        assert fed.waiting() >= len(fed.landed()) - before, "what it landed is not deleted"
    fed.check_landed()
    assert fed.doubled() > 0


def test_messages_that_two_workers_have_are_landed_once(fed: FedBySqs) -> None:
    """One stands still with messages in hand until they are seen again, and another takes them."""
    still = fed.start_and_wait(pace=PACE)
    for _ in range(20):
        fed.send()
    time.sleep(fed.rng.uniform(0.1, 0.4))
    still.send_signal(signal.SIGSTOP)
    fed.start_and_wait(pace=PACE)
    time.sleep(HIDDEN_SECONDS + 1)
    fed.wait_until(fed.has_all)
    still.send_signal(signal.SIGCONT)
    fed.send()
    fed.wait_until(fed.has_all)
    for process in list(fed.running):
        fed.stop(process)
    fed.check_landed()


def test_a_message_that_was_deleted_and_is_not_landed_is_seen(fed: FedBySqs) -> None:
    fed.send()
    with closing(open_local(fed.path, create=False)) as app:
        assert not list(fed.deleted_too_early(app))
        fed.clients.sqs.purge_queue(QueueUrl=fed.url)
        assert list(fed.deleted_too_early(app))


def kill_workers(fed: FedBySqs, kills: int) -> None:
    fed.send()
    for _ in range(2):
        fed.start(pace=PACE)
    fed.wait_until(lambda: bool(fed.landed()))
    records = TakenRecords(landed_ids)
    with Watcher(fed.path, records, fed.deleted_too_early):
        fed.kill_again_and_again(kills, fed.send, seconds_max=4.0)
        assert len(fed.landed()) > fed.written / 10, "who is killed works, too"
        assert records.compared > 0, "it looks while they are killed"
        while fed.running:
            fed.kill_one()
        fed.check_landed()
        fed.wait_until(lambda: records.compared == fed.written)


@pytest.mark.timeout(1200)
def test_each_message_is_landed_once_though_workers_are_killed(fed: FedBySqs) -> None:
    kill_workers(fed, KILLS)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_two_hundred_kills_land_no_message_twice(fed: FedBySqs) -> None:
    kill_workers(fed, KILLS_MAX)
