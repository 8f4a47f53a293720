"""Reads for a query: tails of many files at once, then pages of all of them, or row groups ahead of
the merge."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self

import pyarrow as pa

from lakebed.model.files import FilePart
from lakebed.ports.object_store import ObjectRanges, ObjectReader
from lakebed.ports.sorted_files import ReadFigures
from lakebed.sorted_files.reading.column_matching import matched
from lakebed.sorted_files.reading.lookup import LOOKUP_BYTES_MAX, Lookup
from lakebed.sorted_files.reading.page_choosing import tests_pages
from lakebed.sorted_files.reading.part_reading import (
    reads_expected,
    row_groups_met,
    row_groups_wanted,
)
from lakebed.sorted_files.reading.part_sources import PartRead, RowGroupSources
from lakebed.sorted_files.reading.read_ahead import ReadAhead
from lakebed.sorted_files.reading.tails import Tails
from lakebed.sorted_files.sorting.window_merge import Source

TAILS_BYTES_FIRST = 1 << 20
"""Bytes of tails that a stream begins with; each time twice as many, for a reader may stop soon."""


LOOKUP_TAILS_BYTES_MAX = 16 << 20
"""Most bytes of all tails of a lookup, as they are stored: it has them all before it reads rows."""


class QuerySources:
    """Sources of a query's merges. merges: what they read, merge after merge.

    lookup: reads few pages, all at once, where that is enough; None: every row is wanted. by_pages:
    row groups are decoded by kernels, where they know how.
    """

    def __init__(
        self,
        objects: ObjectReader,
        tails: Tails,
        merges: Sequence[Sequence[PartRead]],
        *,
        lookup: Lookup | None,
        bytes_max: int,
        figures: ReadFigures,
        by_pages: bool = False,
    ) -> None:
        self._tails = tails
        self._by_pages = by_pages
        self._figures = figures
        self._without_tail = deque(merges)
        self._known_tails: set[int] = set()
        self._found: dict[int, list[pa.RecordBatch]] = {}
        self.has_looked_up = False
        """Whether the rows were found by pages, but for files that cannot be read so."""
        self._tails_bytes = TAILS_BYTES_FIRST
        self._ahead = ReadAhead(
            objects, self._expected(merges), bytes_max=bytes_max, figures=figures
        )
        # None is held: one that is read again is asked for as it is expected, as a whole.
        self._by_row_group = RowGroupSources(self._ahead, tails, at_once=0)
        if lookup is not None:
            self._look_up(lookup, merges)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Read nothing more."""
        self._ahead.close()

    def sources(self, reads: Sequence[PartRead]) -> list[Source]:
        """Return the wanted rows of the parts that are merged next."""
        self._have_tails(reads)
        return [self._source(read) for read in reads if self._found.get(id(read)) != []]

    def _source(self, read: PartRead) -> Source:
        batches = self._found.get(id(read))
        if batches is None:
            return self._by_row_group.source(read, by_pages=self._by_pages)
        return Source(
            read.wanted.ranges[0].min if read.wanted.ranges else b"",
            lambda: read.selected(batches),
        )

    def _look_up(self, lookup: Lookup, merges: Sequence[Sequence[PartRead]]) -> None:
        """Find the rows by pages, unless there are too many."""
        reads = [read for some in merges for read in some]
        parts = [read.part for read in reads]
        tails_size = sum(map(_tail_bytes, parts))
        whole = [read.part for read in reads if read.wanted.is_whole]
        if not reads or tails_size > min(LOOKUP_TAILS_BYTES_MAX, self._tails.bytes_at_once):
            return
        asks_keys = len(whole) < len(reads)
        if (
            not asks_keys or sum(part.file.size for part in whole) > LOOKUP_BYTES_MAX
        ) and not self._tests_pages(merges):
            return
        rest: list[FilePart] = []
        while self._without_tail:
            rest += self._next_without_tail()
        found_tails = self._tails.of_many(rest, self._figures)
        is_all = len(rest) == len(parts)
        tails = found_tails if is_all else self._tails.of_many(parts, ReadFigures())
        found = lookup.find(reads, tails, self._figures)
        self.has_looked_up = found is not None
        for index, batches in (found or {}).items():
            self._found[id(reads[index])] = batches
            self._figures.row_groups += len(tails[index].notes.row_groups)
            self._figures.row_groups_met += len(row_groups_met(tails[index], reads[index].wanted))

    def _tests_pages(self, merges: Sequence[Sequence[PartRead]]) -> bool:
        """Return whether a test may rule out pages, by the tails that are read first in any
        case."""
        first = next(reads for reads in merges if reads)
        if not any(read.wanted.asks_bounds for read in first):
            return False
        self._have_tails(first)
        return any(tests_pages(read, self._tails.of(read.part)) for read in first)

    def _have_tails(self, reads: Sequence[PartRead]) -> None:
        """Have the tails of a merge, and those of the next ones, at the price of one round."""
        if not self._without_tail or id(reads) in self._known_tails:
            return
        parts = self._next_without_tail()
        size = sum(map(_tail_bytes, parts))
        room = min(self._tails_bytes, self._tails.bytes_at_once)
        self._tails_bytes *= 2
        while self._without_tail:
            following = [read.part for read in self._without_tail[0]]
            size += sum(map(_tail_bytes, following))
            if size > room:
                break
            parts += self._next_without_tail()
        self._tails.of_many(parts, self._figures)

    def _next_without_tail(self) -> list[FilePart]:
        reads = self._without_tail.popleft()
        self._known_tails.add(id(reads))
        return [read.part for read in reads]

    def _expected(self, merges: Sequence[Sequence[PartRead]]) -> Iterator[ObjectRanges]:
        """Yield what the merges will read, in about the order of their keys."""
        for reads in merges:
            self._have_tails(reads)
            found = []
            for read in reads:
                if id(read) in self._found:
                    continue
                tail = self._tails.of(read.part)
                match = matched(read.columns, tail.columns, path=read.part.path)
                self._figures.row_groups += len(tail.notes.row_groups)
                self._figures.row_groups_met += len(row_groups_met(tail, read.wanted))
                self._figures.row_groups_read += len(row_groups_wanted(tail, read.wanted, match))
                found += [
                    (tail.notes.row_groups[index].first, read.part.path, spans)
                    for index, spans in reads_expected(
                        read.part, tail, columns=read.columns, wanted=read.wanted, share=read.share
                    )
                ]
            found.sort(key=lambda one: one[0])
            yield from ((path, spans) for _, path, spans in found)


def _tail_bytes(part: FilePart) -> int:
    return part.file.size - part.file.tail_offset
