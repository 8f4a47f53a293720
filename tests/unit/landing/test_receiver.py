"""What a sender hears, and when: success only after its segment is there (protocol R9)."""

from collections.abc import Callable, Iterable

import pytest

from lakebed.backends.memory import MemoryObjectStore, VirtualClock
from lakebed.errors import (
    CorruptError,
    DeniedError,
    LakebedError,
    ObjectExistsError,
    StorageFullError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.landing.push import receiver as module
from lakebed.landing.push.receiver import (
    Answer,
    BodyLostError,
    Receiver,
    ReceiverRules,
    RequestHead,
)
from lakebed.landing.push.segment_store import SegmentStore
from lakebed.landing.push.segments import Segment
from lakebed.model.feeds.positions import connection_id
from lakebed.model.paths import segment_path
from lakebed.ports.object_store import ObjectFacts
from lakebed.ports.secrets import Secret

CONNECTION = connection_id("fe" * 16)
NDJSON = {"content-type": "application/x-ndjson"}


class World:
    """A receiver over a store in memory, and what it has landed."""

    def __init__(self, **rules: object) -> None:
        self.clock = VirtualClock()
        self.objects = MemoryObjectStore(self.clock)
        self.store = SegmentStore(self.objects, CONNECTION)
        self.landed: list[bytes] = []
        self.tokens = iter(range(1, 1_000))
        given = {"feed": "orders", "body_bytes_max": 100, "buffer_bytes": 150} | rules
        self.receiver = Receiver(
            ReceiverRules(**given),
            self.store,
            lambda prefix: [item for item in self.landed if item.startswith(prefix)],
            clock=self.clock,
            token=lambda: next(self.tokens),
        )

    def push(
        self,
        body: bytes = b"a\nb\n",
        *,
        key: str | None = None,
        headers: dict[str, str] | None = None,
        method: str = "POST",
        path: str = "/orders",
        read: Callable[[int], bytes] | None = None,
    ) -> Answer:
        given = NDJSON | {"content-length": str(len(body))} | (headers or {})
        if key is not None:
            given["idempotency-key"] = key
        pairs = [(name, value) for name, value in given.items() if value]
        return self.receiver.respond(RequestHead(method, path, pairs), read or (lambda _: body))

    def segments(self) -> list[Segment]:
        return [segment for name in self.store.names(99) if (segment := self.store.read(name))]

    def bodies(self) -> list[bytes]:
        return [segment.body for segment in self.segments()]

    def land(self) -> None:
        """Do as a worker does."""
        names = list(self.store.names(99))
        self.landed += [name.item for name in names]
        self.store.delete(names)


@pytest.fixture
def world() -> World:
    return World()


def test_a_sender_hears_success_when_its_segment_is_there(world: World) -> None:
    answer = world.push(b"a\nb\nc")
    assert (answer.status, answer.said) == (200, {"records": 3, "state": "landed"})
    (segment,) = world.segments()
    assert (segment.body, segment.framing, segment.count) == (b"a\nb\nc", "lines", 3)
    assert segment.received == world.clock.now()


@pytest.mark.parametrize("error", [UnavailableError, StorageFullError, DeniedError])
def test_no_success_without_a_segment(
    world: World, error: type[LakebedError], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_self: object) -> ObjectFacts:
        raise error("no")

    monkeypatch.setattr("lakebed.backends.memory.object_store.MemoryObjectWriter.finish", fails)
    answer = world.push()
    assert (answer.status, answer.retry_after) == (503, 1)
    assert world.segments() == []


class Forgetful:
    """Loses answers to puts; lands: whether they are there nevertheless."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, lands: Iterable[bool]) -> None:
        from lakebed.backends.memory.object_store import MemoryObjectWriter

        finish, left = MemoryObjectWriter.finish, iter(lands)

        def loses(writer: MemoryObjectWriter) -> ObjectFacts:
            try:
                does_land = next(left)
            except StopIteration:
                return finish(writer)
            if does_land:
                finish(writer)
            raise UnknownOutcomeError("no answer")

        monkeypatch.setattr(MemoryObjectWriter, "finish", loses)


@pytest.mark.parametrize("lands", [[True], [False], [False, False], [False, True]])
@pytest.mark.parametrize("key", ["k", None])
def test_after_a_lost_answer_the_segment_is_read_back_or_put_again(
    world: World, lands: list[bool], key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    Forgetful(monkeypatch, lands)
    assert world.push(key=key).status == 200
    assert world.bodies() == [b"a\nb\n"]


def test_a_store_that_never_answers_is_no_success(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    Forgetful(monkeypatch, [False] * 99)
    assert world.push(key="k").status == 503
    assert world.segments() == []


@pytest.mark.parametrize("is_landed", [False, True])
def test_a_repeated_key_with_the_same_body_is_landed_once(world: World, *, is_landed: bool) -> None:
    assert world.push(key="k").status == 200
    if is_landed:
        world.land()
    answer = world.push(key="k")
    assert (answer.status, answer.said["records"]) == (200, 2)
    assert len(world.segments()) == (not is_landed)


@pytest.mark.parametrize("is_landed", [False, True])
@pytest.mark.parametrize(
    "changed", [{"body": b"a\nc\n"}, {"headers": {"content-type": "application/json"}}]
)
def test_a_repeated_key_with_another_body_is_refused(
    world: World, changed: dict[str, object], *, is_landed: bool
) -> None:
    assert world.push(key="k").status == 200
    if is_landed:
        world.land()
    assert world.push(key="k", **changed).status == 409  # type: ignore[arg-type]  # of a table
    assert len(world.segments()) == (not is_landed)
    assert world.push(key="other", **changed).status == 200  # type: ignore[arg-type]  # of a table


def test_requests_without_keys_are_landed_each(world: World) -> None:
    assert [world.push().status, world.push().status] == [200, 200]
    assert world.bodies() == [b"a\nb\n"] * 2


@pytest.mark.parametrize(
    ("kind", "records"),
    [
        ("application/x-ndjson; charset=utf-8", 2),
        ("Text/Plain", 2),
        ("application/json", 1),
        ("application/octet-stream", 1),
    ],
)
def test_a_content_type_says_what_a_record_is(world: World, kind: str, records: int) -> None:
    assert world.push(headers={"content-type": kind}).said["records"] == records


@pytest.mark.parametrize(
    ("status", "given"),
    [
        (400, {"body": b""}),
        (400, {"headers": {"content-length": "-1"}}),
        (400, {"headers": {"content-length": "9" * 30}}),
        (400, {"headers": {"content-length": "³"}}),
        (400, {"key": "ü"}),
        (400, {"key": "x" * 256}),
        (404, {"path": "/other"}),
        (405, {"method": "PUT"}),
        (411, {"headers": {"content-length": ""}}),
        (411, {"headers": {"transfer-encoding": "chunked"}}),
        (413, {"body": b"x" * 101}),
        (415, {"headers": {"content-type": ""}}),
        (415, {"headers": {"content-type": "text/html"}}),
        (415, {"headers": {"content-encoding": "gzip"}}),
    ],
)
def test_what_cannot_be_taken_is_refused_before_its_body_is_read(
    world: World, status: int, given: dict[str, object]
) -> None:
    def unread(_: int) -> bytes:
        pytest.fail("its body was read")

    answer = world.push(read=unread, **given)  # type: ignore[arg-type]  # of a table
    assert answer.status == status
    assert answer.said["problem"]
    assert answer.said["hint"]
    assert not answer.is_body_read
    assert world.segments() == []


def test_two_headers_of_one_name_are_refused(world: World) -> None:
    for name in ("content-length", "idempotency-key", "authorization"):
        pairs = [*NDJSON.items(), ("content-length", "1"), (name, "1"), (name, "2")]
        head = RequestHead("POST", "/", pairs)
        assert world.receiver.respond(head, lambda _: b"x").status == 400


def test_a_body_shorter_than_its_length_is_not_landed(world: World) -> None:
    assert world.push(headers={"content-length": "9"}).status == 400
    assert world.segments() == []


def test_a_token_is_asked_for_if_one_is_set() -> None:
    world = World(token=Secret("hunter2"))
    for shown in ("", "Bearer hunter", "Basic hunter2", "Bearer hunter2 x", "Bearer \udcff"):
        answer = world.push(headers={"authorization": shown})
        assert answer.status == 401
        assert "hunter2" not in str(answer)
    assert world.push(headers={"authorization": "Bearer hunter2"}).status == 200


def test_bodies_beyond_the_buffer_wait(world: World) -> None:
    answers: list[Answer] = []

    def meanwhile(_: int) -> bytes:
        answers.append(world.push(b"y" * 60))
        return b"x" * 100

    assert world.push(b"x" * 100, read=meanwhile).status == 200
    assert [(answer.status, answer.retry_after) for answer in answers] == [(429, 1)]
    assert world.push(b"y" * 60).status == 200


def test_the_buffer_is_free_again_whatever_happened(world: World) -> None:
    def lost(_: int) -> bytes:
        raise BodyLostError

    for _ in range(3):
        with pytest.raises(BodyLostError):
            world.push(b"x" * 100, read=lost)
    assert world.receiver._in_hand == 0
    assert world.push(b"x" * 100).status == 200


def test_senders_wait_when_too_many_segments_do(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SEGMENTS_WAITING_MAX", 3)
    for _ in range(3):
        assert world.push().status == 200
        world.clock.advance(10)
    answer = world.push()
    assert (answer.status, answer.retry_after) == (429, 10)
    world.land()
    world.clock.advance(10)
    assert world.push().status == 200


def test_success_may_mean_that_records_are_in_the_landing_table() -> None:
    world = World(answer="committed")
    world.clock.on_sleep = lambda _: world.land()
    answer = world.push(key="k")
    assert (answer.status, answer.said["state"]) == (200, "committed")
    assert world.segments() == []
    assert world.push(key="k").said["state"] == "committed"


def test_what_is_landed_and_not_committed_is_no_success_yet() -> None:
    world = World(answer="committed")
    answer = world.push()
    assert (answer.status, answer.said["state"], answer.retry_after) == (202, "landed", 10)
    assert len(world.segments()) == 1


def test_get_says_that_it_listens(world: World) -> None:
    assert world.push(method="GET").said == {"feed": "orders"}


def test_a_damaged_segment_is_no_success(world: World) -> None:
    world.push(key="k")
    (name,) = world.store.names(9)
    path = segment_path(CONNECTION, name)
    world.objects.delete([path])
    writer = world.objects.create(path)
    writer.write(b"lakebed segment\n" + b"x" * 99)
    writer.finish()
    answer = world.push(key="k")
    assert (answer.status, answer.said["code"]) == (500, "corrupt")
    with pytest.raises(CorruptError, match="damaged"):
        world.store.read(name)


def test_a_segment_is_never_overwritten(world: World) -> None:
    world.push(key="k")
    (name,) = world.store.names(9)
    writer = world.objects.create(segment_path(CONNECTION, name))
    writer.write(b"other")
    with pytest.raises(ObjectExistsError):
        writer.finish()
