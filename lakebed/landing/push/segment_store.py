"""The segments of one feed in an object store: put once, read back after a lost answer, deleted by
name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from lakebed.errors import (
    CorruptError,
    ObjectExistsError,
    ObjectMissingError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.landing.push.segments import (
    HEAD_BYTES,
    Segment,
    decode_segment,
    encode_segment,
)
from lakebed.model.names import ConnectionId
from lakebed.model.paths import SegmentName, segment_of, segment_path, segments_prefix
from lakebed.ports.object_store import ObjectStore

TRIES_MAX = 3
"""Most tries of a put whose answer is lost, or whose name was taken a moment ago."""


class SegmentStore:
    """The store of segments that were pushed into a feed, and wait to be landed.

    feed: its id.
    """

    def __init__(self, objects: ObjectStore, feed: ConnectionId) -> None:
        self._objects = objects
        self._feed = feed

    def put(self, segment: Segment) -> None:
        """Put a segment, or find that it is there. Nothing is overwritten.

        Raises:
            UnavailableError: put it again; it may be there, now or later.
            DeniedError: our credentials are refused.
            CorruptError, NewerFormatError: what is there cannot be read.
        """
        encoded = encode_segment(segment)
        name = SegmentName(segment.item, len(encoded))
        for _ in range(TRIES_MAX):
            try:
                self._write(name, encoded)
                return
            except (ObjectExistsError, UnknownOutcomeError):
                if self.read(name) is not None:
                    return
        raise UnavailableError("a segment comes and goes", segment=segment.item.hex())

    def read(self, name: SegmentName) -> Segment | None:
        """Return a segment. None: it is not there.

        Raises:
            CorruptError, NewerFormatError: it cannot be read.
            UnavailableError: ask again.
        """
        try:
            return self.read_many([name])[0]
        except ObjectMissingError:
            return None

    def read_many(self, names: Sequence[SegmentName]) -> list[Segment]:
        """Return several segments, which are asked for at the same time.

        Raises:
            ObjectMissingError: one of them is not there.
            CorruptError, NewerFormatError, UnavailableError: as `read`.
        """
        wanted = [(self._path(name), [(0, name.size)]) for name in names]
        found = []
        for name, (path, _), (encoded,) in zip(
            names, wanted, self._objects.read_many(wanted), strict=True
        ):
            segment = decode_segment(encoded, path)
            if segment.item != name.item:
                hint = "give it its name back, or delete it"
                raise CorruptError("a segment has another's name", path=path, hint=hint)
            found.append(segment)
        return found

    def heads(self, names: Sequence[SegmentName]) -> list[bytes]:
        """Return the first bytes of several segments.

        Raises:
            ObjectMissingError: one of them is not there. UnavailableError: ask again.
        """
        wanted = [(self._path(name), [(0, min(HEAD_BYTES, name.size))]) for name in names]
        return [head for (head,) in self._objects.read_many(wanted)]

    def names(self, limit: int, prefix: bytes = b"") -> Iterator[SegmentName]:
        """Yield segments whose items begin with some bytes, at most `limit`. The listing may lag:
        show what was deleted, or not yet show what was put."""
        listed = self._objects.list(segments_prefix(self._feed) + prefix.hex())
        found = (name for name in map(segment_of, listed) if name is not None)
        return islice(found, limit)

    def delete(self, names: Iterable[SegmentName]) -> None:
        """Delete segments; one that is missing is no error.

        Raises:
            UnavailableError, UnknownOutcomeError: some may be deleted: call again.
        """
        self._objects.delete([self._path(name) for name in names])

    def _write(self, name: SegmentName, encoded: bytes) -> None:
        writer = self._objects.create(self._path(name))
        try:
            writer.write(encoded)
            writer.finish()
        finally:
            writer.abort()

    def _path(self, name: SegmentName) -> str:
        return segment_path(self._feed, name)
