"""Sorted files whose batches are lists of tuples: rows without Arrow, for the simulation.

A row is a tuple laid out as the schema's fields; its keys are key values (ints, strings, bytes),
its values whatever MessagePack keeps. A file is two MessagePack values: the rows with their encoded
keys, and the tail with the sample.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any, NoReturn, Self, TypeVar, cast

import anycrc
import msgspec

from lakebed.backends.memory.row_layout import Row, RowLayout, RowLayouts
from lakebed.backends.memory.row_processing import TupleWork
from lakebed.errors import (
    CorruptError,
    InvalidError,
    ObjectExistsError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.model.files import FilePart, StoredFile, bounds_of
from lakebed.model.names import FileName, Micros
from lakebed.model.predicates.language import Predicate
from lakebed.model.processing import IteratorUse, Processing, ProcessingPass
from lakebed.model.ranges import EVERYTHING, KeyRange
from lakebed.model.samples import KEYS_MAX, Sample
from lakebed.model.schema import Schema
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.sorted_files import FileWritten, ReadFigures, RowsWritten, Selection

Batch = list[Row]
DecodedT = TypeVar("DecodedT")
_CRC64 = anycrc.Model("CRC64-NVME")
_FORMAT = 1
BATCH_ROWS = 64


class _Body(msgspec.Struct, frozen=True, array_like=True):
    """A file of rows.

    keys: row keys then sort keys of each row, encoded.
    fields: their numbers, in order.
    """

    keys: list[bytes]
    rows: list[tuple[Any, ...]]
    fields: list[int]


class _Tail(msgspec.Struct, frozen=True, array_like=True):
    format: int
    sample: Sample


_encode = msgspec.msgpack.Encoder().encode
_decode_body = msgspec.msgpack.Decoder(_Body).decode
_decode_tail = msgspec.msgpack.Decoder(_Tail).decode


class TupleSorter:
    """Sorts rows in memory."""

    def __init__(self, layout: RowLayout, work: TupleWork | None = None) -> None:
        self._layout = layout
        self._work = work
        self._rows: list[tuple[bytes, Row]] = []
        self._sorted = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, batch: Batch) -> int:
        """Take rows in any order. Returns how many are kept."""
        before = len(self._rows)
        checked = map(self._layout.checked, batch)
        if self._work is None:
            self._rows += checked
        else:
            rows = self._work.selected(row for _, row in checked)
            self._rows += [(self._layout.key(row), row) for row in rows]
        self._sorted = False
        return len(self._rows) - before

    def rows_in(self, key_ranges: Sequence[KeyRange]) -> list[int]:
        """Return how many rows were added in each key range, and not left out."""
        keys = [key for key, _ in self._in_order()]
        return [end - start for start, end in (_span(keys, r) for r in key_ranges)]

    def sorted_batches(self, key_range: KeyRange) -> Iterator[Batch]:
        """Yield what processing makes of the rows of a key range, in key order."""
        rows = self._in_order()
        start, end = _span([key for key, _ in rows], key_range)
        rows = rows[start:end]
        if self._work is not None:
            rows = list(self._work.merged(rows))
        yield from _batches([row for _, row in rows])

    def close(self) -> None:
        """Forget the rows."""
        self._rows = []

    def _in_order(self) -> list[tuple[bytes, Row]]:
        if not self._sorted:
            self._rows.sort(key=itemgetter(0))
            self._sorted = True
        return self._rows


class TupleFiles:
    """Files of tuples in an object store."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._layouts = RowLayouts()

    def sorter(self, schema: Schema, processing: ProcessingPass | None = None) -> TupleSorter:
        """Return a new, empty sorter. processing: of the rows that it is given."""
        work = None if processing is None else TupleWork(schema, processing)
        return TupleSorter(self._layouts.of(schema), work)

    def write(
        self,
        schema: Schema,
        batches: Iterable[Batch],
        *,
        name: FileName,
        path: str,
        key_ranges: Sequence[KeyRange],
        job_rows: int = 0,
        value_statistics: bool = False,
    ) -> FileWritten | None:
        """Put one file of sorted rows."""
        rows = [row for batch in batches for row in batch]
        if not rows:
            return None
        layout = self._layouts.of(schema)
        keys = list(map(layout.key, rows))
        assert all(a <= b for a, b in pairwise(keys)), "rows are not sorted"
        row_keys = list(map(layout.row_key, rows)) if schema.sort_keys else keys
        written = tuple(_written(row_keys, key_range) for key_range in key_ranges)
        counted = sum(w.rows for w in written if w is not None)
        assert counted == len(rows), f"key ranges hold {counted} of {len(rows)} rows"

        body = _encode(_Body(keys, rows, [field.number for field in schema.fields]))
        tail = _encode(_Tail(_FORMAT, _sample(row_keys)))
        checksum = _CRC64.calc(body + tail)
        file = StoredFile(name, len(body) + len(tail), len(body), checksum, zlib.crc32(tail))
        self._put(path, body + tail, checksum)
        return FileWritten(file, written)

    def merge_into_file(
        self,
        schema: Schema,
        parts: Sequence[FilePart],
        *,
        name: FileName,
        path: str,
        key_range: KeyRange,
        processing: ProcessingPass | None = None,
        value_statistics: bool = False,
    ) -> FileWritten | None:
        """Put the rows of all parts into one file."""
        merged = self.merge(schema, parts, processing=processing)
        return self.write(schema, merged, name=name, path=path, key_ranges=[key_range])

    def merge(
        self,
        schema: Schema,
        parts: Sequence[FilePart],
        condition: Selection | None = None,
        processing: ProcessingPass | None = None,
    ) -> Iterator[Batch]:
        """Yield rows of all parts in the order of their keys."""
        pairs: list[tuple[bytes, Row]] = []
        for part in parts:
            body = self._body(schema, part)
            start, end = _span(body.keys, part.key_range)
            pairs += zip(body.keys[start:end], body.rows[start:end], strict=True)
        if condition is not None:
            fits = self._layouts.of(schema).test(condition)
            pairs = [pair for pair in pairs if fits(pair[1])]
        work = None if processing is None else TupleWork(schema, processing)
        if work is not None:
            kept = work.selected(row for _, row in pairs)
            pairs = [(self._layouts.of(schema).key(row), row) for row in kept]
        pairs.sort(key=itemgetter(0))
        if work is not None:
            pairs = list(work.merged(pairs))
        rows = [row for _, row in pairs]
        if condition is not None and condition.where is not None:
            rows = _kept(schema, rows, condition)
        if condition is not None and condition.columns is not None:
            rows = self.select(schema, rows, condition.columns)
        yield from _batches(rows)

    def read(
        self,
        schema: Schema,
        merges: Sequence[Sequence[FilePart]],
        condition: Selection | None = None,
        figures: ReadFigures | None = None,
        processing: ProcessingPass | None = None,
        *,
        job_rows: int = 0,
    ) -> Iterator[Batch]:
        """Yield the rows of one merge after the other."""
        for parts in merges:
            if figures is not None:
                figures.asked(2 * len(parts), sum(part.file.size for part in parts))
            yield from self.merge(schema, parts, condition, processing)

    def scan(
        self,
        schema: Schema,
        merges: Sequence[Sequence[FilePart]],
        condition: Selection | None = None,
        figures: ReadFigures | None = None,
        processing: ProcessingPass | None = None,
    ) -> Iterator[Batch]:
        """Yield the rows of `read`, the last first, as a scan promises no order."""
        if processing is None or not processing.processing.merges_rows:
            merges = [(part,) for parts in merges for part in parts]
        yield from self.read(schema, list(reversed(merges)), condition, figures, processing)

    def without(
        self,
        schema: Schema,
        batches: Iterable[Batch],
        selection: Selection,
        processing: ProcessingPass | None = None,
    ) -> Iterator[Batch]:
        """Yield sorted rows, but for those of a selection."""
        for batch in batches:
            gone = set(map(id, self._wanted(schema, batch, selection, processing)))
            yield [row for row in batch if id(row) not in gone]

    def left_out(
        self,
        schema: Schema,
        batches: Iterable[Batch],
        selection: Selection,
        processing: ProcessingPass | None = None,
    ) -> Iterator[Batch]:
        """Yield just those rows that `without` leaves out."""
        for batch in batches:
            yield list(self._wanted(schema, batch, selection, processing))

    def _wanted(
        self,
        schema: Schema,
        batch: Batch,
        selection: Selection,
        processing: ProcessingPass | None,
    ) -> Batch:
        fits = self._layouts.of(schema).test(selection)
        latest = None if processing is None else processing.processing.latest
        stays = schema.fields.index(schema.field(latest.delete)) if latest and latest.delete else -1
        found = [row for row in batch if fits(row) and not (stays >= 0 and row[stays])]
        return list(_kept(schema, found, selection))

    def iterated(self, schema: Schema, batches: Iterable[Batch], use: IteratorUse) -> NoReturn:
        """Refuse: iterators take Arrow batches."""
        raise InvalidError(
            "an iterator takes Arrow batches, and rows are tuples here",
            name=use.name,
            hint="keep rows in Parquet",
        )

    def select(self, schema: Schema, batch: Batch, columns: Sequence[str]) -> Batch:
        """Return some columns of a batch that has all."""
        indices = self._layouts.of(schema).indices(columns)
        return [tuple(row[index] for index in indices) for row in batch]

    def sample(self, schema: Schema, part: FilePart) -> Sample:
        """Return the sample of a file, inside the part's key range."""
        file = part.file
        (tail,) = self._objects.read(part.path, [(file.tail_offset, file.size)])
        if zlib.crc32(tail) != file.tail_checksum:
            raise CorruptError("the tail of a file does not fit its checksum", path=part.path)
        return _decoded(_decode_tail, tail, part.path).sample.inside(part.key_range)

    def share_read(self, *_: object, in_order: bool) -> float:
        """Return which share of the bytes of files is read: all of them."""
        return 1.0

    def measure(
        self, schema: Schema, part: FilePart, key_ranges: Sequence[KeyRange]
    ) -> tuple[RowsWritten | None, ...]:
        """Read every row of a file; return what lies in each key range."""
        body = self._body(schema, part)
        layout = self._layouts.of(schema)
        keys = list(map(layout.key, body.rows))
        if keys != body.keys or any(a > b for a, b in pairwise(keys)):
            raise CorruptError("a file's rows are out of order", path=part.path)
        row_keys = list(map(layout.row_key, body.rows))
        everything = msgspec.structs.replace(part, key_range=EVERYTHING)
        if self.sample(schema, everything) != _sample(row_keys):
            raise CorruptError("a file's sample is not of its rows", path=part.path)
        return tuple(_written(row_keys, key_range) for key_range in key_ranges)

    def rows(self, batch: Batch) -> int:
        """Return how many rows a batch has."""
        return len(batch)

    def head(self, batch: Batch, rows: int) -> Batch:
        """Return the first rows of a batch."""
        return batch[:rows]

    def _put(self, path: str, data: bytes, checksum: int) -> None:
        """Put an object. "Exists" and no answer may be this very write: look (H3, H25)."""
        writer = self._objects.create(path)
        try:
            writer.write(data)
            writer.finish()
        except (ObjectExistsError, UnknownOutcomeError) as error:
            try:
                found = self._objects.look(path)
            except UnavailableError:
                raise UnknownOutcomeError("a write may have landed", path=path) from error
            if found is None:
                raise UnknownOutcomeError("a write may yet land", path=path) from error
            if (found.size, found.checksum) != (len(data), checksum):
                raise ObjectExistsError(path) from error
        finally:
            writer.abort()

    def _body(self, schema: Schema, part: FilePart) -> _Body:
        file = part.file
        (data,) = self._objects.read(part.path, [(0, file.size)])
        if _CRC64.calc(data) != file.checksum:
            raise CorruptError("a file does not fit its checksum", path=part.path)
        body = _decoded(_decode_body, data[: file.tail_offset], part.path)
        wanted = [field.number for field in schema.fields]
        if body.fields == wanted:
            return body
        required = {field.number for field in schema.fields if not field.nullable}
        if not required <= set(body.fields):
            raise CorruptError("a file does not fit the schema", path=part.path)
        indices = [body.fields.index(n) if n in body.fields else None for n in wanted]
        rows = [tuple(None if p is None else row[p] for p in indices) for row in body.rows]
        return _Body(body.keys, rows, wanted)


