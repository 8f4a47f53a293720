"""A few keys, a narrow range, or a test that bounds of pages answer: the pages of all files that
may hold such rows, read at the same time.

Which pages these are, the tails' page indexes say. Where a file cannot be read by pages, or a page
is not as it must be, the rows of that file are left to who reads row groups: blocks show damage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import NamedTuple

import pyarrow as pa

from lakebed.model.files import StoredFile
from lakebed.ports.object_store import ObjectReader
from lakebed.ports.sorted_files import ReadFigures
from lakebed.sorted_files.format.file_notes import block_checksum
from lakebed.sorted_files.reading.byte_cache import ByteCache
from lakebed.sorted_files.reading.column_matching import Match, matched
from lakebed.sorted_files.reading.page_choosing import Choice, choose_pages, tests_pages
from lakebed.sorted_files.reading.page_index_parts import (
    FileIndex,
    IndexCache,
    NotByPagesError,
    Page,
)
from lakebed.sorted_files.reading.page_rows import PartPages, rows_of_pages
from lakebed.sorted_files.reading.part_reading import row_groups_met, row_groups_wanted
from lakebed.sorted_files.reading.part_sources import PartRead
from lakebed.sorted_files.reading.tails import Tail

LOOKUP_BYTES_MAX = 8 << 20
"""Most bytes of a lookup's pages, as they are stored: above it, row groups are read as a stream."""

TESTED_BYTES_MAX = 256 << 20
"""Most bytes of row groups whose pages are held against a test: some tens, a millisecond each."""

LOOKUP_MEMORY_BYTES_MAX = 64 << 20
"""Most bytes of the rows in these pages, decoded."""

GAP_BYTES_MAX = 32 << 10
"""Pages nearer to each other are read as one: 0.4 ms at 90 MB/s, against a request's 15 ms."""

PageKey = tuple[StoredFile, int]
"""A page: its file, and where it begins."""

PageCache = ByteCache[PageKey, bytes]


class _Wanted(NamedTuple):
    """A page to read."""

    path: str
    start: int
    end: int
    file: StoredFile
    page: Page


class Lookup:
    """Reads pages. pages: verified ones; index: parsed parts of tails."""

    def __init__(self, objects: ObjectReader, *, pages: PageCache, index: IndexCache) -> None:
        self._objects = objects
        self._pages = pages
        self._index = index

    def find(
        self, reads: Sequence[PartRead], tails: Sequence[Tail], figures: ReadFigures
    ) -> dict[int, list[pa.RecordBatch]] | None:
        """Return the wanted rows of parts, by their index among `reads`, without those that cannot
        be read by pages. None: they are too many; nothing was read.

        Raises:
            ObjectMissingError: a file is not there.
            CorruptError: a file's columns contradict the table's.
        """
        pairs = list(zip(reads, tails, strict=True))
        tested = {index for index, pair in enumerate(pairs) if tests_pages(*pair)}
        if _are_too_many(reads, tails, tested):
            return None
        with figures.timed("choosing"):
            choices = self._choices(reads, tails)
            if not tested <= choices.keys():
                return None  # its row groups are better read without order
            wanted = {
                (file, page.offset): _Wanted(path, page.offset, page.offset + page.size, file, page)
                for index, choice in choices.items()
                for file, path in [(reads[index].part.file, reads[index].part.path)]
                for row_span in choice.row_spans
                for column in row_span.columns
                for page in column
            }
        memory = sum(_memory(tails[index], choice) for index, choice in choices.items())
        size = sum(one.page.size for one in wanted.values())
        if size > LOOKUP_BYTES_MAX or memory > LOOKUP_MEMORY_BYTES_MAX:
            return None
        _count(choices.values(), len(wanted), figures)
        bodies = self._bodies(wanted, figures)
        with figures.timed("decoding"):
            return rows_of_pages(
                {
                    index: PartPages(reads[index], tails[index], choice, own)
                    for index, choice in choices.items()
                    if (own := _own(choice, bodies, reads[index])) is not None
                }
            )

    def _choices(self, reads: Sequence[PartRead], tails: Sequence[Tail]) -> dict[int, Choice]:
        found = {}
        match: Match | None = None
        columns: pa.Schema | None = None
        for position, (read, tail) in enumerate(zip(reads, tails, strict=True)):
            if match is None or not tail.columns.equals(columns, check_metadata=True):
                match = matched(read.columns, tail.columns, path=read.part.path)
                columns = tail.columns
            index = FileIndex(read.part.file, tail, self._index)
            with suppress(NotByPagesError):
                found[position] = choose_pages(read, tail, index, match)
        return found

    def _bodies(
        self, wanted: Mapping[PageKey, _Wanted], figures: ReadFigures
    ) -> dict[PageKey, bytes]:
        """Return verified pages; those that are damaged are not among them."""
        held = ((key, self._pages.get(key)) for key in wanted)
        found = {key: body for key, body in held if body is not None}
        figures.pages_cached += len(found)
        asked = _asked([one for key, one in wanted.items() if key not in found])
        if not asked:
            return found
        spans = {
            path: [(near[0].start, near[-1].end) for near in own] for path, own in asked.items()
        }
        sizes = [end - start for own in spans.values() for start, end in own]
        figures.asked(len(sizes), sum(sizes))
        with figures.timed("reading"):
            answers = self._objects.read_many(list(spans.items()))
        with figures.timed("decoding"):
            for own, bodies in zip(asked.values(), answers, strict=True):
                for near, body in zip(own, bodies, strict=True):
                    found.update(self._checked(near, body))
        return found

    def _checked(self, near: Sequence[_Wanted], body: bytes) -> Iterator[tuple[PageKey, bytes]]:
        """Yield the pages in some bytes that are as they were written, and keep them."""
        for one in near:
            page = body[one.start - near[0].start : one.end - near[0].start]  # all of it: no copy
            if len(page) == one.page.size and block_checksum(page) == one.page.checksum:
                key = one.file, one.start
                self._pages.put(key, page, len(page))
                yield key, page


