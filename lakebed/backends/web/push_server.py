"""A server of HTTP for receivers: requests of senders in, answers out, one thread a connection.

The library's `http.server` bounds a head's lines and their number, and nothing else. Here time,
connections and what is left over of a refused body are bounded, too. What a sender says twice, or
in a form that other servers read otherwise, is refused. TLS is for a proxy in front.
"""

from __future__ import annotations

import io
import re
import socket
import traceback
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException, parse_headers
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from lakebed.backends.web.bounded_server import BoundedServer
from lakebed.landing.push.http_answers import fields_of, text_of
from lakebed.landing.push.receiver import Answer, BodyLostError, Receiver, RequestHead
from lakebed.observe import events
from lakebed.ports.clock import Clock

CONNECTIONS_MAX = 256
IDLE_SECONDS, HEAD_SECONDS, ANSWER_SECONDS = 60.0, 30.0, 30.0
"""Most seconds until a request begins, for its head, and for its answer to be taken."""
BODY_SECONDS, BODY_BYTES_PER_SECOND = 30.0, 256 << 10
"""A body may take so long, and a second more for each so many bytes."""
LEFT_OVER_BYTES, LEFT_OVER_SECONDS = 4 << 20, 2.0
"""Most bytes and seconds that an unwanted body is read, so that its sender receives the reason."""
LINE_BYTES_MAX = 8_192
"""Most bytes of the first line of a request."""

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CUT = re.compile(r"[\r\n\0]")
_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
    b"Connection: close\r\n\r\n"
)
_FIRST_LINE = re.compile(rb"([A-Z]{1,20}) (/[\x21-\x7e]*) HTTP/1\.([01])\r?\n")
_BUG = Answer(500, {"problem": "it was not landed", "code": "bug"})
_MALFORMED = Answer(400, {"problem": "not a request that can be read", "hint": "use HTTP/1.1"})


class TimedInput(io.RawIOBase):
    """The input of a connection, with a deadline for its bytes. A client that sends a byte now and
    then holds a thread no longer than one that sends none."""

    def __init__(self, connection: socket.socket, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._end = 0.0

    def expect_within(self, seconds: float) -> None:
        """Let all that is read from now on come within so many seconds."""
        self._end = self._clock.monotonic() + seconds

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - a buffer has no type before 3.12
        """Read what comes next. Raises: TimeoutError: nothing did."""
        left = self._end - self._clock.monotonic()
        if left <= 0:
            raise TimeoutError("the sender is too slow")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


def push_server(
    receiver: Receiver,
    address: tuple[str, int],
    *,
    clock: Clock,
    connections_max: int = CONNECTIONS_MAX,
) -> BoundedServer:
    """Return a server that listens, and lets a receiver answer while it serves.

    address: host and port; port 0: a free one.

    Raises:
        InvalidError: it cannot listen there.
    """

    class Handler(_Handler):
        respond = staticmethod(receiver.respond)

    return BoundedServer(address, Handler, clock=clock, connections_max=connections_max, busy=_BUSY)


class _Handler(BaseHTTPRequestHandler):
    """Reads requests of one connection, one after the other."""

    protocol_version = request_version = "HTTP/1.1"
    respond: Callable[[RequestHead, Callable[[int], bytes]], Answer]
    server: BoundedServer

    def setup(self) -> None:
        """Let what is read be bounded in time."""
        super().setup()
        self.rfile.close()
        self._input = TimedInput(self.connection, self.server.clock)
        self.rfile = self._come = io.BufferedReader(self._input)
        with suppress(OSError):
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def handle(self) -> None:
        """Answer requests until the sender goes, or is too slow."""
        try:
            while self._handle_next():
                pass
        except (OSError, BodyLostError):
            return

    def _handle_next(self) -> bool:
        """Answer one request. Returns whether another one may come."""
        self.server.be_idle(self.connection, idle=True)
        self._input.expect_within(IDLE_SECONDS)
        is_there = not self.server.is_ending and self._come.peek(1)
        self.server.be_idle(self.connection, idle=False)
        if not is_there:
            return False
        self._input.expect_within(HEAD_SECONDS)
        head = self._head()
        if head is None:
            self._give(_MALFORMED, stays_open=False)
            return False
        answer = self._answer(head)
        stays_open = self.keeps and answer.is_body_read and not self.server.is_ending
        is_bare = head.method == "GET" and not self._expects_body(head)
        stays_open |= self.keeps and is_bare and not self.server.is_ending
        self._give(answer, stays_open=stays_open, is_head=head.method == "HEAD")
        return stays_open

    def _answer(self, head: RequestHead) -> Answer:
        try:
            return self.respond(head, self._body)
        except BodyLostError:
            raise
        except Exception as error:  # a bug is no success, and stops no other sender
            events.emit(events.PUSH_REFUSED, code="bug", reason=_where_of(error))
            self._give(_BUG, stays_open=False)
            raise

    @staticmethod
    def _expects_body(head: RequestHead) -> bool:
        return any(name in {"content-length", "transfer-encoding"} for name, _ in head.headers)

    def _head(self) -> RequestHead | None:
        """Return what comes before a body. None: it is malformed."""
        line = _FIRST_LINE.fullmatch(self.rfile.readline(LINE_BYTES_MAX))
        if line is None:
            return None
        try:
            found = parse_headers(self.rfile)
        except HTTPException:
            return None
        headers = [(name.lower(), str(value)) for name, value in found.items()]
        if found.defects or any(not _NAME.fullmatch(n) or _CUT.search(v) for n, v in headers):
            return None
        said = {name: value.strip().lower() for name, value in headers}
        self.keeps = line[3] == b"1" and said.get("connection") != "close"
        self._is_asked_for = line[3] == b"1" and said.get("expect") == "100-continue"
        return RequestHead(line[1].decode(), line[2].decode(), headers)

    def _body(self, size: int) -> bytes:
        """Read a body that is wanted."""
        if self._is_asked_for:
            self.connection.settimeout(ANSWER_SECONDS)
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._input.expect_within(BODY_SECONDS + size / BODY_BYTES_PER_SECOND)
        try:
            return self.rfile.read(size)
        except OSError as error:
            raise BodyLostError from error

    def _give(self, answer: Answer, *, stays_open: bool, is_head: bool = False) -> None:
        """Send an answer. After one to a body that was not read, the sender comes to hear it."""
        body = text_of(answer)
        self.send_response_only(answer.status)
        self.send_header("Server", "lakebed")
        self.send_header("Content-Length", str(len(body)))
        for name, value in fields_of(answer).items():
            self.send_header(name, value)
        if not stays_open:
            self.send_header("Connection", "close")
        self.connection.settimeout(ANSWER_SECONDS)
        self.end_headers()
        if not is_head:
            self.wfile.write(body)
        if not answer.is_body_read and not stays_open:
            self._pass_over_rest()

    def _pass_over_rest(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            self._input.expect_within(LEFT_OVER_SECONDS)
            left = LEFT_OVER_BYTES
            while left > 0 and (some := self.rfile.read1(64 << 10)):
                left -= len(some)


def _where_of(error: Exception) -> str:
    """Return what a bug is and where, and nothing that it says: that may be a record's."""
    frames = traceback.extract_tb(error.__traceback__)
    at = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{at}"