def _span(keys: Sequence[bytes], key_range: KeyRange) -> tuple[int, int]:
    start = bisect_left(keys, key_range.min)
    end = len(keys) if key_range.max is None else bisect_left(keys, key_range.max)
    return start, max(start, end)


def _kept(schema: Schema, rows: list[Row], condition: Selection) -> list[Row]:
    """Return the rows that the test of a condition keeps, which is a predicate here."""
    if condition.where is None:
        return rows
    test = Processing(filter=cast("Predicate", condition.where))
    return TupleWork(schema, ProcessingPass(test, Micros(0), "query")).selected(rows)


def _written(keys: Sequence[bytes], key_range: KeyRange) -> RowsWritten | None:
    start, end = _span(keys, key_range)
    if start == end:
        return None
    return RowsWritten(end - start, bounds_of(keys[start], keys[end - 1]))


def _sample(keys: Sequence[bytes]) -> Sample:
    stride = 1
    while len(keys) > stride * KEYS_MAX:
        stride *= 2
    return Sample(tuple(keys[::stride]), stride, len(keys))


def _batches(rows: Batch) -> Iterator[Batch]:
    for start in range(0, len(rows), BATCH_ROWS):
        yield rows[start : start + BATCH_ROWS]


def _decoded(decode: Callable[[bytes], DecodedT], data: bytes, path: str) -> DecodedT:
    try:
        return decode(data)
    except msgspec.DecodeError as error:
        raise CorruptError("a file cannot be decoded", path=path, why=str(error)) from error
