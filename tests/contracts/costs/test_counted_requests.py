"""As many requests are counted as a proxy before the server sees, by kind, each try of them."""

from collections.abc import Iterator

import pytest

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.costs.usage_ledger import DynamoUsageLedger
from lakebed.backends.aws.items import IS_NEW, Items, WriteCondition
from lakebed.backends.aws.job_queues import SqsJobQueue
from lakebed.backends.aws.object_store import S3ObjectStore
from lakebed.backends.aws.requests import ConditionError
from lakebed.backends.system import system_random
from lakebed.config.dynamo_tables import TRACKER_TABLE
from lakebed.errors import CorruptError, ObjectExistsError, ObjectMissingError
from lakebed.observe import usage
from lakebed.observe.usage import Counts
from lakebed.ports.job_queue import Message
from lakebed.ports.paying.usage_ledger import LedgerEntry
from tests.contracts.amazon.test_s3_objects import put
from tests.servers.faulty_proxy import UNANSWERED, Answer, FaultyProxy
from tests.servers.s3 import S3Server
from tests.servers.sqs import make_queue

BUSY = Answer(503, "SlowDown")
KIB = 1 << 10


@pytest.fixture
def store(ministack: S3Server, proxy: FaultyProxy) -> S3ObjectStore:
    return ministack.store(
        ministack.new_prefix(), url=proxy.url, single_bytes_max=100, part_bytes_min=300
    )


@pytest.fixture
def clients(ministack: S3Server, proxy: FaultyProxy) -> Iterator[AmazonClients]:
    clients = ministack.clients(url=proxy.url)
    yield clients
    clients.close()


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[usage.UsageCollector]:
    monkeypatch.setattr(usage, "_seconds", [lambda: (0.0, 0.0)])
    collector = usage.UsageCollector()
    token = usage._collector.set(collector)
    yield collector
    usage._collector.reset(token)


def counts(collector: usage.UsageCollector) -> Counts:
    """Return what was counted since the last call."""
    (found,) = collector.take() or [usage.UsageEntry("", "", {})]
    return found.counts


def s3_seen(proxy: FaultyProxy) -> Counts:
    """Return what came by since the last call, as it is counted."""
    found: Counts = {}
    for method, target in proxy.seen:
        counter = {"GET": "s3_get", "HEAD": "s3_get", "PUT": "s3_put", "DELETE": "s3_delete"}
        name = counter.get(method, "s3_put")
        if method == "GET" and "list-type=2" in target:
            name = "s3_list"
        if method == "POST" and "delete" in target.partition("?")[2].split("&"):
            name = "s3_delete"
        found[name] = found.get(name, 0) + 1
    proxy.seen.clear()
    return found


def requests_in(found: Counts) -> Counts:
    return {name: amount for name, amount in found.items() if not name.endswith("_bytes")}


def test_objects_small_and_large(
    store: S3ObjectStore, proxy: FaultyProxy, counted: usage.UsageCollector
) -> None:
    put(store, "small", b"x" * 50)
    found = counts(counted)
    assert found == {"s3_put": 1, "s3_put_bytes": 50}
    assert requests_in(found) == s3_seen(proxy)
    put(store, "large", b"y" * 1_000)
    found = counts(counted)
    assert found["s3_put_bytes"] >= 1_000
    assert requests_in(found) == s3_seen(proxy) == {"s3_put": 6}
    writer = store.create("given up")
    writer.write(b"z" * 400)
    writer.abort()
    assert requests_in(counts(counted)) == s3_seen(proxy)


def test_reads_near_each_other_and_apart(
    store: S3ObjectStore, proxy: FaultyProxy, counted: usage.UsageCollector
) -> None:
    store.sizes = store.sizes._replace(single_bytes_max=4 << 20)
    put(store, "a", bytes(2 << 20))
    counts(counted)
    proxy.seen.clear()
    for spans in (
        [(0, 10), (20, 30)],
        [(0, 10), (10 + 32 * KIB, 11 + 32 * KIB)],
        [(0, 10), (11 + 32 * KIB, 12 + 32 * KIB)],
        [(500_000, 500_010), (0, 10), (5, 100_000), (90_000, 90_001)],
        [(n * 100_000, n * 100_000 + 1) for n in range(19)],
        [(7, 7)],
        [],
    ):
        store.read("a", spans)
        found = counts(counted)
        assert requests_in(found) == s3_seen(proxy), spans
        assert found.get("s3_get_bytes", 0) == sum(end - start for start, end in spans)
    store.read_many([("a", [(n, n + 1)]) for n in range(40)])
    assert requests_in(counts(counted)) == s3_seen(proxy) == {"s3_get": 40}


