"""The segments of one feed in an object store: put once, read back after a lost answer, deleted by
name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from lakebed.errors import (
    CorruptError,
    ObjectExistsError,
    ObjectMissingError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.landing.push.segments import Segment, decode_segment, encode_segment
from lakebed.model.names import ConnectionId
from lakebed.model.paths import segment_of, segment_path, segments_prefix
from lakebed.ports.object_store import ObjectStore

TRIES_MAX = 3
"""Of a put whose answer is lost, or whose name was taken a moment ago."""


class SegmentStore:
    """What was pushed into a feed, and waits to be landed.

    connection: what fills the feed's landing table.
    """

    def __init__(self, objects: ObjectStore, connection: ConnectionId) -> None:
        self._objects = objects
        self._connection = connection

    def put(self, segment: Segment) -> None:
        """Put a segment, or find that it is there. Nothing is overwritten.

        Raises:
            UnavailableError: put it again; it may be there, now or later.
            DeniedError: our credentials are refused.
            CorruptError, NewerFormatError: what is there cannot be read.
        """
        encoded = encode_segment(segment)
        for _ in range(TRIES_MAX):
            try:
                self._write(segment.item, encoded)
                return
            except (ObjectExistsError, UnknownOutcomeError):
                if self.read(segment.item) is not None:
                    return
        raise UnavailableError("a segment comes and goes", segment=segment.item.hex())

    def read(self, item: bytes) -> Segment | None:
        """Return a segment. None: it is not there.

        Raises:
            CorruptError, NewerFormatError: it cannot be read.
            UnavailableError: ask again.
        """
        path = self._path(item)
        size = self._objects.size_of(path)
        if size is None:
            return None
        try:
            (encoded,) = self._objects.read(path, [(0, size)])
        except ObjectMissingError:
            return None
        segment = decode_segment(encoded, path)
        if segment.item != item:
            hint = "give it its name back, or delete it"
            raise CorruptError("a segment has another's name", path=path, hint=hint)
        return segment

    def items(self, limit: int, prefix: bytes = b"") -> Iterator[bytes]:
        """Yield the items of segments that begin with some bytes, at most `limit`. The listing may
        lag: show what was deleted, or not yet show what was put."""
        listed = self._objects.list(segments_prefix(self._connection) + prefix.hex())
        found = (item for item in map(segment_of, listed) if item is not None)
        return islice(found, limit)

    def delete(self, items: Iterable[bytes]) -> None:
        """Delete segments; one that is missing is no error.

        Raises:
            UnavailableError, UnknownOutcomeError: some may be deleted: call again.
        """
        self._objects.delete([self._path(item) for item in items])

    def _write(self, item: bytes, encoded: bytes) -> None:
        writer = self._objects.create(self._path(item))
        try:
            writer.write(encoded)
            writer.finish()
        finally:
            writer.abort()

    def _path(self, item: bytes) -> str:
        return segment_path(self._connection, item)
