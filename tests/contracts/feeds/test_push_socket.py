"""Senders write records into a socket, and hear how many of them are landed."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from lakebed.backends.memory import MemoryObjectStore
from lakebed.backends.system import SystemClock, system_random
from lakebed.backends.web.push_socket import push_socket
from lakebed.errors import UnavailableError
from lakebed.landing.push.framed_records import FramedRecords, SocketFraming
from lakebed.landing.push.receiver import Receiver, ReceiverRules
from lakebed.landing.push.segment_source import SPLIT, SegmentSource
from lakebed.landing.push.segment_store import SegmentStore
from lakebed.model.feeds.positions import connection_id

WAIT_SECONDS_MAX = 10


class Served:
    """A server over a store in memory. framing: of what senders write."""

    def __init__(self, framing: SocketFraming = "lines") -> None:
        clock = SystemClock()
        self.store = SegmentStore(MemoryObjectStore(clock), connection_id("fe" * 16))
        self.receiver = Receiver(
            ReceiverRules(feed="orders"),
            self.store,
            lambda _: [],
            clock=clock,
            token=lambda: system_random().getrandbits(128),
        )
        self.stopped = threading.Event()
        self.server = push_socket(
            self.receiver,
            ("127.0.0.1", 0),
            lambda: FramedRecords(framing, 100),
            clock=clock,
            connections_max=2,
        )
        self.thread = threading.Thread(target=self.server.serve, args=(self.stopped.is_set,))
        self.thread.start()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.server.port), WAIT_SECONDS_MAX)

    def landed(self) -> list[bytes]:
        """Return the records of all segments, as a worker reads them."""
        reader = SegmentSource(self.store, clock=SystemClock()).open(SPLIT, 0)
        records = reader.read(bytes_max=1 << 20)
        return [] if records is None else sorted(records.batch["value"].to_pylist())

    def close(self) -> None:
        self.stopped.set()
        self.thread.join(30)
        assert not self.thread.is_alive()


def hear(connection: socket.socket, wanted: bytes) -> None:
    """Wait for a line."""
    heard = b""
    while not heard.endswith(wanted):
        some = connection.recv(1_000)
        assert some, heard
        heard += some


@pytest.fixture
def served() -> Iterator[Served]:
    given = Served()
    yield given
    given.close()


def test_a_sender_hears_how_many_of_its_records_are_landed(served: Served) -> None:
    with closing(served.connect()) as connection:
        connection.sendall(b"a\nb\nhalf")
        hear(connection, b"OK 2\n")
        assert served.landed() == [b"a", b"b"]
        connection.sendall(b" of it\n\n")
        hear(connection, b"OK 4\n")
        connection.sendall(b"never whole")
    assert served.landed() == [b"", b"a", b"b", b"half of it"]


def test_records_may_have_their_lengths_before_them() -> None:
    served = Served("lengths")
    with closing(served.connect()) as connection:
        connection.sendall(b"\0\0\0\2\n\0" + b"\0\0\0\0" + b"\0\0\0\1")
        hear(connection, b"OK 2\n")
        connection.sendall(b"x")
        hear(connection, b"OK 3\n")
    assert served.landed() == [b"", b"\n\0", b"x"]
    served.close()


def test_a_record_that_is_too_large_closes_its_socket_and_no_other(served: Served) -> None:
    with closing(served.connect()) as other, closing(served.connect()) as connection:
        connection.sendall(b"x" * 101)
        hear(connection, b"NO the record is too large (bytes_max=100): send smaller records\n")
        assert connection.recv(1) == b""
        other.sendall(b"a\n")
        hear(other, b"OK 1\n")
    assert served.landed() == [b"a"]


def test_a_sender_waits_while_the_store_is_away_and_its_records_are_landed_once(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, fails = SegmentStore.put, [True, True]

    def flaky(self: SegmentStore, segment: object) -> None:
        put(self, segment)  # type: ignore[arg-type]  # it is passed on
        if fails:
            fails.pop()
            raise UnavailableError("its answer was lost")

    monkeypatch.setattr(SegmentStore, "put", flaky)
    with closing(served.connect()) as connection:
        connection.sendall(b"a\n")
        hear(connection, b"OK 1\n")
    assert fails == []
    assert served.landed() == [b"a"]


def test_no_sender_hears_ok_for_what_is_not_landed(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        served.stopped.set()
        raise UnavailableError("away")

    served = Served()
    monkeypatch.setattr(SegmentStore, "put", away)
    with closing(served.connect()) as connection:
        connection.sendall(b"a\n")
        hear(connection, b"NO the store cannot take it now\n")
        served.close()
    assert served.landed() == []


def test_connections_are_bounded_and_who_is_idle_does_not_hold_up_the_end(served: Served) -> None:
    begin = time.monotonic()
    with closing(served.connect()) as one, closing(served.connect()) as two:
        for connection in (one, two):
            connection.sendall(b"a\n")
            hear(connection, b"OK 1\n")
        with closing(served.connect()) as third:
            hear(third, b"NO too many connections\n")
        served.close()
        assert one.recv(1) == two.recv(1) == b""
    assert time.monotonic() - begin < WAIT_SECONDS_MAX
