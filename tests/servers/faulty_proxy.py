"""A proxy before an HTTP server that loses, refuses, delays or damages what passes, as told."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

LOST = "the request is dropped before it arrives"
UNANSWERED = "the request arrives, its answer is dropped"
FLIPPED = "one byte of the request's body is flipped"
HALVED = "of a batch of writes to DynamoDB only the first half arrives, rounded down"


@dataclass(frozen=True)
class Answer:
    """An answer in the server's place."""

    status: int
    code: str
    after: bool = False
    """Whether the request arrives nevertheless."""
    reasons: tuple[str, ...] = ()
    """Why the parts of a transaction were cancelled."""


Fault = str | Answer | None
Rule = Callable[[str, str], Fault]


def service_error(answer: Answer) -> bytes:
    """As DynamoDB, SQS and SSM tell it."""
    told: dict[str, object] = {"__type": f"x#{answer.code}", "message": "told by the proxy"}
    if answer.reasons:
        told["CancellationReasons"] = [{"Code": reason} for reason in answer.reasons]
    return json.dumps(told).encode()


def s3_error(answer: Answer) -> bytes:
    return f"<Error><Code>{answer.code}</Code><Message>told by the proxy</Message></Error>".encode()


def halved(body: bytes) -> tuple[bytes, bytes]:
    """Return a batch of writes with half of them, and the answer to it, which names the rest."""
    asked = json.loads(body)
    ((table, writes),) = asked["RequestItems"].items()
    half = len(writes) // 2
    asked["RequestItems"] = {table: writes[:half]}
    return json.dumps(asked).encode(), json.dumps(
        {"UnprocessedItems": {table: writes[half:]}}
    ).encode()


@dataclass
class FaultyProxy:
    """rule: from method and target of a request to what happens to it. seen: what came by. target:
    its path, or the operation, such as `DynamoDB_20120810.PutItem`, where a header names it."""

    url: str
    rule: Rule = lambda _method, _target: None
    seen: list[tuple[str, str]] = field(default_factory=list)

    def times(self, count: int, method: str, fault: Fault, target: str = "") -> None:
        """Let the next `count` requests of a method meet a fault."""
        left = iter(range(count))

        def rule(asked: str, where: str) -> Fault:
            wanted = asked == method and target in where
            return fault if wanted and next(left, None) is not None else None

        self.rule = rule


@contextmanager
def faulty_proxy(upstream: str) -> Iterator[FaultyProxy]:
    host = urlsplit(upstream).netloc
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    proxy = FaultyProxy(f"http://127.0.0.1:{server.server_address[1]}")
    server.proxy, server.upstream = proxy, host  # type: ignore[attr-defined]  # read by the handler
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        proxy = self.server.proxy  # type: ignore[attr-defined]  # set where it is made
        operation = self.headers.get("X-Amz-Target")
        target = operation or self.path
        error = service_error if operation else s3_error
        proxy.seen.append((self.command, target))
        fault = proxy.rule(self.command, target)
        if fault == LOST:
            self.close_connection = True
            return
        if fault == FLIPPED:
            body = bytes([body[0] ^ 1]) + body[1:]
        if isinstance(fault, Answer) and not fault.after:
            self._answer(fault.status, [], error(fault))
            return
        left = b""
        if fault == HALVED:
            body, left = halved(body)
        upstream = self.server.upstream  # type: ignore[attr-defined]  # set where it is made
        connection = http.client.HTTPConnection(upstream)
        headers = {**self.headers, "Content-Length": str(len(body))}
        connection.request(self.command, self.path, body, headers)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        if fault == UNANSWERED:
            self.close_connection = True
        elif isinstance(fault, Answer):
            self._answer(fault.status, [], error(fault))
        elif fault == HALVED:
            self._answer(200, [], left)
        else:
            self._answer(answer.status, answer.getheaders(), body)

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        told = {name.lower(): value for name, value in headers}
        told.pop("transfer-encoding", None)
        told.pop("connection", None)
        if self.command != "HEAD" or "content-length" not in told:
            told["content-length"] = str(len(body))
        self.send_response_only(status)
        for name, value in told.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _handle  # noqa: N815  the base class's names

    def log_message(self, *_: object) -> None:
        """Say nothing."""
