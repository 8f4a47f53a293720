"""Records that wait on the disk while their table is slow, busy or away (policy `spill`).

A source that spills is read ahead of its table. What was read ahead comes out first, in order, by
source split; it stays until it is committed, so a round that is refused finds it again. It is only
time gained: all of it can be read again from the source, and nothing of it outlives the process.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from lakebed.errors import LakebedError
from lakebed.feeds.pacing.spilled_frames import BatchCodec, Frame, decoded_frame, encoded_frame
from lakebed.feeds.pacing.spilled_splits import SpilledSplit
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.ports.record_source import Records, RecordSource, SourceSplit, SplitReader
from lakebed.ports.spool import FrameSpool

BatchT = TypeVar("BatchT")

AHEAD_BYTES, AHEAD_SECONDS = 256 << 20, 2.0
"""Most bytes and seconds that are read ahead at once: then it is the other pipelines' turn."""
READ_BYTES = 4 << 20
FRAMES_MAX = 50_000
"""Most frames of a spool: the position of each of them is known in memory."""
OFF_SECONDS = 60.0
"""Seconds without spilling, after the disk refused it."""


class SpillingSource(Generic[BatchT]):
    """A source whose records may wait in a spool.

    bytes_max: of the spool, never more.
    table, connection: for its events.
    """

    def __init__(
        self,
        source: RecordSource[BatchT],
        spool: FrameSpool,
        codec: BatchCodec[BatchT],
        clock: Clock,
        *,
        bytes_max: int,
        table: str,
        connection: str,
    ) -> None:
        self._source, self._spool, self._codec, self._clock = source, spool, codec, clock
        self._bytes_max = bytes_max
        self._read_bytes = min(READ_BYTES, bytes_max // 8)
        self._table, self._connection = table, connection
        self._splits: dict[str, SpilledSplit[BatchT]] = {}
        self._off_until: float | None = None
        self._is_full = False

    @property
    def size(self) -> int:
        """Bytes on the disk."""
        return self._spool.size()

    @property
    def percent(self) -> int:
        """Return how full the spool is, in percent of bytes or frames; 100: full, or its disk has
        refused."""
        off_until = self._off_until
        if off_until is not None and self._clock.monotonic() < off_until:
            return 100
        return min(100, int(100 * self._share()))

    @property
    def is_full(self) -> bool:
        """Return whether the spool takes no more: then the next rung is tried."""
        return self._is_full or self._off_until is not None

    def splits(self) -> list[SourceSplit]:
        """Return the source splits: see `RecordSource`."""
        return self._source.splits()

    def start(self, split: SourceSplit) -> int:
        """Return where a feed begins: see `RecordSource`."""
        return self._source.start(split)

    def open(self, split: SourceSplit, begin: int, *, resume: bytes = b"") -> SplitReader[BatchT]:
        """Return a reader, which begins with what was read ahead from there."""
        one = self._splits.get(split.name)
        if one is None:
            one = self._splits[split.name] = SpilledSplit(split, self._spool, begin, resume)
        one.split, one.is_open = split, True
        one.begin_at(begin, resume)
        if not one.frames:
            self._reader(one)
        return _SpillingReader(self, one)

    def close(self) -> None:
        """Let go of connections, and of the spool."""
        for one in list(self._splits.values()):
            self._forget(one)
        self._spool.close()
        self._source.close()

    def forget_closed(self) -> None:
        """Let go of source splits that the pipeline no longer reads."""
        for one in [one for one in self._splits.values() if not one.is_open]:
            self._forget(one)

    def read_ahead(self) -> bool:
        """Read what the source has now into the spool, as far as there is room. Returns whether
        there was something. A source that fails is met by who reads its next record."""
        begun, size, has_read = self._clock.monotonic(), 0, False
        if self._off_until is not None and begun < self._off_until:
            return False
        self._off_until = None
        pending = sorted(self._splits.values(), key=lambda one: one.waiting)
        while pending and size < AHEAD_BYTES and self._clock.monotonic() - begun < AHEAD_SECONDS:
            for one in list(pending):
                count = self._ahead(one) if self._has_room() else 0
                if not count:
                    pending.remove(one)
                size, has_read = size + count, has_read or bool(count)
        return has_read

    def next_of(
        self, one: SpilledSplit[BatchT], bytes_max: int, wait: float
    ) -> Records[BatchT] | None:
        """Return the next records of a source split, of the spool first."""
        if one.given < len(one.frames):
            frame = one.frames[one.given]
            try:
                body = self._spool.read(frame.at)
                records = decoded_frame(body, one.split.name, frame, self._codec)
            except LakebedError as error:  # it is read again, where the pipeline is
                self._report(error)
                one.back()
            else:
                one.given += 1
                return records
        passed = self._reader(one).read(bytes_max=bytes_max, wait_seconds=wait)
        if passed is not None:
            one.next, one.resume = passed.end, passed.resume
            one.passed.append((passed.end, passed.resume))
        return passed

    def behind_of(self, one: SpilledSplit[BatchT]) -> int | None:
        """Return how many positions there are beyond what the pipeline got."""
        if one.reader is not None:
            one.behind = one.reader.behind()
        return one.waiting or None if one.behind is None else one.waiting + one.behind

    def committed(self, one: SpilledSplit[BatchT], end: int) -> None:
        """Let go of what is committed, and let the source know."""
        one.committed(end)
        if one.reader is not None:
            one.reader.acknowledge(end)

    def _has_room(self) -> bool:
        self._is_full = self._share() >= 1
        return not self._is_full and self._off_until is None

    def _share(self) -> float:
        """Return how much of its bytes or its frames the spool has; from 1 on it takes no more."""
        frames = sum(len(one.frames) for one in self._splits.values())
        room = self._bytes_max - 2 * self._read_bytes
        return max(self._spool.size() / room, frames / FRAMES_MAX)

    def _ahead(self, one: SpilledSplit[BatchT]) -> int:
        """Read a little of a source split into the spool. Returns how many bytes."""
        try:
            records = self._reader(one).read(bytes_max=self._read_bytes)
        except LakebedError:  # it is met by who reads the next record
            one.let_go()
            return 0
        if records is None:
            return 0
        body = encoded_frame(one.split.name, one.next, records, self._codec)
        if self._spool.size() + self._spool.size_of(len(body)) > self._bytes_max:
            self._is_full = True
            one.let_go()  # it is read again
            return 0
        try:
            at = self._spool.append(body)
        except LakebedError as error:
            one.let_go()
            self._give_up(error)
            return 0
        one.frames.append(Frame(one.next, one.resume, records.end, records.resume, at))
        one.next, one.resume = records.end, records.resume
        return len(body)

    def _reader(self, one: SpilledSplit[BatchT]) -> SplitReader[BatchT]:
        if one.reader is None:
            one.reader = self._source.open(one.split, one.next, resume=one.resume)
        return one.reader

    def _give_up(self, error: LakebedError) -> None:
        """Do without the spool for a while: the disk is full, or refuses."""
        self._report(error)
        self._off_until = self._clock.monotonic() + OFF_SECONDS
        for one in self._splits.values():
            one.back()
            one.drop_frames()
        self._spool.clear()

    def _forget(self, one: SpilledSplit[BatchT]) -> None:
        one.drop_frames()
        one.let_go()
        del self._splits[one.split.name]

    def _report(self, error: LakebedError) -> None:
        events.emit(
            events.FEED_SPILL_DROPPED,
            table=self._table,
            connection=self._connection,
            code=error.code(),
            reason=str(error),
        )


class _SpillingReader(Generic[BatchT]):
    """Reads a source split for the pipeline."""

    def __init__(self, source: SpillingSource[BatchT], one: SpilledSplit[BatchT]) -> None:
        self._source, self._one = source, one

    def read(self, *, bytes_max: int, wait_seconds: float = 0.0) -> Records[BatchT] | None:
        """Return the next records: see `SplitReader`."""
        return self._source.next_of(self._one, bytes_max, wait_seconds)

    def behind(self) -> int | None:
        """Return how many positions there are beyond the last record that was read."""
        return self._source.behind_of(self._one)

    def acknowledge(self, end: int) -> None:
        """Let go of what is committed."""
        self._source.committed(self._one, end)

    def close(self) -> None:
        """Leave it to who opens it again."""
        self._one.is_open = False
        self._one.begin_at(self._one.base, self._one.base_resume)
        self._one.let_go()  # what fails is opened anew
