"""What the benches' slow servers share: requests, answers and counts."""

import socket
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from benchmarks.servers import slow_amazon, slow_s3
from benchmarks.servers.slow_amazon import SlowAmazon
from benchmarks.servers.slow_s3 import SlowS3

Slow = SlowAmazon | SlowS3
SERVERS: dict[str, Callable[[Path], AbstractContextManager[Slow]]] = {
    "amazon": lambda _: slow_amazon.serving(latency_ms=0),
    "s3": lambda root: slow_s3.serving(root, latency_ms=0),
}


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Slow]:
    with SERVERS[request.param](tmp_path) as server:
        yield server


def exchanged(server: Slow, *pieces: bytes) -> tuple[bytes, int]:
    """Send a request piece by piece on one connection. Returns the status, and how many requests
    the server has counted."""
    url = urllib.parse.urlsplit(server.url)
    with socket.create_connection((url.hostname or "", url.port or 0), timeout=30) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        counted = 0
        for piece in pieces:
            line.sendall(piece)
            counted += server.count()[0]  # the server reads meanwhile: pieces do not arrive as one
        status = line.makefile("rb").readline().split(b" ")[1]
    return status, counted + server.count()[0]


def test_a_request_that_arrives_in_pieces_is_answered_once(server: Slow) -> None:
    head = b"POST /nothing HTTP/1.1\r\nx-amz-target: none\r\nContent-Le"
    status, counted = exchanged(server, head, b"ngth: 4\r\n\r\n", b"{}", b"{}")
    assert status in (b"400", b"404")
    assert counted == 1


def test_asking_for_the_counts_is_not_counted(server: Slow) -> None:
    assert [server.count()[0] for _ in range(3)] == [0, 0, 0]
