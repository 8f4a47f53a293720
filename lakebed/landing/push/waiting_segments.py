"""Segments that wait to be landed, for people to look at and to remove."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import msgspec

from lakebed.errors import LakebedError, ObjectMissingError
from lakebed.landing.landing_listing import AT_ONCE, LandedRecord, records_of
from lakebed.landing.push.segment_source import LISTED_MAX, records_in
from lakebed.landing.push.segment_store import SegmentStore
from lakebed.landing.push.segments import received_in
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.model.paths import SegmentName

HEADS_AT_ONCE = 100
HEADS_MAX = 1_000
"""Segments that are asked when they came: a request each. Of more, the oldest of so many."""
DELETED_AT_ONCE = 1_000


class WaitingSegments(msgspec.Struct, frozen=True, kw_only=True):
    """The backlog of segments that were pushed into a feed, and wait to be landed.

    count: of segments; a segment is a request.
    bytes: that they take.
    oldest_seconds: since the first one came, by its receiver's clock and ours; None: not known, or
        there is none.
    is_exact: whether all were counted and asked; else there are more, and perhaps older ones.
    """

    count: int = 0
    bytes: int = 0
    oldest_seconds: int | None = None
    is_exact: bool = True


class WaitingSegment(msgspec.Struct, frozen=True, kw_only=True):
    """A segment.

    segment: its name: that of its item.
    came: by its receiver's clock; None: not known.
    """

    segment: str
    bytes: int
    came: Micros | None


def waiting_segments(store: SegmentStore, now: Micros) -> WaitingSegments:
    """Return how many segments of a feed wait. Raises: UnavailableError: ask again."""
    names = list(store.names(LISTED_MAX))
    came = [one.came for one in _asked(store, names[:HEADS_MAX]) if one.came is not None]
    return WaitingSegments(
        count=len(names),
        bytes=sum(name.size for name in names),
        oldest_seconds=max(0, now - min(came)) // MICROS_PER_SECOND if came else None,
        is_exact=len(names) <= HEADS_MAX,
    )


def listed_segments(store: SegmentStore, limit: int) -> Iterator[WaitingSegment]:
    """Yield segments of a feed, at most so many, by their names, which are by chance."""
    yield from _asked(store, list(store.names(limit)))


def waiting_records(
    store: SegmentStore, limit: int, failed: Callable[[str, LakebedError], None]
) -> Iterator[LandedRecord]:
    """Yield the records of segments that wait, at most so many: the source split is the segment's
    name, the position counts in it.

    failed: is called with a segment that cannot be read, and why. The others come.
    """
    left = limit
    for name in store.names(LISTED_MAX):
        try:
            segment = store.read(name)
        except LakebedError as error:
            failed(name.item.hex(), error)
            continue
        if segment is None:  # landed meanwhile
            continue
        batch = records_in(segment, 0).slice(0, left)
        left -= batch.num_rows
        for begin in range(0, batch.num_rows, AT_ONCE):
            yield from records_of(batch.slice(begin, AT_ONCE), name.item.hex())
        if not left:
            return


def drop_segments(store: SegmentStore) -> WaitingSegments:
    """Remove the segments of a feed that are listed now, for good. Returns what was removed.

    Raises:
        UnavailableError, UnknownOutcomeError: some are removed: call it again.
    """
    count = size = 0
    listed = store.names(1 << 62)
    while some := list(islice(listed, DELETED_AT_ONCE)):
        store.delete(some)
        count, size = count + len(some), size + sum(name.size for name in some)
    return WaitingSegments(count=count, bytes=size)


def _asked(store: SegmentStore, names: list[SegmentName]) -> Iterator[WaitingSegment]:
    for first in range(0, len(names), HEADS_AT_ONCE):
        some = names[first : first + HEADS_AT_ONCE]
        for name, head in zip(some, _heads(store, some), strict=True):
            if head is not None:
                yield WaitingSegment(
                    segment=name.item.hex(), bytes=name.size, came=received_in(head)
                )


def _heads(store: SegmentStore, names: list[SegmentName]) -> list[bytes | None]:
    """Return the first bytes of segments; None: it was landed meanwhile."""
    try:
        return list(store.heads(names))
    except ObjectMissingError:
        if len(names) == 1:
            return [None]
    half = (len(names) + 1) // 2
    return [*_heads(store, names[:half]), *_heads(store, names[half:])]
