"""Changes of names in DynamoDB whose answers are lost, refused or cancelled by others
(H32)."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from lakebed.backends.aws.table_registry import DynamoTableRegistry
from lakebed.config.dynamo_tables import REGISTRY_TABLE
from lakebed.errors import (
    DeniedError,
    TableExistsError,
    TableMissingError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.model.names import TableName
from lakebed.ports.table_registry import TableEntry
from tests.contracts.test_table_registry import ONE, RIDES, TRIPS, TWO
from tests.servers.faulty_proxy import LOST, UNANSWERED, Answer, FaultyProxy
from tests.servers.s3 import S3Server

CONFLICT = Answer(
    400, "TransactionCanceledException", reasons=("None", "TransactionConflict", "None")
)
BUSY = Answer(400, "ThrottlingException")
ALWAYS = 100_000
Change = Callable[[DynamoTableRegistry], None]
CHANGES: list[tuple[Change, list[TableEntry]]] = [
    (
        lambda r: r.claim(RIDES, TWO),
        [TableEntry(id=TWO, name=RIDES), TableEntry(id=ONE, name=TRIPS)],
    ),
    (lambda r: r.rename(TRIPS, RIDES, ONE), [TableEntry(id=ONE, name=RIDES)]),
    (
        lambda r: r.set_online(TRIPS, ONE, online=False),
        [TableEntry(id=ONE, name=TRIPS, online=False)],
    ),
    (lambda r: r.release(TRIPS, ONE), []),
]


@pytest.fixture
def registry(ministack: S3Server, proxy: FaultyProxy) -> Iterator[DynamoTableRegistry]:
    """It has one table."""
    table = ministack.new_table(REGISTRY_TABLE)
    with closing(ministack.clients(url=proxy.url)) as clients:
        registry = DynamoTableRegistry(clients, table)
        registry.claim(TRIPS, ONE)
        yield registry


def writes(target: str) -> bool:
    return target.endswith(("TransactWriteItems", "UpdateItem"))


@pytest.mark.parametrize(("change", "after"), CHANGES, ids=["claim", "rename", "online", "release"])
@pytest.mark.parametrize("fault", [LOST, UNANSWERED, BUSY, CONFLICT], ids=str)
def test_a_change_that_meets_bad_luck_is_done_once(
    registry: DynamoTableRegistry,
    proxy: FaultyProxy,
    change: Change,
    after: list[TableEntry],
    fault: Answer,
) -> None:
    met = iter([fault, fault])
    proxy.rule = lambda _, target: next(met, None) if writes(target) else None
    change(registry)
    assert registry.list() == after


@pytest.mark.parametrize(("change", "after"), CHANGES, ids=["claim", "rename", "online", "release"])
@pytest.mark.parametrize("fault", [UNANSWERED, CONFLICT], ids=str)
def test_a_change_that_is_never_answered_is_told_so(
    registry: DynamoTableRegistry,
    proxy: FaultyProxy,
    change: Change,
    after: list[TableEntry],
    fault: Answer,
) -> None:
    lost = fault == UNANSWERED
    first = iter([fault])  # later tries must not arrive: they would meet the first
    rest = LOST if lost else fault
    proxy.rule = lambda _, target: next(first, rest) if writes(target) else None
    with pytest.raises(UnknownOutcomeError if lost else UnavailableError):
        change(registry)
    proxy.rule = lambda _method, _target: None
    assert registry.list() == (after if lost else [TableEntry(id=ONE, name=TRIPS)])
    change(registry)
    assert registry.list() == after


def test_a_rename_that_others_overtake_begins_again(
    registry: DynamoTableRegistry, proxy: FaultyProxy
) -> None:
    others = DynamoTableRegistry(registry._items._clients, registry._items.table)
    todo = iter([lambda: others.set_online(TRIPS, ONE, online=False), lambda: None])

    def rule(_: str, target: str) -> None:
        if target.endswith("TransactWriteItems"):
            next(todo)()

    proxy.rule = rule
    registry.rename(TRIPS, RIDES, ONE)
    assert registry.list() == [TableEntry(id=ONE, name=RIDES, online=False)]


@pytest.mark.parametrize("name", [TRIPS, RIDES])
def test_a_table_whose_name_was_lost_gets_one_again(
    registry: DynamoTableRegistry, ministack: S3Server, name: TableName
) -> None:
    with closing(ministack.clients()) as clients:
        key = {"pk": {"S": "names"}, "sk": {"S": TRIPS}}
        clients.dynamodb.delete_item(TableName=registry._items.table, Key=key)
    assert registry.list() == []
    registry.claim(name, ONE)
    registry.claim(name, ONE)
    assert registry.list() == [TableEntry(id=ONE, name=name)]
    with pytest.raises(TableExistsError):
        registry.claim(TableName("another"), ONE)
    registry.release(name, ONE)
    with pytest.raises(TableExistsError):
        registry.claim(name, ONE)


def test_no_late_request_brings_a_dropped_table_back(registry: DynamoTableRegistry) -> None:
    registry.release(TRIPS, ONE)
    for name in (TRIPS, RIDES):
        with pytest.raises(TableExistsError):
            registry.claim(name, ONE)
    with pytest.raises(TableMissingError):
        registry.rename(TRIPS, RIDES, ONE)
    assert registry.list() == []


def test_a_permission_that_lacks_is_named(
    registry: DynamoTableRegistry, proxy: FaultyProxy
) -> None:
    proxy.rule = lambda _method, _target: Answer(400, "AccessDeniedException")
    with pytest.raises(DeniedError, match="dynamodb:GetItem"):
        registry.find(TRIPS)
    with pytest.raises(DeniedError, match="dynamodb:PutItem"):
        registry.claim(RIDES, TWO)
