"""Wanted rows out of pages: keys first, then the other columns of the runs that have such rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import pyarrow as pa

from lakebed.sorted_files.reading.page_choosing import Choice, ColumnPages, RowSpan
from lakebed.sorted_files.reading.page_decoding import PageStretch, decoded
from lakebed.sorted_files.reading.page_index_parts import NotByPagesError
from lakebed.sorted_files.reading.part_sources import PartRead
from lakebed.sorted_files.reading.tails import Tail

RowSpanKey = tuple[int, int]
"""A span of rows: the index of its part, its own among the part's spans."""

Arrays = dict[int, pa.ChunkedArray]
"""Columns of a run by their indices."""


class PartPages(msgspec.Struct, frozen=True):
    """The pages that were read of a part.

    bodies: verified pages by where they begin in the file.
    """

    read: PartRead
    tail: Tail
    choice: Choice
    bodies: Mapping[int, bytes]


class _Piece(NamedTuple):
    """Columns of a run that are decoded together, by their indices."""

    row_span: RowSpanKey
    indices: tuple[int, ...]
    stretch: PageStretch


def rows_of_pages(parts: Mapping[int, PartPages]) -> dict[int, list[pa.RecordBatch]]:
    """Return the wanted rows of parts, in order; of none that Arrow cannot decode."""
    row_spans = {
        (index, number): row_span
        for index, part in parts.items()
        for number, row_span in enumerate(part.choice.row_spans)
    }
    broken: set[int] = set()
    others = {row_span: _others(parts[row_span[0]]) for row_span in row_spans}
    first = {row_span: parts[row_span[0]].choice.keys for row_span in row_spans}
    if len(row_spans) == 1:  # to open one more file costs more than columns that may go unused
        first = {row_span: (*keys, *others.pop(row_span)) for row_span, keys in first.items()}
    keys = _decoded(parts, first, broken)
    spans = {row_span: _spans(parts[row_span[0]], columns) for row_span, columns in keys.items()}
    others = {row_span: others.get(row_span, ()) for row_span, found in spans.items() if found}
    values = _decoded(parts, others, broken)
    rows: dict[int, list[pa.RecordBatch]] = {index: [] for index in parts}
    for (index, number), found in spans.items():
        row_span = index, number
        if found and (row_span in values or not others[row_span]):
            rows[index] += _kept(parts[index], keys[row_span] | values.get(row_span, {}), found)
    return {index: batches for index, batches in rows.items() if index not in broken}


def _decoded(
    parts: Mapping[int, PartPages], wanted: Mapping[RowSpanKey, Sequence[int]], broken: set[int]
) -> dict[RowSpanKey, Arrays]:
    """Return some columns of runs. broken: where parts go that cannot be decoded."""
    together: dict[tuple[tuple[str, ...], tuple[bytes, ...]], list[_Piece]] = {}
    for row_span, indices in wanted.items():
        part = parts[row_span[0]]
        for piece in _pieces(part, row_span, indices):
            names = tuple(part.choice.match.names[index] for index in piece.indices)
            elements = tuple(one.column.element for one in piece.stretch.columns)
            together.setdefault((names, elements), []).append(piece)
    found: dict[RowSpanKey, Arrays] = {}
    for (names, elements), pieces in together.items():
        try:
            tables = decoded(elements, names, [piece.stretch for piece in pieces])
        except NotByPagesError:
            broken |= {index for (index, _), _, _ in pieces}
            continue
        for (row_span, indices, stretch), table in zip(pieces, tables, strict=True):
            rows = _row_span(parts, row_span)
            wanted_rows = table.slice(rows.first - stretch.columns[0].first, rows.end - rows.first)
            types = [_column(parts[row_span[0]], index).type for index in indices]
            if wanted_rows.schema.types != types:
                broken.add(row_span[0])
            found.setdefault(row_span, {}).update(zip(indices, wanted_rows.columns, strict=True))
    return found


def _pieces(part: PartPages, row_span: RowSpanKey, indices: Sequence[int]) -> Iterator[_Piece]:
    """Yield the columns of a run, together where their pages end alike."""
    columns = part.choice.row_spans[row_span[1]].columns
    by_span: dict[tuple[int, int], list[int]] = {}
    for index in indices:
        by_span.setdefault((columns[index].first, columns[index].end), []).append(index)
    for (first, end), alike in by_span.items():
        own: tuple[ColumnPages, ...] = tuple(columns[index] for index in alike)
        bodies = tuple(tuple(part.bodies[page.offset] for page in column) for column in own)
        yield _Piece(row_span, tuple(alike), PageStretch(end - first, own, bodies))


def _row_span(parts: Mapping[int, PartPages], row_span: RowSpanKey) -> RowSpan:
    return parts[row_span[0]].choice.row_spans[row_span[1]]


def _column(part: PartPages, index: int) -> pa.Field:
    """Return a column as the file has it."""
    return part.tail.columns.field(part.choice.match.names[index])


def _others(part: PartPages) -> tuple[int, ...]:
    """Return the indices of the columns that are no row keys."""
    keys = part.choice.keys
    return tuple(index for index in range(len(part.choice.match.names)) if index not in keys)


def _spans(part: PartPages, columns: Arrays) -> list[tuple[int, int]]:
    """Return the rows of a run whose keys are wanted."""
    fields = part.read.wanted.fields
    arrays = [columns[index] for index in part.choice.keys]
    whole = [
        array.combine_chunks() if array.num_chunks != 1 else array.chunk(0) for array in arrays
    ]
    keys = pa.RecordBatch.from_arrays(whole, names=[field.name for field in fields])
    return part.read.wanted.spans(keys)


def _kept(
    part: PartPages, columns: Arrays, spans: Sequence[tuple[int, int]]
) -> Iterator[pa.RecordBatch]:
    """Yield the wanted rows of a run. spans: those whose keys are wanted."""
    match = part.choice.match
    stored = pa.schema([_column(part, index) for index in range(len(match.names))])
    table = pa.Table.from_arrays([columns[index] for index in range(len(stored))], schema=stored)
    for start, end in spans:
        for batch in table.slice(start, end - start).to_batches():
            yield from part.read.wanted.kept(match.fitted(batch))