def _memory(tail: Tail, choice: Choice) -> int:
    """Return how large the rows of a choice are in memory, at the most."""
    row_groups = tail.notes.row_groups
    return sum(
        (row_span.end - row_span.first) * row_groups[row_span.row_group].row_bytes
        for row_span in choice.row_spans
    )


def _are_too_many(
    reads: Sequence[PartRead], tails: Sequence[Tail], tested: AbstractSet[int]
) -> bool:
    """Return whether it is known, or too dear to find out, that there are too many pages. tested:
    indices of reads whose tests may rule out pages."""
    whole = looked_at = 0
    for index, (read, tail) in enumerate(zip(reads, tails, strict=True)):
        if index in tested:
            match = matched(read.columns, tail.columns, path=read.part.path)
            count = len(row_groups_wanted(tail, read.wanted, match))
            looked_at += read.part.file.tail_offset * count // max(1, len(tail.row_groups))
        else:
            whole += _bytes_of_whole_row_groups(read, tail)
    return whole > LOOKUP_BYTES_MAX or looked_at > TESTED_BYTES_MAX


def _bytes_of_whole_row_groups(read: PartRead, tail: Tail) -> int:
    """Return how large the row groups are of which every key is wanted, about."""
    met = row_groups_met(tail, read.wanted).values()
    whole = sum(read.wanted.covers(first, last) for first, last in met)
    return read.part.file.tail_offset * whole // max(1, len(tail.row_groups))


def _own(
    choice: Choice, bodies: Mapping[PageKey, bytes], read: PartRead
) -> dict[int, bytes] | None:
    """Return a part's pages by their offsets; None if one was damaged."""
    file = read.part.file
    own = {
        page.offset: bodies.get((file, page.offset))
        for row_span in choice.row_spans
        for column in row_span.columns
        for page in column
    }
    whole = {offset: body for offset, body in own.items() if body is not None}
    return whole if len(whole) == len(own) else None


def _asked(missing: Sequence[_Wanted]) -> dict[str, list[list[_Wanted]]]:
    """Return pages by the path of their file, near ones together, in the order of their offsets."""
    found: dict[str, list[list[_Wanted]]] = {}
    for one in sorted(missing, key=lambda page: page[:2]):
        own = found.setdefault(one.path, [])
        if own and one.start - own[-1][-1].end <= GAP_BYTES_MAX:
            own[-1].append(one)
        else:
            own.append([one])
    return found


def _count(choices: Iterable[Choice], pages_read: int, figures: ReadFigures) -> None:
    figures.pages_read += pages_read
    for choice in choices:
        figures.row_groups_read += choice.row_groups
        columns = {
            (row_span.row_group, index): chosen.column
            for row_span in choice.row_spans
            for index, chosen in enumerate(row_span.columns)
        }
        figures.pages += sum(len(c.pages) + (c.dictionary is not None) for c in columns.values())
