"""What only the log on DynamoDB has to keep: lost answers, throttling, bodies beside it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from types import SimpleNamespace
from typing import NoReturn, cast

import pytest

from lakebed.backends.aws import Patience
from lakebed.backends.aws.items import Item
from lakebed.backends.aws.requests import ConditionError
from lakebed.backends.aws.transaction_logs import (
    BODY_BYTES_MAX,
    DynamoTransactionLog,
    DynamoTransactionLogs,
)
from lakebed.backends.memory import MemoryObjectStore, VirtualClock
from lakebed.backends.system import system_random
from lakebed.config.dynamo_tables import LOG_TABLE
from lakebed.errors import (
    CorruptError,
    DeniedError,
    LogConflictError,
    LogRolledBackError,
    LogTruncatedError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.model.names import TableId, TransactionNumber, entry_checksum
from lakebed.model.paths import entries_prefix
from lakebed.ports.object_store import ObjectWriter
from lakebed.statestore.log_entries.file_changes import AddFiles
from tests.contracts.test_transaction_log import entries, filled, number
from tests.dsl import TableStory
from tests.servers.faulty_proxy import LOST, UNANSWERED, Answer, FaultyProxy
from tests.servers.s3 import S3Server

TABLE = TableId("t1")
BUSY = Answer(400, "ProvisionedThroughputExceededException")
APPEND, QUERY, GET, EMPTY, MARK = (
    f"DynamoDB_20120810.{operation}"
    for operation in (
        "TransactWriteItems",
        "Query",
        "GetItem",
        "BatchWriteItem",
        "UpdateItem",
    )
)
ALWAYS = 100_000
LARGE = bytes(range(256)) * 256


@pytest.fixture
def objects(clock: VirtualClock) -> MemoryObjectStore:
    return MemoryObjectStore(clock)


@pytest.fixture
def views(
    ministack: S3Server, proxy: FaultyProxy, clock: VirtualClock, objects: MemoryObjectStore
) -> Iterator[Callable[..., DynamoTransactionLog]]:
    """The same log with each call; through the proxy, or not. What waits, waits in virtual time."""
    table = ministack.new_table(LOG_TABLE)
    with ExitStack() as stack:

        def view(*, through: FaultyProxy | None = proxy) -> DynamoTransactionLog:
            url = through.url if through else None
            clients = ministack.clients(url=url, clock=clock, patience=Patience())
            stack.enter_context(closing(clients))
            logs = DynamoTransactionLogs(clients, table, objects=objects, rng=system_random())
            return logs.open(TABLE)

        yield view


@pytest.fixture
def log(views: Callable[..., DynamoTransactionLog]) -> DynamoTransactionLog:
    return views()


@pytest.mark.parametrize("first", [1, 2])
@pytest.mark.parametrize("fault", [LOST, UNANSWERED, Answer(500, "InternalServerError")])
def test_a_try_without_an_answer_is_not_repeated_but_told(
    log: DynamoTransactionLog, proxy: FaultyProxy, first: int, fault: Answer
) -> None:
    filled(log, first - 1)
    proxy.seen.clear()
    proxy.times(ALWAYS, "POST", fault, APPEND)
    with pytest.raises(UnknownOutcomeError):
        log.append(number(first), b"x")
    assert proxy.seen == [("POST", APPEND)]
    assert len(entries(log)) == (first if fault == UNANSWERED else first - 1)


@pytest.mark.parametrize("fault", [LOST, UNANSWERED, BUSY, Answer(500, "InternalServerError")])
def test_a_lost_answer_then_a_retry_is_one_commit(
    log: DynamoTransactionLog, proxy: FaultyProxy, fault: Answer
) -> None:
    proxy.times(1, "POST", fault, APPEND)
    story = TableStory(log=log)
    proxy.times(1, "POST", fault, APPEND)
    added = story.transaction(AddFiles(story.new_files("all", a=1)))
    assert story.head.commit(added) == 2
    assert story.head.commit(added) == 2
    assert [n for n, _ in entries(log)] == [1, 2]


def test_throttling_for_minutes_is_a_bounded_wait_and_nothing_is_written(
    log: DynamoTransactionLog, proxy: FaultyProxy, clock: VirtualClock
) -> None:
    story = TableStory(log=log, clock=clock)
    proxy.times(ALWAYS, "POST", BUSY, APPEND)
    begun = clock.monotonic()
    with pytest.raises(UnavailableError, match="Throughput"):
        story.given_files("all", a=1)
    assert 59 < clock.monotonic() - begun < 100
    proxy.rule = lambda _method, _target: None
    assert [n for n, _ in entries(log)] == [1]
    assert story.given_files("all", a=1) == 2


def test_throttling_for_a_while_only_costs_time(
    log: DynamoTransactionLog, proxy: FaultyProxy
) -> None:
    for n in (1, 2):
        proxy.times(2, "POST", BUSY, APPEND)
        log.append(number(n), b"x")
    proxy.times(2, "POST", BUSY, QUERY)
    assert len(entries(log)) == 2


def test_a_permission_that_lacks_is_named(log: DynamoTransactionLog, proxy: FaultyProxy) -> None:
    filled(log, 2)
    denied = Answer(400, "AccessDeniedException")
    for operation, permission, call in (
        (APPEND, "dynamodb:PutItem", lambda: log.append(number(3), b"")),
        (QUERY, "dynamodb:Query", lambda: entries(log)),
        (EMPTY, "dynamodb:BatchWriteItem", lambda: log.truncate(number(2))),
    ):
        proxy.times(ALWAYS, "POST", denied, operation)
        with pytest.raises(DeniedError, match=permission):
            call()


def test_a_large_body_lies_beside_the_log_under_a_name_of_its_own(
    views: Callable[..., DynamoTransactionLog], objects: MemoryObjectStore
) -> None:
    log, other = views(), views()
    log.append(number(1), LARGE)
    with pytest.raises(LogConflictError):
        other.append(number(1), LARGE[::-1])
    other.append(number(2), LARGE[:BODY_BYTES_MAX])
    assert entries(other) == [(1, LARGE), (2, LARGE[:BODY_BYTES_MAX])]
    assert len(list(objects.list(entries_prefix(TABLE)))) == 2, "the loser's, too"


class KilledServer(MemoryObjectStore):
    """Was killed while it took an object: it knows the name and the size, and these bytes, and
    nobody heard of it. None: it cannot read them."""

    left: bytes | None = LARGE

    def create(self, path: str) -> ObjectWriter:
        writer = super().create(path)
        finish = writer.finish

        def killed() -> NoReturn:
            finish()
            raise UnknownOutcomeError("the server was killed")

        return cast(
            "ObjectWriter", SimpleNamespace(write=writer.write, finish=killed, abort=writer.abort)
        )

    def read(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        if self.left is None:
            raise UnavailableError("the store is busy")
        return [self.left[start:end] for start, end in ranges]


@pytest.mark.parametrize("left", [None, LARGE[::-1], LARGE], ids=["unreadable", "torn", "whole"])
def test_a_body_whose_answer_was_lost_is_read_back(
    ministack: S3Server, clock: VirtualClock, left: bytes | None
) -> None:
    objects = KilledServer(clock)
    objects.left = left
    with closing(ministack.clients(clock=clock, patience=Patience())) as clients:
        table = ministack.new_table(LOG_TABLE)
        logs = DynamoTransactionLogs(clients, table, objects=objects, rng=system_random())
        log = logs.open(TABLE)
        if left == LARGE:
            log.append(number(1), LARGE)
            assert entries(log) == [(1, LARGE)]
        else:
            with pytest.raises(UnavailableError):
                log.append(number(1), LARGE)
            assert entries(log) == []


def test_truncation_takes_bodies_beside_the_log_away_those_of_losers_too(
    log: DynamoTransactionLog, objects: MemoryObjectStore
) -> None:
    for n in (1, 2, 3):
        for body in (LARGE, LARGE):
            try:
                log.append(number(n), body)
            except LogConflictError:
                continue
    log.truncate(number(3))
    assert len(list(objects.list(entries_prefix(TABLE)))) == 2
    assert entries(log, after=2) == [(3, LARGE)]


def test_a_body_that_is_gone_is_damage_and_one_that_was_truncated_is_not(
    log: DynamoTransactionLog, objects: MemoryObjectStore
) -> None:
    for n in (1, 2, 3):
        log.append(number(n), LARGE if n < 3 else b"")
    items, _ = log._items.page(TABLE, items_max=10)
    objects.delete(list(objects.list(entries_prefix(TABLE)))[1:])
    seen = []
    with pytest.raises(CorruptError, match="number=2"):
        seen += [n for n, _ in log.read_after(number(0))]
    assert next(log.read_after(number(0))) == (1, LARGE)

    log.truncate(number(3))
    with pytest.raises(LogTruncatedError) as error:  # what a reader has that began before
        list(log._bodies(items, TransactionNumber(1)))
    assert error.value.oldest == 3


class NeverAnswers(MemoryObjectStore):
    """Puts objects and never says so; lands: whether they are there."""

    lands = True

    def create(self, path: str) -> "Unanswered":  # type: ignore[override]  # it has what is used
        return Unanswered(super().create(path), lands=self.lands)


class Unanswered:
    def __init__(self, writer: object, *, lands: bool) -> None:
        self.writer, self.lands = writer, lands

    def write(self, data: bytes) -> int:
        return self.writer.write(data)

    def finish(self) -> None:
        if self.lands:
            self.writer.finish()
        raise UnknownOutcomeError("no answer")

    def abort(self) -> None:
        self.writer.abort()


@pytest.mark.parametrize("lands", [True, False])
def test_no_entry_names_a_body_that_may_not_be_there(
    log: DynamoTransactionLog, clock: VirtualClock, lands: bool
) -> None:
    log._objects = NeverAnswers(clock)
    log._objects.lands = lands
    if lands:
        log.append(number(1), LARGE)
        assert entries(log) == [(1, LARGE)]
    else:
        with pytest.raises(UnavailableError):
            log.append(number(1), LARGE)
        assert entries(log) == []


def items_of(log: DynamoTransactionLog) -> list[Item]:
    return list(log._items.all(TABLE))


def test_a_log_that_is_set_back_to_what_it_was_goes_on_and_refuses_who_knows_more(
    log: DynamoTransactionLog,
) -> None:
    yesterday = items_of(filled(log, 2))
    for n in (3, 4):
        log.append(number(n), b"body %d" % n)
    for item in items_of(log):
        log._items.delete({"pk": item["pk"], "sk": item["sk"]})
    log._items.put_many(yesterday)
    for n in (4, 5):
        with pytest.raises(LogRolledBackError) as error:
            log.append(number(n), b"late", entry_checksum(b"body %d" % (n - 1)))
        assert error.value.facts["log_ends"] == 2
    assert items_of(log) == yesterday
    log.append(number(3), b"another", entry_checksum(b"body 2"))
    with pytest.raises(LogRolledBackError):
        log.append(number(4), b"late", entry_checksum(b"body 3"))
    assert entries(log, after=2) == [(3, b"another")]


def test_entries_of_a_lakebed_that_notes_less_are_followed(log: DynamoTransactionLog) -> None:
    for item in items_of(filled(log, 3)):
        log._items.put_many([{k: v for k, v in item.items() if k not in {"crc", "followed"}}])
    log.append(number(4), b"body 4", entry_checksum(b"body 3"))
    with pytest.raises(LogConflictError):
        log.append(number(3), b"another", entry_checksum(b"body 2"))
    assert [n for n, _ in entries(log)] == [1, 2, 3, 4]


def test_a_number_is_taken_though_the_refusal_names_just_the_entry_before_it(
    log: DynamoTransactionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While another transaction holds the number, DynamoDB does not judge that condition."""
    filled(log, 3)
    refused = ConditionError("a write's condition does not hold")
    refused.unmet = (1,)

    def cancelled(*_: object, **__: object) -> NoReturn:
        raise refused

    monkeypatch.setattr(log._items, "transact", cancelled)
    with pytest.raises(LogConflictError):
        log.append(number(3), b"another", entry_checksum(b"body 2"))
    with pytest.raises(LogRolledBackError):
        log.append(number(4), b"body 4", entry_checksum(b"body 3"))


