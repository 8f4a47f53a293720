"""The segments of one feed in an object store: put once, read back after a lost answer, deleted by
name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Literal

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

Put = Literal["landed", "another"]
"""landed: the segment is there, by this put or an earlier one. another: its name is taken by a
segment with another item."""


class SegmentStore:
    """What was pushed into a feed, and waits to be landed.

    connection: what fills the feed's landing table.
    """

    def __init__(self, objects: ObjectStore, connection: ConnectionId) -> None:
        self._objects = objects
        self._connection = connection

    def put(self, segment: Segment) -> Put:
        """Put a segment if its name is free. Nothing is overwritten. Returns what is there then.

        Raises:
            UnavailableError, UnknownOutcomeError: put it again; it may be there, now or later.
            DeniedError: our credentials are refused.
            CorruptError, NewerFormatError: what is there cannot be read.
        """
        encoded = encode_segment(segment)
        for _ in range(TRIES_MAX):
            try:
                self._write(segment.name, encoded)
                return "landed"
            except ObjectExistsError:
                found = self.read(segment.name)
            except UnknownOutcomeError:
                found = self.read(segment.name)
            if found is not None:
                return "landed" if found.item == segment.item else "another"
        raise UnavailableError("a segment comes and goes", segment=segment.name.hex())

    def read(self, name: bytes) -> Segment | None:
        """Return a segment. None: it is not there.

        Raises:
            CorruptError, NewerFormatError: it cannot be read.
            UnavailableError: ask again.
        """
        path = self._path(name)
        size = self._objects.size_of(path)
        if size is None:
            return None
        try:
            (encoded,) = self._objects.read(path, [(0, size)])
        except ObjectMissingError:
            return None
        segment = decode_segment(encoded, path)
        if segment.name != name:
            hint = "give it its name back, or delete it"
            raise CorruptError("a segment has another's name", path=path, hint=hint)
        return segment

    def names(self, limit: int) -> Iterator[bytes]:
        """Yield the names of segments, at most `limit`. The listing may lag."""
        listed = self._objects.list(segments_prefix(self._connection))
        found = (name for name in map(segment_of, listed) if name is not None)
        return islice(found, limit)

    def delete(self, names: Iterable[bytes]) -> None:
        """Delete segments by name; one that is missing is no error.

        Raises:
            UnavailableError, UnknownOutcomeError: some may be deleted: call again.
        """
        self._objects.delete([self._path(name) for name in names])

    def _write(self, name: bytes, encoded: bytes) -> None:
        writer = self._objects.create(self._path(name))
        try:
            writer.write(encoded)
            writer.finish()
        except BaseException:
            writer.abort()
            raise

    def _path(self, name: bytes) -> str:
        return segment_path(self._connection, name)
