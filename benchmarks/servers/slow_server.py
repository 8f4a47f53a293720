"""What servers that answer slowly share: they speak HTTP, send each answer so long after its
request, and count what they are asked for.

GET /-/count returns the counts since the last time, at once.
"""

from __future__ import annotations

import asyncio
import json
import selectors
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

COUNT = "/-/count"
END_OF_HEAD = b"\r\n\r\n"


class Request(NamedTuple):
    """An HTTP request. fields: of its head, names in lower case."""

    method: str
    target: str
    fields: Mapping[str, str]
    body: bytes


class Answer(NamedTuple):
    """Bytes to send, head and body.

    seconds: how long after the request they are sent, whatever the server does meanwhile.
    """

    seconds: float
    parts: Sequence[bytes]


class SlowServer(Protocol):
    """What one kind of server does with requests."""

    def answer(self, request: Request) -> Answer:
        """Return the answer to a request, and count it."""
        ...

    def counts(self) -> Mapping[str, int]:
        """Return the counts since the last call."""
        ...


def counts_at(url: str) -> dict[str, int]:
    """Return the counts of the server at a URL since the last call."""
    with urllib.request.urlopen(url + COUNT) as answer:
        counts: dict[str, int] = json.load(answer)
        return counts


def answer(
    body: bytes, fields: Mapping[str, str], *, status: int = 200, seconds: float = 0.0
) -> Answer:
    """Return an answer with a body, the body's length among the fields of its head."""
    return Answer(seconds, (head({"Content-Length": str(len(body)), **fields}, status), body))


def head(fields: Mapping[str, str], status: int = 200) -> bytes:
    """Return the head of an answer, up to the empty line behind it."""
    lines = [f"HTTP/1.1 {status} OK", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join(lines).encode() + END_OF_HEAD


def run(server: SlowServer) -> None:
    """Serve on a free port, print the port, and return when standard input is closed."""
    # epoll counts in whole milliseconds, which would make each answer up to one too late.
    selected = asyncio.SelectorEventLoop(selectors.SelectSelector())
    with asyncio.Runner(loop_factory=lambda: selected) as runner:
        runner.run(_serve(server))


async def _serve(server: SlowServer) -> None:
    loop = asyncio.get_running_loop()
    turns = _Turns(loop)
    listener = await loop.create_server(lambda: _Connection(server, turns), "127.0.0.1", 0)
    print(listener.sockets[0].getsockname()[1], flush=True)
    async with listener:
        await asyncio.to_thread(sys.stdin.read)


class _Turns:
    """Turns of the loop: requests that came in one turn have not waited for each other."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._began: float | None = None

    def began(self) -> float:
        """Return when the loop began its turn."""
        if self._began is None:
            self._began = self.loop.time()
            self.loop.call_soon(self._end)
        return self._began

    def _end(self) -> None:
        self._began = None


class _Connection(asyncio.Protocol):
    """One client's requests, answered one after the other."""

    def __init__(self, server: SlowServer, turns: _Turns) -> None:
        self._server = server
        self._turns = turns
        self._raw = b""
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.WriteTransport), "a socket is written to"
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take a request. Clients wait for an answer before they send the next."""
        came = self._turns.began()
        self._raw += data
        request = _parsed(self._raw)
        if request is None:
            return
        self._raw = b""
        if request.target == COUNT:
            counts = json.dumps(self._server.counts()).encode()
            self._send(answer(counts, {"Content-Type": "application/json"}).parts)
        else:
            seconds, parts = self._server.answer(request)
            self._turns.loop.call_at(came + seconds, self._send, parts)

    def _send(self, parts: Sequence[bytes]) -> None:
        assert self._transport is not None, "it has begun"
        if not self._transport.is_closing():
            self._transport.writelines(parts)


def _parsed(raw: bytes) -> Request | None:
    """Return the request that these bytes are; None when more of it must come."""
    before, end, body = raw.partition(END_OF_HEAD)
    if not end:
        return None
    first, *lines = before.decode("latin-1").split("\r\n")
    parts = (line.partition(":") for line in lines)
    fields = {name.lower(): value.strip() for name, _, value in parts}
    if len(body) < int(fields.get("content-length", 0)):
        return None
    method, target, _ = first.split(" ", 2)
    return Request(method, target, fields, body)
