"""A receiver's server: what senders of every kind hear, and that none of them holds it up."""

import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from lakebed.backends.memory import MemoryObjectStore
from lakebed.backends.system import SystemClock, system_random
from lakebed.backends.web import push_server
from lakebed.backends.web.push_server import push_server as server_of
from lakebed.errors import InvalidError
from lakebed.landing.push.receiver import Answer, Receiver, ReceiverRules
from lakebed.landing.push.segment_store import SegmentStore
from lakebed.model.feeds.positions import connection_id

CONNECTION = connection_id("fe" * 16)
HEAD = b"POST /orders HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\n"
WAIT_SECONDS_MAX = 10


class Served:
    """A server that answers, over a store in memory."""

    def __init__(self, connections_max: int = 4, buffer_bytes: int = 64 << 20) -> None:
        clock = SystemClock()
        self.store = SegmentStore(MemoryObjectStore(clock), CONNECTION)
        self.receiver = Receiver(
            ReceiverRules(feed="orders", body_bytes_max=1 << 20, buffer_bytes=buffer_bytes),
            self.store,
            lambda _: [],
            clock=clock,
            token=lambda: system_random().getrandbits(128),
        )
        self.stopped = threading.Event()
        address = ("127.0.0.1", 0)
        self.server = server_of(
            self.receiver, address, clock=clock, connections_max=connections_max
        )
        self.thread = threading.Thread(target=self.server.serve, args=(self.stopped.is_set,))
        self.thread.start()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.server.port), WAIT_SECONDS_MAX)

    def send(self, *parts: bytes) -> bytes:
        """Return all that is answered until the connection is closed."""
        with closing(self.connect()) as connection:
            for part in parts:
                connection.sendall(part)
            return rest_of(connection)

    def post(self, body: bytes) -> tuple[int, bytes]:
        with closing(http.client.HTTPConnection("127.0.0.1", self.server.port)) as client:
            client.request("POST", "/orders", body, {"Content-Type": "text/plain"})
            answer = client.getresponse()
            return answer.status, answer.read()

    def bodies(self) -> list[bytes]:
        return [s.body for name in self.store.names(99) if (s := self.store.read(name))]

    def close(self) -> None:
        self.stopped.set()
        self.thread.join(30)
        assert not self.thread.is_alive()


def rest_of(connection: socket.socket) -> bytes:
    held = b""
    while some := connection.recv(65_536):
        held += some
    return held


def trickle(connection: socket.socket) -> None:
    """Send a byte now and then."""
    end = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < end:
        connection.sendall(b"x")
        time.sleep(0.05)


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_SECONDS_MAX
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def served() -> Iterator[Served]:
    given = Served()
    yield given
    given.close()


def test_requests_of_one_connection_are_answered_one_after_the_other(served: Served) -> None:
    one = HEAD + b"Content-Length: 3\r\n\r\na\nb"
    answer = served.send(one + one, HEAD + b"Connection: close\r\nContent-Length: 1\r\n\r\nc")
    assert answer.count(b"HTTP/1.1 200 OK\r\n") == 3
    assert answer.count(b'{"records":2,"state":"landed"}\n') == 2
    assert sorted(served.bodies()) == [b"a\nb", b"a\nb", b"c"]


def test_a_sender_that_asks_before_it_sends_its_body_is_answered(served: Served) -> None:
    with closing(served.connect()) as connection:
        connection.sendall(HEAD + b"Expect: 100-continue\r\nContent-Length: 1\r\n\r\n")
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"c")
        assert connection.recv(100).startswith(b"HTTP/1.1 200 OK")
    refused = served.send(HEAD + b"Expect: 100-continue\r\nContent-Length: 9999999\r\n\r\n")
    assert refused.startswith(b"HTTP/1.1 413 ")
    assert served.bodies() == [b"c"]


def test_a_body_that_is_refused_does_not_keep_its_sender_from_hearing_why(served: Served) -> None:
    assert served.post(b"x" * (2 << 20))[0] == 413
    with closing(served.connect()) as connection:
        connection.sendall(HEAD + b"Content-Length: 2000000\r\n\r\n")
        time.sleep(0.3)  # the answer is there, and the sender does not look yet
        for _ in range(20):
            connection.sendall(b"x" * 100_000)
        assert rest_of(connection).startswith(b"HTTP/1.1 413 ")
    assert served.bodies() == []


