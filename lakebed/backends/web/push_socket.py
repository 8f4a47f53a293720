"""A server for senders that write records into a socket, and hear `OK n` when n of them are landed.

A sender may count: what it has written beyond n, it writes again through another socket. It hears
`NO why` before a socket is closed on it.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from socketserver import BaseRequestHandler

from lakebed.backends.web.bounded_server import BoundedServer
from lakebed.errors import InvalidError, UnavailableError, UnknownOutcomeError
from lakebed.landing.push.framed_records import FramedRecords
from lakebed.landing.push.receiver import Receiver
from lakebed.landing.push.segments import record_count
from lakebed.ports.clock import Clock

CONNECTIONS_MAX = 64
IDLE_SECONDS, ANSWER_SECONDS = 3_600.0, 30.0
PIECE_BYTES = 1 << 20
_BUSY = b"NO too many connections\n"


def push_socket(
    receiver: Receiver,
    address: tuple[str, int],
    records: Callable[[], FramedRecords],
    *,
    clock: Clock,
    connections_max: int = CONNECTIONS_MAX,
) -> BoundedServer:
    """Return a server that listens, and lands what is written while it serves.

    address: host and port; port 0: a free one.
    records: of one connection.

    Raises:
        InvalidError: it cannot listen there.
    """

    class Handler(_Handler):
        land = staticmethod(receiver.land)
        new_records = staticmethod(records)

    return BoundedServer(address, Handler, clock=clock, connections_max=connections_max, busy=_BUSY)


class _Handler(BaseRequestHandler):
    """Lands what one sender writes, piece by piece: what comes while one is put is the next."""

    land: Callable[..., None]
    new_records: Callable[[], FramedRecords]
    request: socket.socket
    server: BoundedServer

    def handle(self) -> None:
        """Take records until the sender goes, or writes one that is too large. One that is not
        whole then is not landed."""
        records, landed = self.new_records(), 0
        try:
            while data := self._next():
                whole = records.take(data)
                if whole:
                    self.land(records.framing, whole, should_stop=lambda: self.server.is_ending)
                    landed += record_count(records.framing, whole)
                    self._give(b"OK %d\n" % landed)
        except InvalidError as error:
            self._end(f"NO {error}\n".encode())
        except (UnavailableError, UnknownOutcomeError):
            self._end(b"NO the store cannot take it now\n")
        except OSError:
            return

    def _next(self) -> bytes:
        """Return what comes next; b"": nothing will."""
        self.server.be_idle(self.request, idle=True)
        self.request.settimeout(IDLE_SECONDS)
        data = b"" if self.server.is_ending else self.request.recv(PIECE_BYTES)
        self.server.be_idle(self.request, idle=False)
        return data

    def _give(self, answer: bytes) -> None:
        self.request.settimeout(ANSWER_SECONDS)
        self.request.sendall(answer)

    def _end(self, answer: bytes) -> None:
        """Say why, and let the sender hear it."""
        with suppress(OSError):
            self._give(answer)
            self.request.shutdown(socket.SHUT_WR)
            self.request.settimeout(1.0)
            for _ in range(64):
                if not self.request.recv(PIECE_BYTES):
                    return
