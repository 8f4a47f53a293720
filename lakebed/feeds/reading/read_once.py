"""Several pipelines of one process read a source split once, as long as they stand close together.

It is a cache: a source gives the same records at the same position each time (protocol R7).
What the foremost reader has read is kept for those that stand where it stood, up to a bound. A
reader for which nothing is kept reads by itself, until it stands where another one does.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from lakebed.ports.record_source import Records, RecordSource, SourceSplit, SplitReader

BatchT = TypeVar("BatchT")

KEPT_BYTES = 32 << 20
"""Most bytes of the records of one source that are kept for readers that come behind."""
JOIN_SECONDS = 10.0
"""Seconds after the first reader of a source split has begun, for which records are also kept for
readers that are not there yet, as pipelines of one process begin one after the other."""


class SharedSources(Generic[BatchT]):
    """Sources that pipelines of one process share, by what they are shared as.

    monotonic: seconds that only rise.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._by_key: dict[tuple[str, int], ReadOnce[BatchT]] = {}

    def join(
        self, key: tuple[str, int], make: Callable[[], RecordSource[BatchT]]
    ) -> RecordSource[BatchT]:
        """Return a source as one more pipeline sees it. make: see `ReadOnce`."""
        self._by_key = {known: one for known, one in self._by_key.items() if one.users}
        return self._by_key.setdefault(key, ReadOnce(make, self._monotonic)).join()


class ReadOnce(Generic[BatchT]):
    """A source that several pipelines of one process share.

    make: returns the source. It is called again when all of them had closed it.
    monotonic: seconds that only rise.
    bytes_max: of records that are kept.
    """

    def __init__(
        self,
        make: Callable[[], RecordSource[BatchT]],
        monotonic: Callable[[], float],
        *,
        bytes_max: int = KEPT_BYTES,
    ) -> None:
        self._make = make
        self._monotonic = monotonic
        self._bytes_max = bytes_max
        self._source: RecordSource[BatchT] | None = None
        self._users = 0
        self._size = 0
        self._kept: OrderedDict[tuple[str, int], Records[BatchT]] = OrderedDict()
        self._shares: dict[str, _Share[BatchT]] = {}

    @property
    def users(self) -> int:
        """Return the number of pipelines that have the source open."""
        return self._users

    @property
    def kept_bytes(self) -> int:
        """Return how many bytes of records are kept."""
        return self._size

    def join(self) -> RecordSource[BatchT]:
        """Return the source as one more pipeline sees it."""
        self._users += 1
        return _Door(self)

    def source(self) -> RecordSource[BatchT]:
        """Return the source itself."""
        if self._source is None:
            self._source = self._make()
        return self._source

    def open(self, split: SourceSplit, begin: int, resume: bytes) -> SplitReader[BatchT]:
        """Return a reader of a source split from a position on."""
        share = self._shares.setdefault(split.name, _Share(self._monotonic() + JOIN_SECONDS))
        reader = _Reader(self, share, split, begin, resume)
        share.readers.append(reader)
        return reader

    def kept(self, split: str, begin: int) -> Records[BatchT] | None:
        """Return the records that begin at a position, if they are kept."""
        return self._kept.get((split, begin))

    def keep(self, split: str, begin: int, records: Records[BatchT]) -> None:
        """Keep records for readers that come behind; those that were read first make room."""
        self._kept[split, begin] = records
        self._size += records.size
        while self._size > self._bytes_max:
            self._size -= self._kept.popitem(last=False)[1].size

    def awaits(self, split: str) -> bool:
        """Return whether more readers of a source split are about to come."""
        return self._monotonic() < self._shares[split].joined_by

    def forget(self, split: str, before: int | None) -> None:
        """Forget records that no reader needs. before: a position; None: all of a source split."""
        passed = [k for k in self._kept if k[0] == split and (before is None or k[1] < before)]
        for key in passed:
            self._size -= self._kept.pop(key).size

    def let_go(self, split: str, reader: _Reader[BatchT]) -> None:
        """Forget a reader."""
        share = self._shares[split]
        if reader in share.readers:
            share.readers.remove(reader)
        if not share.readers:
            share.close()
            self.forget(split, None)
            del self._shares[split]

    def leave(self) -> None:
        """Close the source when the last pipeline has left."""
        self._users -= 1
        if not self._users and self._source is not None:
            source, self._source = self._source, None
            source.close()


