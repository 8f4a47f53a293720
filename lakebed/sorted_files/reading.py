"""Reading the wanted rows of one file, batch by batch, in key order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.errors import CorruptError
from lakebed.model.files import FilePart
from lakebed.ports.object_store import ObjectReader
from lakebed.sorted_files.column_matching import Match, matched
from lakebed.sorted_files.conditions import RowFilter
from lakebed.sorted_files.file_notes import BLOCK_BYTES
from lakebed.sorted_files.range_file import RangeFile, joined_spans
from lakebed.sorted_files.tails import Tail

BATCH_ROWS_MAX = 65_536


class Share(msgspec.Struct, frozen=True):
    """What one reader may hold. batch_bytes: in memory; file_bytes: as they are stored."""

    batch_bytes: int
    batch_rows: int
    file_bytes: int


def read_part(
    objects: ObjectReader,
    part: FilePart,
    tail: Tail,
    *,
    columns: pa.Schema,
    wanted: RowFilter,
    share: Share,
) -> Iterator[pa.RecordBatch]:
    """Yield the wanted rows of a file. columns: those to give, whatever they were when it was
    written.

    A row group is read with one request where the share allows it, else piece by piece.

    Raises:
        ObjectMissingError: the file is not there.
        CorruptError: its bytes contradict a checksum or the columns.
    """
    match = matched(columns, tail.columns, path=part.path)
    groups = groups_wanted(tail, wanted)
    if not groups:
        return
    chunks = _chunks(tail, groups, match)
    at_once = _fit(chunks, share)
    file = RangeFile(objects, part, tail, memory_bytes=share.file_bytes)
    guard = _Guard(part, file)
    with guard:
        parquet = pq.ParquetFile(
            pa.PythonFile(file, mode="r"),
            metadata=tail.metadata,
            pre_buffer=False,
            buffer_size=0 if at_once else BLOCK_BYTES,
            # RangeFile has compared every byte, page headers too: once is enough.
            page_checksum_verification=False,
        )
    names = list(match.names)
    for group, is_whole in groups.items():
        rows = share.batch_bytes // max(1, tail.notes.groups[group].row_bytes)
        rows = max(1, min(rows, share.batch_rows))
        if at_once:
            file.load(chunks[group])
        with guard:
            batches = parquet.iter_batches(
                rows, row_groups=[group], columns=names, use_threads=False
            )
        while (batch := guard.next_of(batches)) is not None:
            # Selected again: a name with a dot in it finds members of structs, too.
            selected = match.fitted(batch.select(names))
            yield from [selected] if is_whole else wanted.apply(selected)


def reads_expected(
    part: FilePart, tail: Tail, *, columns: pa.Schema, wanted: RowFilter, share: Share
) -> list[tuple[int, list[tuple[int, int]]]]:
    """Return what `read_part` will ask for, row group by row group, each with its place; nothing
    where it reads piece by piece.

    Raises:
        CorruptError: the columns contradict the file's.
    """
    match = matched(columns, tail.columns, path=part.path)
    chunks = _chunks(tail, groups_wanted(tail, wanted), match)
    if not _fit(chunks, share):
        return []
    end = part.file.tail_offset
    return [(group, joined_spans(ranges, end)) for group, ranges in chunks.items()]


class _Guard:
    """Around calls of Arrow; lets out only our own errors."""

    def __init__(self, part: FilePart, file: RangeFile) -> None:
        self._part = part
        self._file = file

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, (pa.ArrowException, OSError, ValueError, KeyError)):
            if self._file.problem is not None:
                raise self._file.problem from error
            raise CorruptError(
                "a file cannot be read", path=self._part.path, problem=str(error)
            ) from error

    def next_of(self, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
        """Return the next batch, None at the end."""
        with self:
            return next(batches, None)


def _chunks(tail: Tail, groups: Iterable[int], match: Match) -> dict[int, list[tuple[int, int]]]:
    """Return the byte ranges of the columns to read, for each row group."""
    leaves = _leaf_columns(tail.columns, match.names)
    return {group: _chunk_ranges(tail.metadata, group, leaves) for group in groups}


def _fit(chunks: Mapping[int, Sequence[tuple[int, int]]], share: Share) -> bool:
    """Whether each row group can be read with one request."""
    return all(_size(ranges) <= share.file_bytes for ranges in chunks.values())


def groups_wanted(tail: Tail, wanted: RowFilter) -> dict[int, bool]:
    """Return the row groups to read, and whether all rows of each are wanted."""
    notes = tail.notes
    firsts = [group.first for group in notes.groups]
    spans = zip(firsts, [*firsts[1:], notes.last], strict=True)
    return {
        group: wanted.wants_all(first, last)
        for group, (first, last) in enumerate(spans)
        if wanted.may_want(first, last)
    }


def _leaf_columns(columns: pa.Schema, names: Sequence[str]) -> list[int]:
    """Return the places of Parquet's columns that belong to these fields."""
    wanted = set(names)
    leaves: list[int] = []
    place = 0
    for column in columns:
        count = _leaves(column.type)
        if column.name in wanted:
            leaves += range(place, place + count)
        place += count
    return leaves


def _leaves(type_: pa.DataType) -> int:
    if type_.num_fields == 0:
        return 1
    return sum(_leaves(type_.field(place).type) for place in range(type_.num_fields))


def _chunk_ranges(
    metadata: pq.FileMetaData, group: int, leaves: Sequence[int]
) -> list[tuple[int, int]]:
    row_group = metadata.row_group(group)
    ranges = []
    for leaf in leaves:
        chunk = row_group.column(leaf)
        start = chunk.data_page_offset
        if chunk.has_dictionary_page:
            start = min(start, chunk.dictionary_page_offset)
        ranges.append((start, start + chunk.total_compressed_size))
    return sorted(ranges)


def _size(ranges: Sequence[tuple[int, int]]) -> int:
    return sum(end - start for start, end in ranges)
