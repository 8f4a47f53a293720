"""What senders hear from the function behind a URL: what a receiver says, for every pushed feed."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import lakebed
from lakebed.bootstrap.feeds.receivers import receiver_of
from lakebed.bootstrap.functions.feed_push import BODY_BYTES_MAX, PushedFeeds, find_in
from lakebed.errors import InvalidError, NewerFormatError, UnavailableError
from lakebed.landing.push.receiver import RequestHead

FEEDS = """
[feed.orders]
source = { push = true, body_bytes_max = 4200000 }
decoder = { format = "json" }
[feed.small]
source = { push = true, body_bytes_max = 10 }
[feed.guarded]
source = { push = true, token = "secret:sender" }
[feed.patient]
source = { push = true, answer = "committed" }
[feed.lines]
files = "/var/log/*.log"
[feed.wire]
source = { socket = ":9000" }
"""
TWO = b'{"id": 1}\n{"id": 2}\n'
TEXTS = ("text/plain", "application/json")
"""Content types of which Lambda makes text."""


def event(
    body: bytes = TWO,
    path: str = "/orders",
    content_type: str = "application/x-ndjson",
    *,
    method: str = "POST",
    **headers: str,
) -> dict[str, Any]:
    """Return an event as Lambda makes it of a request."""
    given = {"content-length": str(len(body)), "content-type": content_type} if body else {}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    is_text = given.get("content-type", "").partition(";")[0] in TEXTS
    said = body.decode(errors="replace") if is_text else base64.b64encode(body).decode()
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": "",
        "headers": given | {"authorization": "AWS4-HMAC-SHA256 Credential=A/20261125/r/lambda"},
        "requestContext": {"accountId": "1", "http": {"method": method, "path": path}},
        "isBase64Encoded": bool(body) and not is_text,
        **({"body": said} if body else {}),
    }


class World:
    """A lake, and a function of its own for what is pushed into it."""

    def __init__(self, folder: Path) -> None:
        self.lake = lakebed.connect(folder / "lake", create=True)
        self.app = self.lake._app
        self.definitions = lakebed.FeedDefinitions(self.lake)
        self.definitions.apply(FEEDS)
        self.started: set[str] = set()
        self.function = PushedFeeds(
            self.app.feeds.definitions,
            self.app.objects,
            find_in(self.app.registry, self.app.catalog.opened),
            clock=self.app.clock,
            rng=self.app.rng,
        )

    def hears(
        self, body: bytes = TWO, path: str = "/orders", **more: str
    ) -> tuple[int, dict[str, Any], dict[str, str]]:
        """Return status, body and head of an answer."""
        found = self.function.respond(event(body, path, **more))
        assert found["isBase64Encoded"] is False
        assert found["body"].endswith("\n")
        return found["statusCode"], json.loads(found["body"]), found["headers"]

    def status(self, body: bytes = TWO, path: str = "/orders", **more: str) -> int:
        return self.hears(body, path, **more)[0]

    def landed(self, feed: str = "orders") -> list[bytes]:
        if feed not in self.started:
            self.definitions.start(feed)
            self.started.add(feed)
        list(lakebed.Feeds(self.lake).run())
        with_rows = self.lake.table(f"{feed}_landing").query().read_all()
        return with_rows["value"].to_pylist()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    with world.lake:
        yield world


def test_what_is_pushed_by_the_url_is_landed_by_workers(world: World) -> None:
    assert world.hears(idempotency_key="k") == (
        200,
        {"records": 2, "state": "landed"},
        {"Content-Type": "application/json"},
    )
    assert world.hears(b"not json", content_type="application/octet-stream")[0] == 200
    assert sorted(world.landed()) == [b"not json", b'{"id": 1}', b'{"id": 2}']


@pytest.mark.parametrize("is_landed", [False, True])
def test_the_same_key_stores_once_before_and_after_it_is_landed(
    world: World, *, is_landed: bool
) -> None:
    assert world.status(idempotency_key="k") == 200
    if is_landed:
        assert len(world.landed()) == 2
    assert world.status(idempotency_key="k") == 200
    assert world.status(b"other\n", idempotency_key="k") == 409
    assert len(world.landed()) == 2


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (event(), 200),
        (event(method="GET", body=b""), 200),
        (event(method="PUT"), 405),
        (event(b""), 400),
        (event(content_type="text/csv"), 415),
        (event(content_encoding="gzip"), 415),
        (event(idempotency_key="k" * 256), 400),
        (event(content_length="7,7"), 400),
        (event(content_length="9"), 400),
        (event(b"x" * 11, "/small"), 413),
        (event(b"x" * 10, "/small"), 200),
        (event(b'{"id": 1}', content_type="application/json"), 200),
    ],
)
def test_answers_are_those_of_a_receiver(world: World, given: dict[str, Any], status: int) -> None:
    feed = given["rawPath"].removeprefix("/")
    receiver, _ = receiver_of(world.app, feed)
    said = given.get("body", "")
    body = base64.b64decode(said) if given["isBase64Encoded"] else said.encode()
    headers = [*({"content-length": str(len(body))} | given["headers"]).items()]
    method = given["requestContext"]["http"]["method"]
    expected = receiver.respond(RequestHead(method, f"/{feed}", headers), lambda _: body)
    found = world.function.respond(given)
    assert found["statusCode"] == expected.status == status
    assert json.loads(found["body"]) == msgspec.to_builtins(expected.said)


@pytest.mark.parametrize("path", ["/", "/nope", "/orders/x", "/lines", "/wire", "/%6frders", ""])
def test_a_path_that_is_no_pushed_feed_is_refused(world: World, path: str) -> None:
    status, said, _ = world.hears(path=path)
    assert (status, said["problem"]) == (404, "no such feed here")
    assert "/FEED" in said["hint"]


def test_a_body_beyond_what_lambda_takes_of_all_content_types_is_refused(world: World) -> None:
    status, said, _ = world.hears(b"x" * (BODY_BYTES_MAX + 1))
    assert (status, said["problem"]) == (413, "the body is too large")
    assert str(BODY_BYTES_MAX) in said["hint"]
    assert world.status(b"x" * BODY_BYTES_MAX) == 200


def test_a_feed_with_a_token_is_refused_and_said_why(world: World) -> None:
    status, said, _ = world.hears(path="/guarded")
    assert status == 403
    assert "token" in said["problem"]
    assert "token" in said["hint"]


def test_bytes_that_a_text_would_change_are_refused_and_come_as_they_are_otherwise(
    world: World,
) -> None:
    body = b"caf\xe9\n\xf0\x9f\x92"
    assert world.status("smile \N{GRINNING FACE}\n".encode(), content_type="text/plain") == 200
    for content_type in TEXTS:
        status, said, _ = world.hears(body, content_type=content_type)
        assert status == 415
        assert "application/octet-stream" in said["hint"]
    assert world.status(body) == 200
    assert b"caf\xe9" in world.landed()


def test_a_body_that_came_in_pieces_has_the_length_of_what_came(world: World) -> None:
    given = event(transfer_encoding="chunked")
    del given["headers"]["content-length"]
    assert world.function.respond(given)["statusCode"] == 200


def test_definitions_are_read_again_when_they_change_and_not_before(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert world.status(path="/later") == 404
    registry = world.app.feeds.definitions
    reads: list[str] = []
    listed = registry.list
    monkeypatch.setattr(registry, "list", lambda *a, **k: (reads.append(a[0]), listed(*a, **k))[1])
    assert world.status() == 200
    assert not reads
    world.definitions.apply("[feed.later]\nsource = { push = true }\n")
    assert world.status(path="/later") == 200
    assert reads
    world.definitions.drop("later", cascade=True)
    assert world.status(path="/later") == 404


@pytest.mark.parametrize("error", [UnavailableError, NewerFormatError])
def test_a_registry_that_cannot_be_read_asks_senders_to_repeat(
    world: World, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def number() -> int:
        raise error("throttled")

    assert world.status() == 200
    monkeypatch.setattr(world.app.feeds.definitions, "number", number)
    status, said, head = world.hears()
    assert (status, head["Retry-After"]) == (503, "1")
    assert said["code"] == error("x").code()


def test_a_store_that_is_throttled_asks_senders_to_repeat(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def create(_path: str) -> None:
        raise UnavailableError("SlowDown")

    monkeypatch.setattr(world.app.objects, "create", create)
    assert world.hears()[::2] == (503, {"Content-Type": "application/json", "Retry-After": "1"})


def test_a_feed_that_answers_when_committed_waits_as_long_as_a_receiver(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakebed.landing.push.receiver.COMMITTED_SECONDS_MAX", 0.1)
    status, said, head = world.hears(path="/patient", idempotency_key="k")
    assert (status, said["state"], head["Retry-After"]) == (202, "landed", "10")
    assert len(world.landed("patient")) == 2
    status, said, _ = world.hears(path="/patient", idempotency_key="k")
    assert (status, said["state"]) == (200, "committed")


@pytest.mark.parametrize(
    "wrong", [{}, {"Records": []}, event() | {"body": "?", "isBase64Encoded": True}]
)
def test_what_is_no_event_of_a_url_is_an_error_of_the_run(
    world: World, wrong: dict[str, Any]
) -> None:
    with pytest.raises(InvalidError, match="not a request"):
        world.function.respond(wrong)
