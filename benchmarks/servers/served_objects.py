"""Objects that lie in a directory and are read from the slow server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.servers.slow_s3 import SlowS3
from lakebed.backends.aws.object_store import S3ObjectStore
from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.backends.system.clock import SystemClock
from lakebed.backends.system.random_source import system_random
from lakebed.ports.object_store import ObjectFacts, ObjectRanges, ObjectStore, ObjectWriter

BUCKET = "bench"


class ServedObjects:
    """Objects that are put into a directory and read from the server that serves it."""

    def __init__(self, root: Path, server: SlowS3 | None) -> None:
        clock = SystemClock()
        self._local = LocalObjectStore(root, clock)
        self._read_from: ObjectStore = self._local
        if server is not None:
            config = {"endpoint": server.url, "region": "us-east-1"}
            config |= {"access_key_id": "bench", "secret_access_key": "bench"}
            self._read_from = S3ObjectStore(
                BUCKET, root.name, clock=clock, rng=system_random(), config=config
            )

    def create(self, path: str) -> ObjectWriter:
        """Begin an object."""
        return self._local.create(path)

    def look(self, path: str) -> ObjectFacts | None:
        """Return what is at `path`."""
        return self._local.look(path)

    def size_of(self, path: str) -> int | None:
        """Return how many bytes are at `path`."""
        return self._read_from.size_of(path)

    def read(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of each range."""
        return self._read_from.read(path, ranges)

    def read_many(self, wanted: Sequence[ObjectRanges]) -> list[list[bytes]]:
        """Return the bytes of each range of several objects."""
        return self._read_from.read_many(wanted)

    def list(self, prefix: str, *, below: str | None = None) -> Iterator[str]:
        """Yield paths."""
        return self._local.list(prefix, below=below)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete objects."""
        self._local.delete(paths)

    def abort_unfinished(self, *, older_than_seconds: float) -> int:
        """Remove what writers left behind."""
        return self._local.abort_unfinished(older_than_seconds=older_than_seconds)