def test_a_commit_is_one_transaction_of_two_writes(
    log: DynamoTransactionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it costs: two write units for each KiB of the entry, and of the one before."""
    asked: list[Sequence[Item]] = []
    transact = log._items.transact

    def noted(writes: Sequence[Item], *, once: bool = False) -> None:
        asked.append(writes)
        transact(writes, once=once)

    monkeypatch.setattr(log._items, "transact", noted)
    filled(log, 2)
    assert [[kind for write in writes for kind in write] for writes in asked] == [
        ["Put", "Put"],
        ["Put", "Update"],
    ]


@pytest.mark.parametrize("operation", [MARK, EMPTY, GET])
@pytest.mark.parametrize("after", range(3))
def test_truncation_may_end_anywhere_and_is_finished_by_the_next(
    log: DynamoTransactionLog, proxy: FaultyProxy, operation: str, after: int
) -> None:
    filled(log, 33)
    met = iter(range(ALWAYS))
    proxy.rule = lambda _, target: LOST if target == operation and next(met) >= after else None
    with suppress(UnknownOutcomeError, UnavailableError):
        log.truncate(number(31))
    proxy.rule = lambda _method, _target: None
    for start in (0, 24, 26, 29):  # each entry is as it was, or the reader is told where to go
        with suppress(LogTruncatedError):
            assert [n for n, _ in entries(log, start)] == list(range(start + 1, 34))
    log.truncate(number(31))
    with pytest.raises(LogTruncatedError) as error:
        entries(log, 29)
    assert error.value.oldest == 31
    assert [n for n, _ in entries(log, 30)] == [31, 32, 33]
    for n in (1, 25, 30, 31, 33):
        with pytest.raises(LogConflictError):
            log.append(number(n), b"a stalled writer wakes up")
