"""The watcher of tests that kill workers sees what it is there for."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

import lakebed
from lakebed.model.feeds.positions import decode_position, encode_position
from lakebed.model.names import CommitId, TransactionNumber
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries.feed_changes import Count, Define
from lakebed.statestore.log_entries.transactions import PositionChange, Transaction
from tests.e2e.feeds.fed_by_kafka import FedByKafka
from tests.e2e.feeds.fed_lake import WAIT_SECONDS_MAX
from tests.e2e.feeds.watcher import TakenRecords, Watcher
from tests.e2e.test_feed_kills import FeedProcesses, LandedBytes
from tests.servers.fixtures import kafka_mock  # noqa: F401 - it is a fixture
from tests.servers.kafka import KafkaServer

RECORDS = 200


@pytest.fixture
def fed(folder: Path, kafka_mock: KafkaServer) -> Iterator[FedByKafka]:  # noqa: F811 - the fixture
    given = FedByKafka(folder, kafka_mock)
    given.produce(RECORDS)
    assert given.producer.flush(WAIT_SECONDS_MAX) == 0
    yield given
    given.close()


def work(fed: FedByKafka) -> None:
    """Work in this process until all is taken."""
    with lakebed.connect(fed.path) as lake:
        lakebed.Feeds(lake).work(fed.has_all)


def behind(change: PositionChange) -> PositionChange:
    """Return a change that leaves a position where another one has moved it."""
    there = decode_position(change.value)
    again = encode_position(msgspec.structs.replace(there, revision=there.revision + 1))
    return msgspec.structs.replace(change, expected=change.value, value=again)


def committing_positions_first(
    is_seen: Callable[[], bool],
) -> Callable[[TableHead, Transaction], TransactionNumber]:
    """Return what commits the positions of a round by themselves, and its rows when that was seen,
    or after a while."""
    commit = TableHead.commit

    def committing(self: TableHead, transaction: Transaction) -> TransactionNumber:
        if not any(isinstance(change, Count) for change in transaction.changes):
            return commit(self, transaction)
        defines = tuple(one for one in transaction.changes if isinstance(one, Define))
        rest = tuple(one for one in transaction.changes if not isinstance(one, Define))
        early = msgspec.structs.replace(transaction, id=CommitId(uuid.uuid4().hex), changes=defines)
        commit(self, early)
        end = time.monotonic() + WAIT_SECONDS_MAX / 4
        while not is_seen() and time.monotonic() < end:
            time.sleep(0.05)
        positions = tuple(behind(one) for one in transaction.positions)
        late = msgspec.structs.replace(transaction, changes=rest, positions=positions)
        return commit(self, late)

    return committing


def test_positions_that_are_committed_before_their_rows_are_seen(
    fed: FedByKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher = Watcher(fed.path, TakenRecords(fed.ids))
    twin = committing_positions_first(lambda: bool(watcher.wrong))
    monkeypatch.setattr(TableHead, "commit", twin)
    with pytest.raises(AssertionError, match="taken, and not there"), watcher:
        work(fed)
    fed.check()


def test_bytes_of_files_that_are_taken_before_they_are_landed_are_seen(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = FeedProcesses(folder, seed=1)
    for _ in range(4):
        files.write()
    watcher = Watcher(folder / "lake", LandedBytes())
    twin = committing_positions_first(lambda: bool(watcher.wrong))
    monkeypatch.setattr(TableHead, "commit", twin)
    seen = pytest.raises(AssertionError, match="bytes are landed of")
    with seen, watcher, lakebed.connect(folder / "lake") as lake:
        lakebed.Feeds(lake, files.feeds.read_text()).run()
    files.check()


def test_one_that_has_not_looked_twice_says_so(folder: Path) -> None:
    lakebed.connect(folder / "lake", create=True).close()
    with pytest.raises(AssertionError, match="has looked 0 times"), Watcher(folder / "lake"):
        pass


def test_each_record_is_compared_once_also_when_its_id_is_known_late(fed: FedByKafka) -> None:
    known = list[bool]()
    taken = TakenRecords(lambda app: fed.ids(app) if known else lambda _split, _offset: None)
    with Watcher(fed.path, taken):
        work(fed)
        time.sleep(1)
        assert taken.compared == 0
        known.append(True)
        fed.wait_until(lambda: taken.compared >= RECORDS)
        time.sleep(1)
        assert taken.compared == RECORDS
    fed.check()