@pytest.mark.parametrize(
    "request_",
    [
        b"POST /orders\r\n\r\n",
        b"GARBAGE\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\r\n",
        b"POST /orders HTTP/2.0\r\n\r\n",
        b"POST http://x/orders HTTP/1.1\r\n\r\n",
        b"POST /" + b"x" * 9_000 + b" HTTP/1.1\r\n\r\n",
        HEAD + b"Content-Length : 1\r\n\r\nx",
        HEAD + b"Content-Length: 1\r\nX: a\r\n b\r\n\r\nx",
        HEAD + b"no colon\r\nContent-Length: 1\r\n\r\nx",
        HEAD + b"X: y\r\n" * 200 + b"Content-Length: 1\r\n\r\nx",
        HEAD + b"X: " + b"y" * 70_000 + b"\r\nContent-Length: 1\r\n\r\nx",
    ],
)
def test_what_is_malformed_is_refused(served: Served, request_: bytes) -> None:
    assert served.send(request_).startswith(b"HTTP/1.1 400 ")
    assert served.bodies() == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (b"Content-Length: 1\r\nContent-Length: 2\r\n", b"400"),
        (b"Content-Length: +1\r\n", b"400"),
        (b"Transfer-Encoding: chunked\r\n", b"411"),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 1\r\n", b"411"),
        (b"", b"411"),
    ],
)
def test_what_servers_read_differently_is_refused_and_ends_the_connection(
    served: Served, headers: bytes, status: bytes
) -> None:
    answer = served.send(HEAD + headers + b"\r\n1\r\nx\r\n0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert answer.count(b"HTTP/1.1") == 1
    assert served.bodies() == []


def test_get_says_that_it_listens_and_head_has_no_body(served: Served) -> None:
    answer = served.send(b"GET / HTTP/1.1\r\n\r\nHEAD / HTTP/1.1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b'{"feed":"orders"}' in answer
    assert answer.endswith(b"Connection: close\r\n\r\n")


@pytest.mark.parametrize(
    ("bound", "begun"),
    [("HEAD_SECONDS", HEAD), ("BODY_SECONDS", HEAD + b"Content-Length: 999\r\n\r\n")],
)
def test_a_sender_that_is_too_slow_holds_nothing_up(
    served: Served, monkeypatch: pytest.MonkeyPatch, bound: str, begun: bytes
) -> None:
    monkeypatch.setattr(push_server, bound, 0.3)
    with closing(served.connect()) as connection:
        connection.sendall(begun)
        with pytest.raises(OSError):  # noqa: PT011 - reset or broken, as the machine says
            trickle(connection)
    assert served.receiver._in_hand == 0
    assert served.bodies() == []


def test_a_sender_that_goes_away_leaves_nothing_behind(served: Served) -> None:
    with closing(served.connect()) as connection:
        connection.sendall(HEAD + b"Content-Length: 9\r\n\r\nhalf")
    assert served.post(b"x")[0] == 200
    wait_until(lambda: served.receiver._in_hand == 0)
    assert served.bodies() == [b"x"]


def test_connections_are_bounded_and_free_again_when_they_end(served: Served) -> None:
    held = [served.connect() for _ in range(4)]
    wait_until(lambda: served.server._open == 4)
    answer = served.send()
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"Retry-After: 1\r\n" in answer
    for connection in held:
        connection.close()
    wait_until(lambda: served.server._open == 0)
    assert served.post(b"x")[0] == 200


def test_more_than_the_buffer_takes_is_asked_to_wait_and_memory_does_not_grow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Twelve senders at once, with room for two: they hear 429, repeat, and are landed once."""
    size, held, heard = 500_000, list[int](), list[int]()
    served = Served(connections_max=40, buffer_bytes=2 * size)
    put = SegmentStore.put

    def slow(self: SegmentStore, segment: object) -> object:
        held.append(served.receiver._in_hand)
        time.sleep(0.05)
        return put(self, segment)  # type: ignore[arg-type]  # it is passed on

    def send(number: int) -> None:
        status = 0
        while status != 200:
            status, _ = served.post(b"%03d" % number * (size // 3))
            heard.append(status)
            time.sleep(0.02)

    monkeypatch.setattr(SegmentStore, "put", slow)
    senders = [threading.Thread(target=send, args=(number,)) for number in range(12)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join(WAIT_SECONDS_MAX)
    served.close()
    assert set(heard) == {200, 429}
    assert heard.count(200) == len(served.bodies()) == len(set(served.bodies())) == 12
    assert max(held) <= 2 * size


def test_a_bug_is_no_success_and_stops_no_other_sender(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> Answer:
        raise ZeroDivisionError("hunter2")

    with monkeypatch.context() as patched:
        patched.setattr(served.receiver, "_landed", fails)
        status, said = served.post(b"x")
        assert (status, b"hunter2" in said) == (500, False)
    assert served.post(b"x")[0] == 200


def test_the_end_waits_for_what_is_in_hand_and_not_for_who_is_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    served, still = Served(), list[bool]()
    put = SegmentStore.put

    def slow(self: SegmentStore, segment: object) -> object:
        served.stopped.set()
        time.sleep(0.5)
        still.append(served.thread.is_alive())
        return put(self, segment)  # type: ignore[arg-type]  # it is passed on

    monkeypatch.setattr(SegmentStore, "put", slow)
    with closing(served.connect()) as idle:
        begin = time.monotonic()
        assert served.post(b"x") == (200, b'{"records":1,"state":"landed"}\n')
        served.close()
        assert still == [True]
        assert time.monotonic() - begin < WAIT_SECONDS_MAX
        assert rest_of(idle) == b""
    with pytest.raises(OSError):  # noqa: PT011 - refused or reset, as the machine says
        served.connect()


def test_it_says_why_it_cannot_listen(served: Served) -> None:
    for address in (("127.0.0.1", served.server.port), ("256.1.1.1", 1), ("127.0.0.1", 70_000)):
        with pytest.raises(InvalidError, match="cannot listen there"):
            server_of(served.receiver, address, clock=SystemClock())
