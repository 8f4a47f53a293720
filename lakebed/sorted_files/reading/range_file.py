"""A stored file as a file object: ranged reads, every byte verified before Arrow sees it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from lakebed.errors import CorruptError
from lakebed.model.files import FilePart
from lakebed.ports.object_store import ObjectReader
from lakebed.sorted_files.format.file_notes import BLOCK_BYTES, block_checksum
from lakebed.sorted_files.reading.tails import Described

GAP_BYTES_MAX = 256 * 1024
"""Ranges nearer to each other than this are read as one: a request costs more than these bytes."""


class RangeFile:
    """The file object that Arrow reads. What the store raises is kept in `problem`, past Arrow's
    own wrapping.

    memory_bytes: of blocks held when reading piece by piece. `load` makes the next reads come from
    memory, with one request.
    """

    closed = False

    def __init__(
        self, objects: ObjectReader, part: FilePart, tail: Described, *, memory_bytes: int
    ) -> None:
        self._objects = objects
        self._part = part
        self._tail = tail
        self._data_end = part.file.tail_offset
        self._loaded: list[tuple[int, int, memoryview]] = []
        self._blocks: OrderedDict[int, memoryview] = OrderedDict()
        self._blocks_max = max(8, memory_bytes // BLOCK_BYTES)
        self._at = 0
        self.problem: Exception | None = None

    def load(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Read these ranges, ascending, with one call to the store, instead of what was loaded;
        none: only forget that."""
        self._loaded = []
        if not ranges:
            return
        joined = joined_spans(ranges, self._data_end)
        self._loaded = [
            (start, end, data)
            for (start, end), data in zip(joined, self._verified(joined), strict=True)
        ]

    def read(self, size: int = -1) -> bytes | memoryview:
        end = self._part.file.size if size < 0 else min(self._at + size, self._part.file.size)
        start, self._at = self._at, end
        try:
            return self._bytes(start, end)
        except Exception as problem:
            self.problem = problem
            raise

    def _bytes(self, start: int, end: int) -> bytes | memoryview:
        if start >= end:
            return b""
        if end > self._data_end:
            raise CorruptError("a column chunk reaches into the tail", path=self._part.path)
        for begin, stop, data in self._loaded:
            if begin <= start and end <= stop:
                return data[start - begin : end - begin]
        first, last = start // BLOCK_BYTES, (end - 1) // BLOCK_BYTES
        blocks = b"".join(self._block(block) for block in range(first, last + 1))
        return blocks[start - first * BLOCK_BYTES : end - first * BLOCK_BYTES]

    def _block(self, block: int) -> memoryview:
        if block not in self._blocks:
            ahead = max(1, self._blocks_max // 4)
            span = aligned(block * BLOCK_BYTES, (block + ahead) * BLOCK_BYTES, self._data_end)
            (data,) = self._verified([span])
            for at in range(0, len(data), BLOCK_BYTES):
                self._blocks[block + at // BLOCK_BYTES] = data[at : at + BLOCK_BYTES]
            while len(self._blocks) > max(self._blocks_max, ahead):
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(block)
        return self._blocks[block]

    def _verified(self, spans: list[tuple[int, int]]) -> list[memoryview]:
        return read_verified(self._objects, self._part, self._tail, spans)

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._part.file.size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def size(self) -> int:
        return self._part.file.size

    def close(self) -> None:
        """Do nothing."""


def read_verified(
    objects: ObjectReader, part: FilePart, tail: Described, spans: Sequence[tuple[int, int]]
) -> list[memoryview]:
    """Read spans that begin at blocks, and compare each block with its checksum (protocol H26).

    Raises:
        ObjectMissingError: the file is not there.
        CorruptError: a block contradicts its checksum.
    """
    found = []
    for (start, end), data in zip(spans, objects.read(part.path, spans), strict=True):
        view = memoryview(data)
        wanted = tail.blocks[start // BLOCK_BYTES : -(-end // BLOCK_BYTES)]
        blocks = [view[at : at + BLOCK_BYTES] for at in range(0, len(view), BLOCK_BYTES)]
        if len(view) != end - start or list(map(block_checksum, blocks)) != list(wanted):
            raise CorruptError(
                "stored bytes contradict their checksum", path=part.path, start=start, end=end
            )
        found.append(view)
    return found


def joined_spans(
    ranges: Sequence[tuple[int, int]], data_end: int, *, gap_max: int = GAP_BYTES_MAX
) -> list[tuple[int, int]]:
    """Return what is read for ascending ranges: whole blocks, near ones as one."""
    joined: list[tuple[int, int]] = []
    for start, end in ranges:
        span = aligned(start, end, data_end)
        if joined and span[0] - joined[-1][1] <= gap_max:
            joined[-1] = (joined[-1][0], max(span[1], joined[-1][1]))
        else:
            joined.append(span)
    return joined


def aligned(start: int, end: int, data_end: int) -> tuple[int, int]:
    start = start // BLOCK_BYTES * BLOCK_BYTES
    return start, min(-(-end // BLOCK_BYTES) * BLOCK_BYTES, data_end)
