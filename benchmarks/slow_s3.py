"""A server that speaks as much of S3 as reading takes: so many milliseconds before each answer, and
so many bytes a second on each connection. It counts what it is asked for.

`python -m benchmarks.slow_s3 ROOT` serves the folders of ROOT as buckets, prints its port, and ends
when its standard input is closed. GET /-/count answers with the counts since the last time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import selectors
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from email.utils import formatdate
from io import FileIO
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from benchmarks.server_processes import server_process

LATENCY_MS = 15.0
MB_PER_SECOND = 90.0
COUNT = "/-/count"


class Count(NamedTuple):
    """What a server was asked for. bytes: of bodies that it sent."""

    requests: int
    bytes: int


class SlowS3(NamedTuple):
    """A running server."""

    url: str

    def environment(self) -> dict[str, str]:
        """Return the variables that lead clients of S3 here."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "bench",
            "AWS_SECRET_ACCESS_KEY": "bench",
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }

    def count(self) -> Count:
        """Return what was asked for since the last call."""
        with urllib.request.urlopen(self.url + COUNT) as answer:
            return Count(**json.load(answer))


@contextmanager
def serving(
    root: Path, *, latency_ms: float = LATENCY_MS, mb_per_second: float = MB_PER_SECOND
) -> Iterator[SlowS3]:
    """Run a server in a process of its own."""
    speeds = ("--latency-ms", str(latency_ms), "--mb-per-second", str(mb_per_second))
    with server_process("benchmarks.slow_s3", str(root), *speeds) as url:
        yield SlowS3(url)


class _File(NamedTuple):
    """A file as it is served. changed, tag: as HTTP wants them."""

    body: FileIO
    size: int
    changed: str
    tag: str


class _Connection(asyncio.Protocol):
    """One client's requests, answered one after the other: each so long after it came, whatever the
    server does for it meanwhile."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._raw = b""
        self._transport: asyncio.WriteTransport | None = None
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.WriteTransport), "a socket is written to"
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take a request. Clients of S3 wait for an answer before they send the next."""
        self._raw += data
        if self._raw.endswith(b"\r\n\r\n"):
            came = self._server.now()
            lines, self._raw = self._raw.decode("latin-1").split("\r\n"), b""
            seconds, parts = self._server.answer(lines)
            self._loop.call_at(came + seconds, self._send, parts)

    def _send(self, parts: Sequence[bytes]) -> None:
        assert self._transport is not None, "it has begun"
        if not self._transport.is_closing():
            self._transport.writelines(parts)


class _Server:
    def __init__(self, root: Path, latency_seconds: float, seconds_per_byte: float) -> None:
        self._root = root
        self._latency_seconds = latency_seconds
        self._seconds_per_byte = seconds_per_byte
        self._files: dict[str, _File] = {}
        self._requests = self._bytes = 0
        self._loop = asyncio.get_running_loop()
        self._now: float | None = None

    def now(self) -> float:
        """Return when the loop began its turn: what else came then has not waited for this."""
        if self._now is None:
            self._now = self._loop.time()
            self._loop.call_soon(self._begin_turn)
        return self._now

    def _begin_turn(self) -> None:
        self._now = None

    def answer(self, lines: list[str]) -> tuple[float, Sequence[bytes]]:
        """Return what to send to a request, and after how many seconds."""
        method, target, _ = lines[0].split(" ", 2)
        url = urllib.parse.urlsplit(target)
        if url.path == COUNT:
            body = json.dumps({"requests": self._requests, "bytes": self._bytes}).encode()
            self._requests = self._bytes = 0
            return 0.0, _answer(200, body)
        self._requests += 1
        file = self._opened(urllib.parse.unquote(url.path).lstrip("/"))
        if file is None:
            return self._latency_seconds, _answer(*self._without_body(url, method))
        fields = (line.split(":", 1) for line in lines[1:] if line[:6].lower() == "range:")
        asked = next((value.strip() for _, value in fields), None)
        return self._given(file, asked, has_body=method == "GET")

    def _opened(self, path: str) -> _File | None:
        """Return a file, which stays open and is never changed."""
        if path not in self._files:
            file = self._root / path
            if not file.is_file():
                return None
            body = file.open("rb", buffering=0)
            facts = file.stat()
            changed = formatdate(facts.st_mtime, usegmt=True)
            self._files[path] = _File(body, facts.st_size, changed, f"{facts.st_mtime_ns:x}")
        return self._files[path]

    def _without_body(self, url: urllib.parse.SplitResult, method: str) -> tuple[int, bytes]:
        place = self._root / urllib.parse.unquote(url.path).lstrip("/")
        if place.is_dir():
            query = dict(urllib.parse.parse_qsl(url.query))
            return 200, self._listing(place, query) if method == "GET" else b""
        return 404, _error("NoSuchKey" if place.parent != self._root else "NoSuchBucket")

    def _given(
        self, file: _File, asked: str | None, *, has_body: bool
    ) -> tuple[float, Sequence[bytes]]:
        start, end, status = 0, file.size, 200
        if asked is not None:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start = int(first) if first else max(0, file.size - int(last))
            end = min(int(last) + 1, end) if first and last else end
            status = 206
        size = end - start
        head = (
            f"HTTP/1.1 {status} OK\r\n"
            f"Content-Length: {size}\r\n"
            f"Content-Range: bytes {start}-{end - 1}/{file.size}\r\n"
            f"Last-Modified: {file.changed}\r\n"
            f'ETag: "{file.tag}"\r\n'
            "Accept-Ranges: bytes\r\n\r\n"
        ).encode()
        body = b""
        if has_body:
            self._bytes += size
            body = os.pread(file.body.fileno(), size, start)
        return self._latency_seconds + len(body) * self._seconds_per_byte, (head, body)

    def _listing(self, bucket: Path, query: dict[str, str]) -> bytes:
        """Return all keys of a bucket that begin with a prefix: peers ask for few."""
        files = sorted(f for f in bucket.rglob("*") if f.is_file())
        keys = [(f.relative_to(bucket).as_posix(), f) for f in files]
        rows = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{f.stat().st_size}</Size>"
            f"<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>&quot;1&quot;</ETag>"
            f"<StorageClass>STANDARD</StorageClass></Contents>"
            for key, f in keys
            if key.startswith(query.get("prefix", "")) and key > query.get("start-after", "")
        )
        return (
            f"<?xml version='1.0'?><ListBucketResult><Name>{bucket.name}</Name>"
            f"<IsTruncated>false</IsTruncated>{rows}</ListBucketResult>"
        ).encode()


def _error(code: str) -> bytes:
    return f"<?xml version='1.0'?><Error><Code>{code}</Code></Error>".encode()


def _answer(status: int, body: bytes) -> Sequence[bytes]:
    head = f"HTTP/1.1 {status} OK\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Content-Type: application/xml\r\n\r\n".encode(), body


async def _serve(root: Path, latency_ms: float, mb_per_second: float) -> None:
    served = _Server(root, latency_ms / 1000, 1 / (mb_per_second * 1e6))
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(served), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("--latency-ms", type=float, default=LATENCY_MS)
    parser.add_argument("--mb-per-second", type=float, default=MB_PER_SECOND)
    given = parser.parse_args()
    # epoll counts in whole milliseconds, which would make each answer up to one too late.
    selected = asyncio.SelectorEventLoop(selectors.SelectSelector())
    with asyncio.Runner(loop_factory=lambda: selected) as runner:
        runner.run(_serve(given.root, given.latency_ms, given.mb_per_second))