class _Share(Generic[BatchT]):
    """The state that the readers of one source split share.

    head: reads on where the foremost of them stands. at: its position.
    acknowledged: up to where the source knows that all of them have committed.
    joined_by: when those that begin together with the first one have come.
    """

    def __init__(self, joined_by: float) -> None:
        self.joined_by = joined_by
        self.readers: list[_Reader[BatchT]] = []
        self.head: SplitReader[BatchT] | None = None
        self.at = 0
        self.acknowledged = -1

    def close(self) -> None:
        head, self.head = self.head, None
        if head is not None:
            head.close()


class _Door(Generic[BatchT]):
    """The shared source, as one pipeline has it."""

    def __init__(self, shared: ReadOnce[BatchT]) -> None:
        self._shared = shared
        self._is_open = True

    def splits(self) -> list[SourceSplit]:
        """Return the source splits: see `RecordSource`."""
        return self._shared.source().splits()

    def start(self, split: SourceSplit) -> int:
        """Return where a feed begins: see `RecordSource`."""
        return self._shared.source().start(split)

    def open(self, split: SourceSplit, begin: int, *, resume: bytes = b"") -> SplitReader[BatchT]:
        """Return a reader: see `RecordSource`."""
        return self._shared.open(split, begin, resume)

    def close(self) -> None:
        """Let go of it. Closing twice does no harm."""
        if self._is_open:
            self._is_open = False
            self._shared.leave()


class _Reader(Generic[BatchT]):
    """Reads a source split for one pipeline.

    alone: reads where nothing is kept and no head stands; None: it is not needed.
    """

    def __init__(
        self,
        shared: ReadOnce[BatchT],
        share: _Share[BatchT],
        split: SourceSplit,
        begin: int,
        resume: bytes,
    ) -> None:
        self._shared = shared
        self._share = share
        self._split = split
        self.next, self._resume = begin, resume
        self.committed = begin
        self._alone: SplitReader[BatchT] | None = None
        self._is_open = True

    def read(self, *, bytes_max: int, wait_seconds: float = 0.0) -> Records[BatchT] | None:
        """Return the next records: see `SplitReader`. What is kept for it may be more than it asks
        for, and at the most what the reader before it asked for."""
        begin = self.next
        records = self._shared.kept(self._split.name, begin)
        if records is None:
            records = self._read(bytes_max, wait_seconds)
        if records is not None:
            self.next, self._resume = records.end, records.resume
        if self._shared.kept_bytes and not self._shared.awaits(self._split.name):
            first = min(reader.next for reader in self._share.readers)
            self._shared.forget(self._split.name, first)
        return records

    def _read(self, bytes_max: int, wait_seconds: float) -> Records[BatchT] | None:
        share, begin = self._share, self.next
        if share.head is None:
            self._go_ahead()
        if share.at != begin:
            if self._alone is None:
                self._alone = self._opened()
            return self._alone.read(bytes_max=bytes_max, wait_seconds=wait_seconds)
        self._stay_alone_no_longer()
        assert share.head is not None, "it was opened above"
        try:
            records = share.head.read(bytes_max=bytes_max, wait_seconds=wait_seconds)
        except Exception:
            share.close()  # the next reader opens it anew
            raise
        if records is not None:
            share.at = records.end
            if len(share.readers) > 1 or self._shared.awaits(self._split.name):
                self._shared.keep(self._split.name, begin, records)
        return records

    def _go_ahead(self) -> None:
        """Open the head where this reader stands."""
        self._share.head, self._share.at = self._opened(), self.next

    def _opened(self) -> SplitReader[BatchT]:
        return self._shared.source().open(self._split, self.next, resume=self._resume)

    def _stay_alone_no_longer(self) -> None:
        alone, self._alone = self._alone, None
        if alone is not None:
            alone.close()

    def behind(self) -> int | None:
        """Return how far it is to the end: see `SplitReader`."""
        if self._alone is not None:
            return self._alone.behind()
        head = self._share.head
        behind = None if head is None else head.behind()
        return None if behind is None else max(0, behind + self._share.at - self.next)

    def acknowledge(self, end: int) -> None:
        """Let the source hear of what all readers of the source split have committed."""
        self.committed = end
        least = min((reader.committed for reader in self._share.readers), default=end)
        reader = self._share.head or self._alone
        if reader is not None and least > self._share.acknowledged:
            self._share.acknowledged = least
            reader.acknowledge(least)

    def close(self) -> None:
        """Let go of it. Closing twice does no harm."""
        self._stay_alone_no_longer()
        if self._is_open:
            self._is_open = False
            self._shared.let_go(self._split.name, self)
