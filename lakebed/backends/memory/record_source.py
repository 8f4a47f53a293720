"""A model of sources that count: offsets with holes, retention, topics that are made anew, brokers
that go away. For unit tests and the simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import msgspec
import pyarrow as pa

from lakebed.decoding.raw_records import raw_records
from lakebed.errors import UnavailableError
from lakebed.feed_errors import PositionGoneError
from lakebed.ports.record_source import Records, SourceSplit


class MemoryRecord(msgspec.Struct, frozen=True):
    """A record.

    position: rises, with holes.
    time: in microseconds.
    """

    position: int
    value: bytes | None
    key: bytes | None = None
    time: int | None = None


class MemorySplit(msgspec.Struct):
    """The records that a broker in memory holds of one source split.

    first: position below which retention took all.
    end: the next record's position.
    """

    incarnation: int
    records: list[MemoryRecord]
    first: int = 0
    end: int = 0


class MemoryBroker:
    """Holds source splits by their names. is_away: no request is answered."""

    def __init__(self) -> None:
        self.splits: dict[str, MemorySplit] = {}
        self.acknowledged: dict[str, int] = {}
        self.is_away = False
        self._incarnations = count(1)

    def make(self, name: str) -> None:
        """Make a source split without records, also instead of one that is there."""
        self.splits[name] = MemorySplit(next(self._incarnations), [])

    def write(self, name: str, *values: bytes | None, key: bytes | None = None) -> None:
        """Add records to a source split, which is made if need be."""
        if name not in self.splits:
            self.make(name)
        split = self.splits[name]
        for value in values:
            split.records.append(MemoryRecord(split.end, value, key))
            split.end += 1

    def leave_hole(self, name: str, positions: int = 1) -> None:
        """Let positions go by without a record."""
        self.splits[name].end += positions

    def forget(self, name: str, before: int) -> None:
        """Let retention take what lies before a position."""
        split = self.splits[name]
        split.first = max(split.first, before)
        split.records = [record for record in split.records if record.position >= before]

    def truncate(self, name: str, end: int) -> None:
        """Lose the newest records, as an unclean election of a leader does."""
        split = self.splits[name]
        split.records = [record for record in split.records if record.position < end]
        split.end = end


class MemoryRecordSource:
    """A broker's source splits."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker

    def splits(self) -> list[SourceSplit]:
        """Return all source splits."""
        self._ask()
        found = self._broker.splits.items()
        return [SourceSplit(f"{name}@{split.incarnation}", name) for name, split in found]

    def start(self, split: SourceSplit) -> int:
        """Return the oldest position."""
        self._ask()
        return self._broker.splits[split.title].first

    def open(self, split: SourceSplit, begin: int, *, resume: bytes = b"") -> MemoryReader:
        """Return a reader from a position on."""
        return MemoryReader(self._broker, split, begin, self._ask)

    def close(self) -> None:
        """Nothing is held."""

    def _ask(self) -> None:
        if self._broker.is_away:
            raise UnavailableError("the broker does not answer", hint="try again")


class MemoryReader:
    """Reads a source split of a broker."""

    def __init__(
        self, broker: MemoryBroker, split: SourceSplit, begin: int, ask: Callable[[], None]
    ) -> None:
        self._broker = broker
        self._split = split
        self._next = begin
        self._ask = ask

    def read(self, *, bytes_max: int, wait_seconds: float = 0.0) -> Records[pa.RecordBatch] | None:
        """Return the next records. It does not wait."""
        self._ask()
        split = self._found()
        if split is None:
            return None
        if not split.first <= self._next <= split.end:
            raise PositionGoneError(
                "the broker has not the records from here on",
                first=self._next,
                end=min(max(self._next, split.first), split.end),
            )
        taken = list(self._fitting(split, bytes_max))
        if not taken:
            return None
        begin = self._next
        is_last = taken[-1] is split.records[-1]
        self._next = split.end if is_last else taken[-1].position + 1
        return Records(
            begin=begin,
            end=self._next,
            count=len(taken),
            size=sum(map(_size, taken)),
            batch=_batch(taken),
        )

    def behind(self) -> int:
        """Return how many positions there are behind the last record."""
        split = self._found()
        if split is None or not any(each.position >= self._next for each in split.records):
            return 0
        return max(split.end - self._next, 0)

    def acknowledge(self, end: int) -> None:
        """Note the position for people to look at."""
        self._broker.acknowledged[self._split.name] = end

    def close(self) -> None:
        """Nothing is held."""

    def _found(self) -> MemorySplit | None:
        split = self._broker.splits.get(self._split.title)
        name = f"{self._split.title}@{0 if split is None else split.incarnation}"
        return split if name == self._split.name else None

    def _fitting(self, split: MemorySplit, bytes_max: int) -> Iterator[MemoryRecord]:
        size, is_first = 0, True
        for record in split.records:
            if record.position < self._next:
                continue
            size += _size(record)
            if size > bytes_max and not is_first:
                return
            is_first = False
            yield record


def _size(record: MemoryRecord) -> int:
    return len(record.value or b"") + len(record.key or b"")


def _batch(records: list[MemoryRecord]) -> pa.RecordBatch:
    return raw_records(
        value=pa.array([record.value for record in records], pa.binary()),
        key=pa.array([record.key for record in records], pa.binary()),
        time=pa.array([record.time for record in records], pa.timestamp("us", tz="UTC")),
        position=pa.array([record.position for record in records], pa.int64()),
    )
