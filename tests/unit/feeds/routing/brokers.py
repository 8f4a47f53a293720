"""A broker that knows what is read of it."""

from __future__ import annotations

import pyarrow as pa

from lakebed.backends.memory.record_source import MemoryBroker, MemoryReader, MemoryRecordSource
from lakebed.ports.record_source import Records, SourceSplit


class CountingBroker(MemoryBroker):
    """A broker that counts bytes that were read, and sources that are open."""

    bytes_read = 0
    opened = 0
    seconds = 0.0

    def monotonic(self) -> float:
        """Return the time that a test says."""
        return self.seconds


class CountingReader(MemoryReader):
    """Counts what it reads."""

    def read(self, *, bytes_max: int, wait_seconds: float = 0.0) -> Records[pa.RecordBatch] | None:
        records = super().read(bytes_max=bytes_max)
        assert isinstance(self._broker, CountingBroker)
        if records is not None:
            self._broker.bytes_read += records.size
        return records


class CountingSource(MemoryRecordSource):
    """A source whose readers count."""

    def __init__(self, broker: CountingBroker) -> None:
        super().__init__(broker)
        broker.opened += 1

    def open(self, split: SourceSplit, begin: int, *, resume: bytes = b"") -> CountingReader:
        return CountingReader(self._broker, split, begin, self._ask)

    def close(self) -> None:
        assert isinstance(self._broker, CountingBroker)
        self._broker.opened -= 1
