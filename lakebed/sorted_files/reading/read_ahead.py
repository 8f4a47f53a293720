"""Objects that are read before they are asked for, in pieces, by several connections at once."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from lakebed.observe.usage import carried
from lakebed.ports.object_store import ObjectRanges, ObjectReader
from lakebed.ports.sorted_files import ReadFigures

PIECE_BYTES = 8 << 20
"""Bytes of one request: 15 ms of waiting beside 93 ms of bytes at 90 MB/s. Most row groups are one
piece, and need not be put together."""

CONNECTIONS = 8
EARLY_MAX = 256
"""Reads that came before they were expected, and are remembered so as not to be done again."""

Ranges = tuple[tuple[int, int], ...]


class ReadAhead:
    """A prefetcher of a reader's next reads, up to `bytes_max` bytes or one read.

    expected: the reads in about the order in which they will come. One that comes early is done at
    once, one that was not expected too. No thread outlives the requests that it sends: after
    `close` there is none of either.
    """

    def __init__(
        self,
        objects: ObjectReader,
        expected: Iterator[ObjectRanges],
        *,
        bytes_max: int,
        figures: ReadFigures,
    ) -> None:
        self._objects = objects
        self._expected = expected
        self._bytes_max = bytes_max
        self._figures = figures
        self._held = 0
        self._next: tuple[str, Ranges] | None = None
        self._begun: dict[tuple[str, Ranges], deque[list[Future[bytes]]]] = {}
        self._early: deque[tuple[str, Ranges]] = deque(maxlen=EARLY_MAX)
        self._connections = threading.BoundedSemaphore(CONNECTIONS)
        self._closed = False

    def read(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of each range."""
        key = path, tuple(ranges)
        self._go_on()
        with self._figures.timed("reading"):
            pieces = self._take(key)
            self._figures.rounds += not all(piece.done() for piece in pieces)
            bodies = iter([piece.result() for piece in pieces])
        self._go_on()
        return [b"".join(next(bodies) for _ in _pieces(start, end)) for start, end in key[1]]

    def read_many(self, wanted: Sequence[ObjectRanges]) -> list[list[bytes]]:
        """Return the bytes of each range of several objects."""
        return [self.read(path, ranges) for path, ranges in wanted]

    def close(self) -> None:
        """Send nothing more, and wait until the last answers are there."""
        self._closed = True
        begun = [p for waiting in self._begun.values() for pieces in waiting for p in pieces]
        self._begun.clear()
        wait([piece for piece in begun if not piece.cancel()])

    def _take(self, key: tuple[str, Ranges]) -> list[Future[bytes]]:
        """Return what was begun for a read, or begin it."""
        waiting = self._begun.get(key)
        if not waiting:
            self._early.append(key)
            return self._begin(key, ahead=False)
        pieces = waiting.popleft()
        if not waiting:
            del self._begun[key]
        self._held -= _size(key[1])
        return pieces

    def _go_on(self) -> None:
        """Begin what is expected next, as far as the bound allows."""
        while not self._closed:
            if self._next is None:
                path_and_ranges = next(self._expected, None)
                if path_and_ranges is None:
                    return
                self._next = path_and_ranges[0], tuple(path_and_ranges[1])
            key, size = self._next, _size(self._next[1])
            if key in self._early:
                self._early.remove(key)
            elif self._held and self._held + size > self._bytes_max:
                return
            else:
                self._held += size
                self._begun.setdefault(key, deque()).append(self._begin(key, ahead=True))
            self._next = None

    def _begin(self, key: tuple[str, Ranges], *, ahead: bool) -> list[Future[bytes]]:
        """Send requests for all pieces of a read. ahead: it is not waited for yet."""
        path, ranges = key
        pieces = [piece for start, end in ranges for piece in _pieces(start, end)]
        self._figures.sent(len(pieces), _size(ranges))
        if not pieces:
            return []
        if len(pieces) == 1 and not ahead:  # a thread would only be waited for
            done: Future[bytes] = Future()
            done.set_result(self._piece(path, pieces[0]))
            return [done]
        pool = ThreadPoolExecutor(min(len(pieces), CONNECTIONS), "lakebed-ahead")
        futures = [pool.submit(carried(self._piece), path, piece) for piece in pieces]
        pool.shutdown(wait=False)  # its threads end with the last piece
        return futures

    def _piece(self, path: str, piece: tuple[int, int]) -> bytes:
        with self._connections:
            return b"" if self._closed else self._objects.read(path, [piece])[0]


def _pieces(start: int, end: int) -> list[tuple[int, int]]:
    """Return a range cut into about equal pieces."""
    count = -(-(end - start) // PIECE_BYTES)
    cuts = [start + (end - start) * n // count for n in range(count)] if count else []
    return list(zip(cuts, [*cuts[1:], end], strict=True)) if cuts else []


def _size(ranges: Ranges) -> int:
    return sum(end - start for start, end in ranges)