def test_looks_listings_and_deletions(
    store: S3ObjectStore, proxy: FaultyProxy, counted: usage.UsageCollector
) -> None:
    for n in range(1_001):
        put(store, f"many/{n:04}", b"")
    counts(counted)
    proxy.seen.clear()
    assert store.look("many/0000") is not None
    assert store.look("no/such") is None
    assert store.size_of("many/0001") == 0
    assert requests_in(counts(counted)) == s3_seen(proxy)
    assert len(list(store.list("many/"))) == 1_001
    assert requests_in(counts(counted)) == s3_seen(proxy) == {"s3_list": 2}
    assert list(store.list("none/")) == []
    assert next(store.list("many/")) == "many/0000"
    assert requests_in(counts(counted)) == s3_seen(proxy) == {"s3_list": 2}
    store.delete(f"many/{n:04}" for n in range(1_001))
    assert requests_in(counts(counted)) == s3_seen(proxy) == {"s3_delete": 2}


def test_requests_that_fail_are_counted_as_often_as_they_were_sent(
    store: S3ObjectStore, proxy: FaultyProxy, counted: usage.UsageCollector
) -> None:
    proxy.times(2, "PUT", BUSY)
    put(store, "a", b"x")
    with pytest.raises(ObjectExistsError):
        put(store, "a", b"x")
    with pytest.raises(ObjectMissingError):
        store.read("b", [(0, 1)])
    with pytest.raises(CorruptError):
        store.read("a", [(5, 6)])
    assert requests_in(counts(counted)) == s3_seen(proxy)


def test_a_store_that_cannot_be_reached_costs_nothing(
    ministack: S3Server, counted: usage.UsageCollector
) -> None:
    nowhere = ministack.store("p", url="http://127.0.0.1:9")
    with pytest.raises(Exception, match="cannot reach"):
        put(nowhere, "a")
    clients = ministack.clients(url="http://127.0.0.1:9")
    with pytest.raises(Exception, match="cannot reach"):
        Items(clients, "t").get({"pk": {"S": "a"}, "sk": {"S": "b"}})
    clients.close()
    assert counts(counted) == {}


def test_items_with_their_units(
    ministack: S3Server, clients: AmazonClients, proxy: FaultyProxy, counted: usage.UsageCollector
) -> None:
    items = Items(clients, ministack.new_table(TRACKER_TABLE))
    counts(counted)
    proxy.seen.clear()

    def item(sk: str, size: int = 10) -> dict[str, object]:
        return {"pk": {"S": "a"}, "sk": {"S": sk}, "body": {"B": bytes(size)}}

    def used() -> tuple[float, float, float]:
        found = counts(counted)
        assert found.pop("dynamodb_requests") == len(proxy.seen)
        proxy.seen.clear()
        units = found.pop("dynamodb_read_units", 0), found.pop("dynamodb_write_units", 0)
        assert found == {}
        return *units, 0

    new = WriteCondition(IS_NEW)
    items.put(item("1"), new)
    assert used() == (0, 1, 0)
    items.put(item("2", 2_000), new)
    assert used() == (0, 2, 0)
    items.get({"pk": {"S": "a"}, "sk": {"S": "1"}})
    assert used() == (1, 0, 0)
    items.page("a", items_max=10)
    assert used() == (1, 0, 0)
    with pytest.raises(ConditionError):
        items.put(item("1"), new)
    assert used() == (0, 1, 0)
    items.transact([{"Put": {"Item": item("3")}}, {"Put": {"Item": item("4")}}])
    assert used() == (0, 4, 0)
    with pytest.raises(ConditionError):
        items.transact([{"Put": {"Item": item("3"), **new.arguments()}}])
    assert used() == (0, 2, 0)
    items.put_many([item(str(n)) for n in range(100, 160)])
    assert used() == (0, 60, 0)
    proxy.times(1, "POST", UNANSWERED)
    items.delete({"pk": {"S": "a"}, "sk": {"S": "1"}})
    assert used()[1] <= 2


def test_what_adding_to_the_ledger_takes_is_what_it_says(
    ministack: S3Server, clients: AmazonClients, counted: usage.UsageCollector
) -> None:
    ledger = DynamoUsageLedger(clients, ministack.new_table(TRACKER_TABLE), registry="")
    counts(counted)
    most = {f"a_long_name_of_a_counter_{n}": 123_456.654321 for n in range(20)}
    for _ in range(2):
        ledger.add(LedgerEntry(table="1" * 32, hour=480_000, kind="ingest", counts=most))
        assert counts(counted) == ledger.taken_by_add


def test_messages(
    ministack: S3Server, clients: AmazonClients, proxy: FaultyProxy, counted: usage.UsageCollector
) -> None:
    queue = SqsJobQueue(
        clients, make_queue(clients, ministack.new_prefix(), receives_max=3), rng=system_random()
    )
    counts(counted)
    proxy.seen.clear()
    proxy.times(1, "POST", Answer(400, "ThrottlingException"))
    queue.send([Message(str(n).encode()) for n in range(25)])
    received = queue.receive(messages_max=10, hidden_seconds=60)
    queue.extend(received[0].receipt, hidden_seconds=0)
    queue.delete(*(one.receipt for one in received))
    assert counts(counted) == {"sqs_requests": len(proxy.seen)}
