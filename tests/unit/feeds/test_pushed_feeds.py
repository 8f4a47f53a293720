"""What is pushed into a feed of a lake is landed, then a row, once, whoever dies in between."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import lakebed
from lakebed.bootstrap.feeds.receivers import _address_of, receiver_of
from lakebed.config.feed_sources import PushFeed
from lakebed.errors import InvalidError
from lakebed.feed_errors import SecretMissingError
from lakebed.landing.push.receiver import Answer, Receiver, RequestHead
from lakebed.landing.push.segment_source import SegmentReader

DEFINED = """
[feed.orders]
source = {{ push = true{source} }}
decoder = {{ format = "json" }}
[connection.all]
feed = "orders"
table = "orders"
"""
DIED = "died before it deleted"


class Pushed:
    """A lake with a feed that senders push to."""

    def __init__(self, folder: Path, source: str = "", *, in_file: bool = False) -> None:
        self.lake = lakebed.connect(folder / "lake", create=True)
        schema = lakebed.schema_of(row_keys={"id": "int64"}, values={"n": "int64"})
        self.lake.create_table("orders", schema)
        self.text = DEFINED.format(source=source)
        self.feeds = lakebed.FeedDefinitions(self.lake)
        self.in_file = in_file
        if not in_file:
            self.feeds.apply(self.text)
            self.feeds.start("orders")

    def receiver(self) -> Receiver:
        text = self.text if self.in_file else None
        return receiver_of(self.lake._app, "orders", text)[0]

    def push(self, *ids: int, key: str = "", receiver: Receiver | None = None) -> Answer:
        body = b"".join(json.dumps({"id": i, "n": 7 * i}).encode() + b"\n" for i in ids)
        headers = [("content-type", "application/x-ndjson"), ("content-length", str(len(body)))]
        headers += [("idempotency-key", key)] if key else []
        head = RequestHead("POST", "/orders", headers)
        return (receiver or self.receiver()).respond(head, lambda _: body)

    def run(self) -> dict[str, int]:
        text = self.text if self.in_file else None
        return {done.name: done.tally.read for done in lakebed.Feeds(self.lake, text).run()}

    def ids(self) -> list[int]:
        return self.lake.table("orders").query().read_all()["id"].to_pylist()

    def landed(self) -> int:
        return self.lake.table("orders_landing").query().read_all().num_rows

    def waiting(self) -> list[str]:
        return list(self.lake._app.objects.list("feeds/"))


@pytest.fixture
def pushed(tmp_path: Path) -> Iterator[Pushed]:
    given = Pushed(tmp_path)
    yield given
    given.lake.close()


def test_what_is_pushed_becomes_rows_and_leaves_its_folder(pushed: Pushed) -> None:
    assert pushed.push(1, 2).status == pushed.push(3).status == 200
    assert len(pushed.waiting()) == 2
    assert pushed.run() == {"orders": 3, "all": 3}
    assert pushed.ids() == [1, 2, 3]
    assert pushed.waiting() == []
    assert pushed.run() == {"orders": 0, "all": 0}
    (finding,) = [pushed.feeds.verify_landing("orders")]
    assert (finding.commits, finding.findings) == (1, ())
    assert [f for f in pushed.lake.fsck(deep=True).findings if f.severity == "damage"] == []


def test_a_feed_of_a_file_is_pushed_to_as_well(tmp_path: Path) -> None:
    pushed = Pushed(tmp_path, in_file=True)
    assert pushed.push(1).status == 200
    assert pushed.run() == {"orders": 1, "all": 1}
    pushed.lake.close()


def test_a_worker_that_dies_before_it_deletes_lands_nothing_twice(
    pushed: Pushed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object) -> None:
        raise KeyboardInterrupt(DIED)

    pushed.push(1, key="a")
    with monkeypatch.context() as patched:
        patched.setattr(SegmentReader, "acknowledge", dies)
        with pytest.raises(KeyboardInterrupt, match=DIED):
            pushed.run()
    assert pushed.landed() == 1
    assert len(pushed.waiting()) == 1
    pushed.push(2)
    assert pushed.run() == {"orders": 1, "all": 2}
    assert pushed.ids() == [1, 2]
    assert pushed.waiting() == []


def test_a_key_is_known_when_its_segment_is_gone(pushed: Pushed) -> None:
    assert pushed.push(1, key="a").status == 200
    pushed.run()
    assert pushed.push(1, key="a").status == 200
    assert pushed.push(2, key="a").status == 409
    assert pushed.waiting() == []
    assert pushed.push(2, key="b").status == 200
    pushed.run()
    assert pushed.ids() == [1, 2]


def test_a_put_that_arrives_after_its_segment_was_landed_is_deleted(pushed: Pushed) -> None:
    pushed.push(1, key="a")
    objects = pushed.lake._app.objects
    (path,) = pushed.waiting()
    size = objects.size_of(path)
    assert size is not None
    (encoded,) = objects.read(path, [(0, size)])
    pushed.run()
    late = objects.create(path)
    late.write(encoded)
    late.finish()
    assert pushed.run()["orders"] == 0
    assert pushed.waiting() == []
    assert pushed.ids() == [1]


@pytest.mark.parametrize("in_file", [False, True])
def test_what_waits_is_landed_though_the_landing_table_is_dropped(
    tmp_path: Path, *, in_file: bool
) -> None:
    pushed = Pushed(tmp_path, in_file=in_file)
    receiver = pushed.receiver()
    pushed.push(1, key="a", receiver=receiver)
    pushed.run()
    pushed.push(2, key="b", receiver=receiver)
    pushed.lake.drop_table("orders_landing")
    assert pushed.push(3, key="c", receiver=receiver).status == 200
    assert pushed.run()["orders"] == 2
    assert pushed.push(4, receiver=receiver).status == 200
    assert pushed.run()["orders"] == 1
    assert pushed.landed() == 3
    assert pushed.waiting() == []
    pushed.lake.close()


def test_tap_and_status_show_what_was_landed(pushed: Pushed) -> None:
    pushed.push(1)
    pushed.run()
    pushed.push(2)
    lakebed.Feeds(pushed.lake, only=["orders"])
    (batch,) = pushed.feeds.tap("orders", from_start=True, wait_seconds=0)
    assert batch.num_rows == 1
    assert len(pushed.waiting()) == 1, "a look takes nothing"
    (status,) = pushed.feeds.status("orders", listen_seconds=0).feeds
    assert {pipe.name: pipe.taken.tally.read for pipe in status.pipes} == {"orders": 1, "all": 1}


def test_a_token_is_read_from_its_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pushed = Pushed(tmp_path, ', token = "secret:push"')
    with pytest.raises(SecretMissingError):
        pushed.receiver()
    monkeypatch.setenv("LAKEBED_SECRET_PUSH", "hunter2")
    assert pushed.push(1).status == 401
    pushed.lake.close()


def test_the_rules_are_those_of_the_definition(tmp_path: Path) -> None:
    said = ', body_bytes_max = 9, buffer_bytes = 2048, answer = "committed"'
    pushed = Pushed(tmp_path, said)
    rules = pushed.receiver()._rules
    assert (rules.body_bytes_max, rules.buffer_bytes, rules.answer) == (9, 2048, "committed")
    assert pushed.push(1).status == 413
    pushed.lake.close()


def test_only_a_feed_that_is_pushed_to_has_a_receiver(pushed: Pushed) -> None:
    pushed.feeds.apply('[feed.logs]\nfiles = "x*.log"')
    with pytest.raises(InvalidError, match="nothing is pushed into this feed"):
        receiver_of(pushed.lake._app, "logs")
    with pytest.raises(InvalidError, match=r"no feed .*orders"):
        receiver_of(pushed.lake._app, "order")
    with pytest.raises(InvalidError, match="the file defines other"):
        receiver_of(pushed.lake._app, "x", "[feed.other]\nsource = { push = true }")


def test_a_feed_of_sockets_is_landed_alike(tmp_path: Path) -> None:
    pushed = Pushed(tmp_path)
    pushed.feeds.stop("orders")
    pushed.feeds.apply(pushed.text.replace("push = true", 'socket = ":9"'))
    pushed.feeds.start("orders")
    receiver, source = receiver_of(pushed.lake._app, "orders")
    assert _address_of(source) == ("", 9)
    receiver.land("lines", b'{"id": 1, "n": 7}\n', should_stop=lambda: False)
    assert pushed.run() == {"orders": 1, "all": 1}
    pushed.lake.close()


@pytest.mark.parametrize(
    ("said", "address"),
    [(True, ("", None)), (":80", ("", 80)), ("h:80", ("h", 80)), ("[::1]:80", ("::1", 80))],
)
def test_a_definition_says_where_to_listen(
    said: bool | str, address: tuple[str, int | None]
) -> None:
    assert _address_of(PushFeed(push=said)) == address


def test_a_receiver_needs_a_port(pushed: Pushed) -> None:
    with pytest.raises(InvalidError, match="no port to listen on"):
        lakebed.FeedReceiver(pushed.lake, "orders")
