"""Reads what was pushed into a feed as a source without order: each segment is an item (protocol
R8).

Positions count records in the chain of commits, so the landing gives the order (R10). A segment is
deleted by its name after the entry that took it is in the log (R11).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from lakebed.decoding.raw_records import lines_as_records, raw_records
from lakebed.errors import (
    CorruptError,
    InvalidError,
    LakebedError,
    NewerFormatError,
    ObjectMissingError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.landing.push.segment_store import SegmentStore
from lakebed.landing.push.segments import LENGTH_BYTES, Segment, ends_of_lengths
from lakebed.model.paths import SegmentName
from lakebed.ports.clock import Clock
from lakebed.ports.record_source import Records, SourceSplit

SPLIT = SourceSplit("push/0", "push")
LIST_SECONDS = 0.5
"""Seconds between two listings of an idle feed."""
AT_ONCE_MAX = 64
"""Segments that are asked for together."""
LISTED_MAX = 20_000
"""Names of one listing: receivers refuse senders before so many wait."""

Taken = Callable[[bytes], bool]
"""Says of an item whether the landing table knows it."""


class SegmentSource:
    """Segments of one feed, as one source split."""

    def __init__(
        self,
        segments: SegmentStore,
        *,
        clock: Clock,
        is_taken: Taken = lambda _: False,
        list_seconds: float = LIST_SECONDS,
    ) -> None:
        self._segments = segments
        self._clock = clock
        self._is_taken = is_taken
        self._list_seconds = list_seconds

    def splits(self) -> list[SourceSplit]:
        """Return the one that there is."""
        return [SPLIT]

    def start(self, split: SourceSplit) -> int:
        """Return 0: a position counts records that were taken."""
        return 0

    def open(self, split: SourceSplit, begin: int, *, resume: bytes = b"") -> SegmentReader:
        """Return a reader of segments that wait. Raises: InvalidError: no such source split."""
        if split.name != SPLIT.name:
            raise InvalidError(
                "what is pushed has no such source split",
                source_split=split.name,
                hint=f"use the name `{SPLIT.name}`, its only one",
            )
        return SegmentReader(self._segments, self._clock, self._is_taken, begin, self._list_seconds)

    def close(self) -> None:
        """Nothing is held."""


class SegmentReader:
    """Gives whole segments, and deletes by name those that are committed."""

    def __init__(
        self,
        segments: SegmentStore,
        clock: Clock,
        is_taken: Taken,
        begin: int,
        list_seconds: float,
    ) -> None:
        self._segments = segments
        self._clock = clock
        self._is_taken = is_taken
        self._position = begin
        self._list_seconds = list_seconds
        self._waiting: deque[SegmentName] = deque()
        self._given: dict[SegmentName, int] = {}
        self._done: list[SegmentName] = []
        self._listed: float | None = None

    def read(self, *, bytes_max: int, wait_seconds: float = 0.0) -> Records[pa.RecordBatch] | None:
        """Return the records of the next segments. At least one segment comes, however large.

        Raises:
            CorruptError, NewerFormatError: a segment cannot be read: it is not passed over.
            UnavailableError: read again.
        """
        end = self._clock.monotonic() + wait_seconds
        while True:
            records = self._next(bytes_max)
            if records is not None or not self._may_list(end):
                return records
            self._list()

    def behind(self) -> int | None:
        """Return 0 or nothing: how many records segments have is known when they are read."""
        return None if self._waiting or self._listed is None else 0

    def acknowledge(self, end: int) -> None:
        """Delete the segments before a position, by their names (protocol R11). One that is not
        deleted is found again, and its item is known then."""
        self._done += [name for name, behind in self._given.items() if behind <= end]
        for name in self._done:
            self._given.pop(name, None)
        self._delete_done()

    def close(self) -> None:
        """Nothing is held."""

    def _may_list(self, end: float) -> bool:
        """Return whether it is time for a listing, after a wait if need be."""
        if self._listed is None:
            return True
        due, now = self._listed + self._list_seconds, self._clock.monotonic()
        if due > max(now, end):
            return False
        if due > now:
            self._clock.sleep(due - now)
        return True

    def _list(self) -> None:
        self._delete_done()
        self._listed = self._clock.monotonic()
        done = set(self._done)
        self._waiting.extend(
            name
            for name in self._segments.names(LISTED_MAX)
            if name not in self._given and name not in done
        )

    def _delete_done(self) -> None:
        if not self._done:
            return
        try:
            self._segments.delete(self._done)
        except (UnavailableError, UnknownOutcomeError):
            return  # with the next listing
        self._done = []

    def _next(self, bytes_max: int) -> Records[pa.RecordBatch] | None:
        begin = self._position
        found = self._found(bytes_max)
        self._delete_done()
        if not found:
            return None
        batches = []
        for name, segment in found:
            batches.append(records_in(segment, self._position))
            self._position += batches[-1].num_rows
            self._given[name] = self._position
        return Records(
            begin=begin,
            end=self._position,
            count=self._position - begin,
            size=sum(len(segment.body) for _, segment in found),
            batch=pa.concat_batches(batches),
            items=tuple(segment.item for _, segment in found),
            item_counts=tuple(batch.num_rows for batch in batches),
        )

    def _found(self, bytes_max: int) -> list[tuple[SegmentName, Segment]]:
        """Return segments that wait: all that are asked for together, or else those before the
        first that cannot be read."""
        while self._waiting:
            some = self._some(bytes_max)
            try:
                segments = self._segments.read_many(some)
            except (ObjectMissingError, CorruptError, NewerFormatError):
                found = self._one_by_one(some)
                if found:
                    return found
                continue
            for _ in some:
                self._waiting.popleft()
            return list(zip(some, segments, strict=True))
        return []

    def _some(self, bytes_max: int) -> list[SegmentName]:
        """Return what comes next, at least one unless all are known."""
        some, size = list[SegmentName](), 0
        while len(some) < len(self._waiting) and len(some) < AT_ONCE_MAX:
            name = self._waiting[len(some)]
            if self._is_taken(name.item):  # by a process that died before it deleted it
                del self._waiting[len(some)]
                self._done.append(name)
                continue
            if some and size + name.size > bytes_max:
                break
            some.append(name)
            size += name.size
        return some

    def _one_by_one(self, names: Sequence[SegmentName]) -> list[tuple[SegmentName, Segment]]:
        """Return segments up to the first that cannot be read; it comes with the next call, and
        then it is an error. What was deleted since it was listed is passed over."""
        found = list[tuple[SegmentName, Segment]]()
        for name in names:
            try:
                segment = self._segments.read(name)
            except LakebedError:
                if found:
                    break
                raise
            self._waiting.popleft()
            if segment is not None:
                found.append((name, segment))
        return found


def _of_lengths(body: bytes) -> pa.BinaryArray:
    """Return records that have their lengths before them, without these."""
    ends = np.array([0, *ends_of_lengths(body)], np.int32)
    bytes_ = np.frombuffer(body, np.uint8)
    kept = np.ones(len(bytes_), np.bool_)
    for byte in range(LENGTH_BYTES):
        kept[ends[:-1] + byte] = False
    offsets = ends - LENGTH_BYTES * np.arange(len(ends), dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(bytes_[kept])]
    return pa.BinaryArray.from_buffers(pa.binary(), len(ends) - 1, buffers)


def records_in(segment: Segment, begin: int) -> pa.RecordBatch:
    """Return a segment's records, each with the time when the segment came."""
    body = segment.body
    if segment.framing == "whole":
        value = pa.array([body], pa.binary())
    elif segment.framing == "lengths":
        value = _of_lengths(body)
    else:
        value = lines_as_records(body if body.endswith(b"\n") else body + b"\n", 0)["value"]
    count = len(value)
    time = pa.array(np.full(count, segment.received), pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    position = pa.array(np.arange(begin, begin + count, dtype=np.int64))
    return raw_records(value=value, time=time, position=position)
