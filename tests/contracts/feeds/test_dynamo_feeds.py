"""Leases and definitions in DynamoDB whose answers are lost, or refused for others (R3)."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from lakebed.backends.aws.feeds.feed_registry import DynamoFeedRegistry
from lakebed.backends.aws.feeds.leases import DynamoLeases
from lakebed.backends.aws.feeds.secrets import SecretsManagerSecrets
from lakebed.backends.system import system_random
from lakebed.config.dynamo_tables import REGISTRY_TABLE
from lakebed.errors import DeniedError, LakebedError, UnavailableError, UnknownOutcomeError
from lakebed.feed_errors import DefinitionChangedError
from lakebed.model.feeds.definitions import Drop, FeedFailure, NamedDefinition, Put
from lakebed.ports.leases import Owner, OwnerNumber, WorkerId
from tests.servers.faulty_proxy import LOST, UNANSWERED, Answer, FaultyProxy
from tests.servers.s3 import S3Server

ANN, BEN, NONE = WorkerId("ann"), WorkerId("ben"), WorkerId("")
BUSY = Answer(400, "ThrottlingException")
CONFLICT = Answer(400, "TransactionCanceledException", reasons=("TransactionConflict", "None"))
FAULTS = pytest.mark.parametrize("fault", [LOST, UNANSWERED, BUSY, CONFLICT], ids=str)


class Both:
    """The stores as a worker meets them through the proxy."""

    def __init__(self, leases: DynamoLeases, registry: DynamoFeedRegistry) -> None:
        self.leases = leases
        self.registry = registry


@pytest.fixture
def both(ministack: S3Server, proxy: FaultyProxy) -> Iterator[Both]:
    """It has one owner, ann, and one feed, orders."""
    table = ministack.new_table(REGISTRY_TABLE)
    with closing(ministack.clients(url=proxy.url)) as clients:
        both = Both(
            DynamoLeases(clients, table, rng=system_random()),
            DynamoFeedRegistry(clients, table, rng=system_random()),
        )
        both.leases.claim("a", ANN, 0)
        both.registry.put(feed(b"1"), 0)
        yield both


def feed(body: bytes, name: str = "orders") -> NamedDefinition:
    return NamedDefinition(kind="feed", name=name, id="f1", body=body)


def body(registry: DynamoFeedRegistry) -> bytes:
    found = registry.get("feed", "orders")
    return b"" if found is None else found.definition.body


def meets(proxy: FaultyProxy, *faults: str | Answer) -> None:
    """Let the next writes meet these, one each."""
    left = iter(faults)
    writes = ("PutItem", "UpdateItem", "TransactWriteItems", "DeleteItem")
    proxy.rule = lambda _, target: next(left, None) if target.endswith(writes) else None


@FAULTS
def test_a_claim_that_meets_bad_luck_is_one_claim(
    both: Both, proxy: FaultyProxy, fault: str | Answer
) -> None:
    meets(proxy, fault, fault)
    assert both.leases.claim("a", BEN, 0) == 2
    assert both.leases.owner("a") == Owner("a", OwnerNumber(2), BEN)
    meets(proxy, fault)
    both.leases.release("a", BEN, OwnerNumber(2))
    assert both.leases.owner("a") == Owner("a", OwnerNumber(2), NONE)


def test_a_claim_that_is_overtaken_after_its_lost_answer_is_made_anew(
    both: Both, proxy: FaultyProxy
) -> None:
    """Its own try landed, then another worker claimed: the number that it says is a newer one."""
    todo = iter([UNANSWERED, None, None])
    overtaken = iter([False, True])

    def rule(_: str, target: str) -> str | None:
        if not target.endswith("PutItem"):
            return None
        if next(overtaken, False):
            proxy.rule = lambda _method, _target: None
            assert both.leases.claim("a", ANN, 0) == 3
            proxy.rule = rule
        return next(todo, None)

    proxy.rule = rule
    assert both.leases.claim("a", BEN, 0) == 4


def test_a_claim_that_is_never_answered_says_so_and_the_next_has_a_greater_number(
    both: Both, proxy: FaultyProxy
) -> None:
    first = iter([UNANSWERED])
    proxy.rule = lambda _, target: next(first, LOST) if target.endswith("PutItem") else None
    with pytest.raises(UnknownOutcomeError):
        both.leases.claim("a", BEN, 0)
    proxy.rule = lambda _method, _target: None
    assert both.leases.claim("a", BEN, 0) == 3


@FAULTS
def test_a_definition_that_meets_bad_luck_has_one_version(
    both: Both, proxy: FaultyProxy, fault: str | Answer
) -> None:
    number = both.registry.number()
    meets(proxy, fault, fault)
    assert both.registry.put(feed(b"2"), 1) == 2
    assert (body(both.registry), both.registry.number()) == (b"2", number + 1)
    meets(proxy, fault)
    assert both.registry.change([Drop("feed", "orders", 2), Put(feed(b"", "new"), 0)]) == [2, 3]
    assert [one.definition.name for one in both.registry.list("feed")] == ["new"]


@FAULTS
def test_a_wanted_state_that_meets_bad_luck_is_set_once(
    both: Both, proxy: FaultyProxy, fault: str | Answer
) -> None:
    meets(proxy, fault, fault)
    revision = both.registry.want("feed", "orders", "running", 1)
    assert revision == 2
    meets(proxy, fault)
    both.registry.note_failure("feed", "orders", FeedFailure("denied", "no", 1))
    found = both.registry.get("feed", "orders")
    assert found is not None
    assert (found.wanted, found.revision, found.failed(1)) == (
        "running",
        3,
        FeedFailure("denied", "no", 1),
    )


Change = Callable[[DynamoFeedRegistry], object]


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r.put(feed(b"2"), 1),
        lambda r: r.want("feed", "orders", "running", 1),
        lambda r: r.drop("feed", "orders", 1),
    ],
)
def test_what_another_changes_meanwhile_refuses_and_is_kept(
    both: Both, proxy: FaultyProxy, change: Change
) -> None:
    todo = iter([True])

    def rule(_: str, target: str) -> None:
        if target.endswith(("PutItem", "TransactWriteItems")) and next(todo, False):
            both.registry.put(feed(b"theirs"), 1)

    proxy.rule = rule
    with pytest.raises(DefinitionChangedError):
        change(both.registry)
    assert body(both.registry) == b"theirs"


def test_definitions_of_two_operators_that_do_not_meet_are_both_stored(
    both: Both, proxy: FaultyProxy
) -> None:
    todo = iter([True])

    def rule(_: str, target: str) -> None:
        if target.endswith("TransactWriteItems") and next(todo, False):
            both.registry.put(feed(b"theirs", "theirs"), 0)

    proxy.rule = rule
    assert both.registry.put(feed(b"2"), 1) == 3
    assert [one.definition.name for one in both.registry.list("feed")] == ["orders", "theirs"]


def test_a_store_that_stays_busy_is_unavailable(both: Both, proxy: FaultyProxy) -> None:
    proxy.rule = lambda _method, _target: BUSY
    calls: list[Callable[[], object]] = [
        lambda: both.leases.claim("a", BEN, 0),
        lambda: both.leases.beat(ANN, b""),
        both.leases.workers,
        lambda: both.registry.put(feed(b"2"), 1),
        lambda: both.registry.list("feed"),
    ]
    for call in calls:
        with pytest.raises(UnavailableError):
            call()
    proxy.rule = lambda _method, _target: None
    assert body(both.registry) == b"1"


def test_an_owner_that_changes_all_the_time_is_not_claimed(both: Both, proxy: FaultyProxy) -> None:
    proxy.rule = lambda _, target: (
        Answer(400, "ConditionalCheckFailedException") if target.endswith("PutItem") else None
    )
    with pytest.raises(UnavailableError, match="changes too often"):
        both.leases.claim("a", BEN, 0)


def test_a_secret_that_may_not_be_read_names_the_permission_and_nothing_else(
    ministack: S3Server, proxy: FaultyProxy
) -> None:
    with closing(ministack.clients(url=proxy.url)) as clients:
        secrets = SecretsManagerSecrets(clients, "lakebed/tests/")
        for code, error in (
            ("AccessDeniedException", DeniedError),
            ("DecryptionFailure", LakebedError),
        ):
            proxy.times(99, "POST", Answer(400, code))
            with pytest.raises(error) as raised:
                secrets.read("kafka")
            if error is DeniedError:
                assert "secretsmanager:GetSecretValue" in str(raised.value)


@FAULTS
def test_a_wish_to_flush_that_meets_bad_luck_is_one_wish(
    both: Both, proxy: FaultyProxy, fault: str | Answer
) -> None:
    meets(proxy, fault, fault)
    assert both.registry.want_flush("orders", 0) == 1
    assert both.registry.flushes().by_feed == {"orders": 1}
    meets(proxy, fault)
    with pytest.raises(DefinitionChangedError):
        both.registry.want_flush("orders", 0)
    assert both.registry.number() == 1, "definitions only are counted"
