"""Requests to S3 that are lost, refused or never answered: what the object store says of each
(H2, H25)."""

from collections.abc import Callable

import pytest

from lakebed.backends.aws import Patience, S3ObjectStore
from lakebed.backends.memory import VirtualClock
from lakebed.errors import (
    DeniedError,
    InvalidError,
    LakebedError,
    ObjectExistsError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.sorted_files.format.object_sink import finish_object
from tests.contracts.amazon.test_s3_objects import facts, put
from tests.servers.faulty_proxy import FLIPPED, LOST, UNANSWERED, Answer, FaultyProxy
from tests.servers.s3 import S3Server

BUSY = Answer(503, "SlowDown")
ALWAYS = 1_000
TRIES = 8
Calls = Callable[[S3ObjectStore], object]


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def store(ministack: S3Server, proxy: FaultyProxy, clock: VirtualClock) -> S3ObjectStore:
    """What waits, waits in virtual time."""
    prefix = ministack.new_prefix()
    return ministack.store(
        prefix,
        url=proxy.url,
        clock=clock,
        patience=Patience(),
        single_bytes_max=100,
        part_bytes_min=300,
    )


def requests(proxy: FaultyProxy, method: str) -> int:
    return sum(1 for asked, _ in proxy.seen if asked == method)


@pytest.mark.parametrize(
    "fault", [LOST, BUSY, FLIPPED, Answer(500, "InternalError"), Answer(429, "SlowDown")]
)
def test_a_put_that_did_not_arrive_is_repeated(
    store: S3ObjectStore, proxy: FaultyProxy, fault: Answer
) -> None:
    proxy.times(2, "PUT", fault)
    assert put(store, "a") == facts("a", b"body") == store.look("a")
    assert requests(proxy, "PUT") == 3


def test_a_put_whose_answer_was_lost_is_found_by_its_own_second_try(
    store: S3ObjectStore, proxy: FaultyProxy
) -> None:
    proxy.times(1, "PUT", UNANSWERED)
    with pytest.raises(ObjectExistsError):
        put(store, "a")
    assert store.look("a") == facts("a", b"body")


def test_the_writers_of_files_take_a_lost_answer_for_success(
    store: S3ObjectStore, proxy: FaultyProxy
) -> None:
    told = facts("a", b"body")
    writer = store.create("a")
    writer.write(b"body")
    proxy.times(1, "PUT", UNANSWERED)
    finish_object(store, writer, path="a", size=told.size, checksum=told.checksum)


@pytest.mark.parametrize("fault", [LOST, UNANSWERED, Answer(500, "InternalError", after=True)])
def test_a_put_that_is_never_answered_has_an_unknown_outcome(
    store: S3ObjectStore, proxy: FaultyProxy, clock: VirtualClock, fault: Answer
) -> None:
    proxy.rule = lambda method, _: (LOST if proxy.seen[:-1] else fault) if method == "PUT" else None
    with pytest.raises(UnknownOutcomeError):
        put(store, "a")
    assert requests(proxy, "PUT") == TRIES
    assert store.look("a") == (None if fault == LOST else facts("a", b"body"))


def test_one_try_without_an_answer_makes_all_of_them_doubtful(
    store: S3ObjectStore, proxy: FaultyProxy
) -> None:
    for last in (BUSY, Answer(403, "AccessDenied")):
        proxy.seen.clear()
        proxy.rule = lambda method, _, last=last: LOST if not proxy.seen[:-1] else last
        with pytest.raises(UnknownOutcomeError):
            put(store, "a")


def test_a_store_that_stays_busy_is_waited_for_and_then_said_to_be(
    store: S3ObjectStore, proxy: FaultyProxy, clock: VirtualClock
) -> None:
    calls: list[Calls] = [
        lambda store: put(store, "a"),
        lambda store: store.look("a"),
        lambda store: store.read("a", [(0, 1)]),
        lambda store: list(store.list("")),
        lambda store: store.delete(["a"]),
    ]
    for call in calls:
        proxy.seen.clear()
        proxy.rule = lambda _method, _target: BUSY
        begun = clock.monotonic()
        with pytest.raises(UnavailableError, match="503"):
            call(store)
        assert len(proxy.seen) == TRIES
        assert 0.1 < clock.monotonic() - begun < 30


def test_a_store_that_is_busy_for_a_while_only_costs_time(
    store: S3ObjectStore, proxy: FaultyProxy
) -> None:
    put(store, "a", b"0123")
    for method, call in (
        ("HEAD", lambda: store.look("a")),
        ("GET", lambda: store.read("a", [(0, 4), (1, 2)])),
        ("GET", lambda: list(store.list(""))),
        ("POST", lambda: store.delete(["a"])),
    ):
        for fault in (BUSY, LOST, UNANSWERED):
            proxy.times(3, method, fault)
            call()
    assert store.look("a") is None


def test_a_deletion_that_is_never_answered_has_an_unknown_outcome(
    store: S3ObjectStore, proxy: FaultyProxy
) -> None:
    put(store, "a")
    proxy.times(ALWAYS, "POST", UNANSWERED)
    with pytest.raises(UnknownOutcomeError):
        store.delete(["a"])
    assert store.look("a") is None


def test_another_request_for_the_same_key_is_waited_for_not_taken_for_an_object(
    store: S3ObjectStore, proxy: FaultyProxy
) -> None:
    proxy.times(2, "PUT", Answer(409, "ConditionalRequestConflict"))
    assert put(store, "a") == facts("a", b"body")


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (Answer(403, "AccessDenied"), DeniedError, "s3:PutObject"),
        (Answer(400, "ExpiredToken"), DeniedError, "ExpiredToken"),
        (Answer(403, "InvalidAccessKeyId"), DeniedError, "must be valid"),
        (Answer(301, "PermanentRedirect"), InvalidError, "region"),
        (Answer(400, "KeyTooLongError"), InvalidError, "KeyTooLongError"),
        (Answer(404, "NoSuchBucket"), InvalidError, "no such bucket"),
        (Answer(403, "RequestTimeTooSkewed"), UnavailableError, "RequestTimeTooSkewed"),
    ],
)
def test_what_cannot_work_is_not_repeated_and_says_why(
    store: S3ObjectStore,
    proxy: FaultyProxy,
    answer: Answer,
    kind: type[LakebedError],
    says: str,
) -> None:
    proxy.times(ALWAYS, "PUT", answer)
    with pytest.raises(kind, match=says) as refusal:
        put(store, "a")
    assert requests(proxy, "PUT") == (TRIES if kind is UnavailableError else 1)
    assert "told by the proxy" not in str(refusal.value)
    assert refusal.value.__cause__ is None
    assert refusal.value.__suppress_context__
