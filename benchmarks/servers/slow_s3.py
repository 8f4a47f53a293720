"""A server that speaks as much of S3 as reading takes, and puts small objects: so many milliseconds
before each answer, and so many bytes a second on each connection. It counts what it is asked for.

`python -m benchmarks.servers.slow_s3 ROOT` serves the folders of ROOT as buckets, prints
its port, and ends when its standard input is closed.
"""

from __future__ import annotations

import argparse
import os
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from io import FileIO
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from benchmarks.servers.server_processes import server_process
from benchmarks.servers.slow_server import Answer, Request, answer, counts_at, head, run

LATENCY_MS = 15.0
MB_PER_SECOND = 90.0


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
        return Count(**counts_at(self.url))


@contextmanager
def serving(
    root: Path, *, latency_ms: float = LATENCY_MS, mb_per_second: float = MB_PER_SECOND
) -> Iterator[SlowS3]:
    """Run a server in a process of its own."""
    speeds = ("--latency-ms", str(latency_ms), "--mb-per-second", str(mb_per_second))
    with server_process("benchmarks.servers.slow_s3", str(root), *speeds) as url:
        yield SlowS3(url)


class _File(NamedTuple):
    """A file as it is served. changed, tag: as HTTP wants them."""

    body: FileIO
    size: int
    changed: str
    tag: str


class _Server:
    def __init__(self, root: Path, latency_seconds: float, seconds_per_byte: float) -> None:
        self._root = root
        self._latency_seconds = latency_seconds
        self._seconds_per_byte = seconds_per_byte
        self._files: dict[str, _File] = {}
        self._requests = self._bytes = 0

    def answer(self, request: Request) -> Answer:
        """Return the answer to a request: a part of a file, a listing, or that it is not there."""
        self._requests += 1
        url = urllib.parse.urlsplit(request.target)
        path = urllib.parse.unquote(url.path).lstrip("/")
        if request.method == "PUT":
            return self._put(path, request.body)
        file = self._opened(path)
        if file is not None:
            return self._part_of(file, request.fields.get("range"), request.method)
        status, body = self._without_body(url, request.method)
        fields = {"Content-Type": "application/xml"}
        return answer(body, fields, status=status, seconds=self._latency_seconds)

    def _put(self, path: str, body: bytes) -> Answer:
        """Write an object, unless there is one: ours are put if absent."""
        file = self._root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            with file.open("xb") as new:
                new.write(body)
        except FileExistsError:
            refused = _error("PreconditionFailed")
            return answer(refused, {}, status=412, seconds=self._latency_seconds)
        fields = {"ETag": f'"{file.stat().st_mtime_ns:x}"'}
        seconds = self._latency_seconds + len(body) * self._seconds_per_byte
        return answer(b"", fields, seconds=seconds)

    def counts(self) -> dict[str, int]:
        """Return the counts, and begin anew."""
        count = Count(self._requests, self._bytes)
        self._requests = self._bytes = 0
        return count._asdict()

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

    def _part_of(self, file: _File, asked: str | None, method: str) -> Answer:
        start, end, status = 0, file.size, 200
        if asked is not None:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start = int(first) if first else max(0, file.size - int(last))
            end = min(int(last) + 1, end) if first and last else end
            status = 206
        size = end - start
        fields = {
            "Content-Length": str(size),
            "Content-Range": f"bytes {start}-{end - 1}/{file.size}",
            "Last-Modified": file.changed,
            "ETag": f'"{file.tag}"',
            "Accept-Ranges": "bytes",
        }
        body = b""
        if method == "GET":
            self._bytes += size
            body = os.pread(file.body.fileno(), size, start)
        seconds = self._latency_seconds + len(body) * self._seconds_per_byte
        return Answer(seconds, (head(fields, status), body))

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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("--latency-ms", type=float, default=LATENCY_MS)
    parser.add_argument("--mb-per-second", type=float, default=MB_PER_SECOND)
    given = parser.parse_args()
    run(_Server(given.root, given.latency_ms / 1000, 1 / (given.mb_per_second * 1e6)))
