"""The port `SortedFiles` for Arrow record batches and Parquet files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa

from lakebed.model.files import FilePart
from lakebed.model.names import FileName
from lakebed.model.processing import IteratorUse, ProcessingPass
from lakebed.model.ranges import EVERYTHING, KeyRange
from lakebed.model.samples import Sample
from lakebed.model.schema import Schema
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.sorted_files import FileWritten, ReadFigures, RowsWritten, Selection
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.sorted_files.measuring import measured
from lakebed.sorted_files.merging.file_merge import FileMerge
from lakebed.sorted_files.merging.helper_processes import MergeHelpers
from lakebed.sorted_files.merging.memory_shares import MergeMemory, decoded_by_pages
from lakebed.sorted_files.merging.range_messages import merge_task
from lakebed.sorted_files.merging.stretch_merge import StretchMerge
from lakebed.sorted_files.reading.column_matching import matched
from lakebed.sorted_files.reading.conditions import RowFilter
from lakebed.sorted_files.reading.drawn_rows import drawn_rows
from lakebed.sorted_files.reading.leaf_groups import read_together
from lakebed.sorted_files.reading.lookup import Lookup, PageCache
from lakebed.sorted_files.reading.own_memory import own_memory
from lakebed.sorted_files.reading.page_index_parts import IndexCache
from lakebed.sorted_files.reading.part_reading import bytes_read, read_part, row_groups_wanted
from lakebed.sorted_files.reading.part_sources import PartRead, read_of, reads_of
from lakebed.sorted_files.reading.query_sources import QuerySources
from lakebed.sorted_files.reading.row_requests import RowRequest, row_request
from lakebed.sorted_files.reading.rows_left import Judged
from lakebed.sorted_files.reading.scanning.beside_each_other import BesideEachOther
from lakebed.sorted_files.reading.scanning.row_group_scan import RowGroupScan, columns_scanned
from lakebed.sorted_files.reading.tails import Tails
from lakebed.sorted_files.sorting.engines import PLAIN, Engine, engine_for, kernels_pay
from lakebed.sorted_files.sorting.external_sort import ExternalSorter
from lakebed.sorted_files.sorting.iterating import iterated
from lakebed.sorted_files.writing.encoding_row_groups import RowGroupEncoder
from lakebed.sorted_files.writing.file_writing import write_file

MEMORY_BYTES = 512 * 1024 * 1024


class ParquetFiles:
    """Sorted files as Parquet objects. spill_directory: on local disk, made when needed.

    memory_bytes: of one merge; of one sorter and the files that are written from it. cache_bytes:
    of tails, parsed parts of them and pages, which are kept for lookups; None: as much as suits the
    memory. merge_bytes: of the buffers of one merge into a file, kept or refused; None: as much as
    `memory_bytes` suggests. helpers: processes that take part in large merges into a file; their
    buffers count. None: there are none.
    """

    def __init__(
        self,
        objects: ObjectStore,
        *,
        spill_directory: Path,
        memory_bytes: int = MEMORY_BYTES,
        cache_bytes: int | None = None,
        merge_bytes: int | None = None,
        helpers: MergeHelpers | None = None,
    ) -> None:
        self._objects = objects
        self._spill_directory = spill_directory
        self._memory_bytes = memory_bytes
        self._merge_memory = MergeMemory(memory_bytes if merge_bytes is None else merge_bytes)
        self._is_limited = merge_bytes is not None
        self._helpers = helpers
        share = (memory_bytes * 3 // 8 if cache_bytes is None else cache_bytes) // 6
        self._tails = Tails(objects, bytes_max=4 * share)
        self._lookup = Lookup(objects, pages=PageCache(share), index=IndexCache(share))

    def sorter(
        self, schema: Schema, processing: ProcessingPass | None = None, *, job_rows: int = 0
    ) -> ExternalSorter:
        """Return a new, empty sorter. processing: of the rows that it is given. job_rows: how many
        the caller's whole job sorts, about, if others sort some of them."""
        return ExternalSorter(
            schema,
            directory=self._spill_directory,
            memory_bytes=self._memory_bytes * 3 // 8,  # files are written meanwhile
            processing=processing,
            job_rows=job_rows,
        )

    def write(
        self,
        schema: Schema,
        batches: Iterable[pa.RecordBatch],
        *,
        name: FileName,
        path: str,
        key_ranges: Sequence[KeyRange],
        job_rows: int = 0,
        value_statistics: bool = False,
    ) -> FileWritten | None:
        """Put one file of sorted rows at `path`; None, and no object, when there are no rows."""
        compiled = kernels_pay(job_rows)
        encoder = RowGroupEncoder(schema, compiled=compiled, value_statistics=value_statistics)
        with closing(encoder):
            return write_file(
                self._objects,
                schema,
                batches,
                name=name,
                path=path,
                key_ranges=key_ranges,
                encoder=encoder,
            )

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
        """Put the rows of all parts into one file; row groups that need no merging are copied."""
        rows = sum(part.rows for part in parts)
        engine = engine_for(rows)
        merge = FileMerge(
            self._objects,
            row_request(schema, None, processing),
            engine,
            self._merge_memory,
            self._is_limited,
            self._helpers,
            merge_task(schema, processing, rows, value_statistics=value_statistics),
        )
        compiled = engine is not PLAIN
        encoder = RowGroupEncoder(schema, compiled=compiled, value_statistics=value_statistics)
        with closing(merge.contents(parts)) as contents, closing(encoder):
            return write_file(
                self._objects,
                schema,
                contents,
                name=name,
                path=path,
                key_ranges=[key_range],
                encoder=encoder,
            )

    def merge(
        self,
        schema: Schema,
        parts: Sequence[FilePart],
        condition: Selection | None = None,
        processing: ProcessingPass | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows of all parts in the order of their keys, each part only inside its range."""
        request = row_request(schema, condition, processing)
        rows = sum(part.rows for part in parts)
        engine = engine_for(rows) if condition is None else PLAIN  # a query may end early
        paged_columns = 0 if engine is PLAIN else len(request.columns)
        share = self._merge_memory.share_of(parts, paged_columns=paged_columns)
        reads = reads_of(request, parts, share)
        summaries = self._merge_memory.summaries(self._objects)
        return StretchMerge(self._objects, summaries, request, reads, engine).rows()

    def read(
        self,
        schema: Schema,
        merges: Sequence[Sequence[FilePart]],
        condition: Selection | None = None,
        figures: ReadFigures | None = None,
        processing: ProcessingPass | None = None,
        *,
        job_rows: int = 0,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one merge after the other, reading ahead."""
        request = row_request(schema, condition, processing)
        engine = engine_for(job_rows) if job_rows else PLAIN  # a query may end early
        reads = self._reads_together(request, merges, engine)
        with self._sources(reads, condition, figures or ReadFigures(), engine) as sources:
            yield from _merged(request, reads, sources, engine)

    def scan(
        self,
        schema: Schema,
        merges: Sequence[Sequence[FilePart]],
        condition: Selection | None = None,
        figures: ReadFigures | None = None,
        processing: ProcessingPass | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all merges in any order: without merging, where no rows become one."""
        request = row_request(schema, condition, processing)
        figures = figures or ReadFigures()
        reads = self._reads_together(request, merges)
        with self._sources(reads, condition, figures) as sources:
            if request.is_merged or sources.has_looked_up:
                yield from _merged(request, reads, sources)
                return
        scan = RowGroupScan(
            self._objects,
            self._tails,
            request,
            [read for some in reads for read in some],
            bytes_max=self._memory_bytes // 8,
            figures=figures,
        )
        threads = os.cpu_count() or 1
        with closing(
            BesideEachOther(scan, threads=threads, bytes_max=self._memory_bytes // 8)
        ) as decoded:
            yield from decoded.batches()

    def _reads_together(
        self,
        request: RowRequest,
        merges: Sequence[Sequence[FilePart]],
        engine: Engine = PLAIN,
    ) -> list[list[PartRead]]:
        """Return what is read of each file, merge after merge."""
        is_iterated = request.work is not None and request.work.iterator is not None
        found = []
        for some in read_together(merges, each=is_iterated):
            share = self._merge_memory.share_of([one.part for one in some])
            share = share if engine is PLAIN else decoded_by_pages(share)
            found.append([read_of(request, one.part, one.key_ranges, share) for one in some])
        return found

    def _sources(
        self,
        reads: Sequence[Sequence[PartRead]],
        condition: Selection | None,
        figures: ReadFigures,
        engine: Engine = PLAIN,
    ) -> QuerySources:
        return QuerySources(
            self._objects,
            self._tails,
            reads,
            lookup=None if condition is None else self._lookup,
            bytes_max=self._memory_bytes // 8,
            figures=figures,
            by_pages=engine is not PLAIN,
        )

    def iterated(
        self, schema: Schema, batches: Iterable[pa.RecordBatch], use: IteratorUse
    ) -> Iterator[pa.RecordBatch]:
        """Yield what a user's iterator makes of sorted rows with all columns."""
        return iterated(schema, batches, use)

    def without(
        self,
        schema: Schema,
        batches: Iterable[pa.RecordBatch],
        selection: Selection,
        processing: ProcessingPass | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield sorted rows with all columns, but for those of a selection."""
        return _judged(schema, selection, processing).left(batches)

    def left_out(
        self,
        schema: Schema,
        batches: Iterable[pa.RecordBatch],
        selection: Selection,
        processing: ProcessingPass | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield just those sorted rows that `without` leaves out, with all columns."""
        return _judged(schema, selection, processing).taken(batches)

    def select(
        self, schema: Schema, batch: pa.RecordBatch, columns: Sequence[str]
    ) -> pa.RecordBatch:
        """Return some columns of a batch that has all."""
        return batch.select(list(columns))

    def sample(self, schema: Schema, part: FilePart) -> Sample:
        """Return the sample of a file, inside the part's key range."""
        return self._tails.of(part).notes.sample.inside(part.key_range)

    def share_read(
        self,
        schema: Schema,
        condition: Selection | None,
        processing: ProcessingPass | None,
        parts: Sequence[FilePart],
        *,
        in_order: bool,
    ) -> float:
        """Return which share of the bytes of files a condition reads that wants every key: by the
        tails that are held, else by that of the largest file, which is read."""
        request = row_request(schema, condition, processing)
        columns = request.columns if in_order or request.is_merged else columns_scanned(request)
        known = self._tails.held(parts) or [max(parts, key=lambda part: part.file.size)]
        sizes = [bytes_read(part, self._tails.of(part), columns) for part in known]
        return sum(sizes) / sum(part.file.size for part in known)

    def row_groups_with(
        self, schema: Schema, part: FilePart, condition: Selection
    ) -> list[tuple[int, int]]:
        """Return the row groups of a file that hold rows of a condition, each with how many.

        Raises:
            As `merge`.
        """
        request = row_request(schema, condition, None)
        read = read_of(request, part, [part.key_range], self._merge_memory.share_of([part]))
        tail = self._tails.of(part)
        match = matched(read.columns, tail.columns, path=part.path)
        found = []
        for row_group in row_groups_wanted(tail, read.wanted, match):
            batches = read_part(
                self._objects,
                part,
                tail,
                columns=read.columns,
                wanted=read.wanted,
                share=read.share,
                among=(row_group,),
            )
            if rows := sum(map(len, batches)):
                found.append((row_group, rows))
        return found

    def draw(
        self,
        schema: Schema,
        part: FilePart,
        *,
        draws: int,
        each: int,
        rng: np.random.Generator,
        figures: ReadFigures,
        processing: ProcessingPass | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows of a part that are drawn by lot, as far as processing keeps them: `each` from
        each row group for each of the times that it is drawn, or all that it has. figures: where
        it counts what it reads.

        Raises:
            As `merge`. QueryTooLargeError: it is more than `figures` allows.
        """
        request = row_request(schema, None, processing)
        read = read_of(request, part, [part.key_range], self._merge_memory.share_of([part]))
        (tail,) = self._tails.of_many([part], figures)
        drawn = drawn_rows(
            self._objects, read, tail, draws=draws, each=each, rng=rng, figures=figures
        )
        return read.selected(drawn)

    def measure(
        self, schema: Schema, part: FilePart, key_ranges: Sequence[KeyRange]
    ) -> tuple[RowsWritten | None, ...]:
        """Read every row of a file; return what lies in each key range."""
        fresh = Tails(self._objects, bytes_max=0)  # a kept tail says nothing of what is stored
        everything = RowFilter(schema.row_keys, (EVERYTHING,), None)
        share, columns = self._merge_memory.share(1), arrow_schema(schema)
        tail = fresh.of(part)
        batches = read_part(
            self._objects, part, tail, columns=columns, wanted=everything, share=share
        )
        return measured(schema, batches, tail.notes, path=part.path, key_ranges=key_ranges)

    def rows(self, batch: pa.RecordBatch) -> int:
        """Return how many rows a batch has."""
        return len(batch)

    def head(self, batch: pa.RecordBatch, rows: int) -> pa.RecordBatch:
        """Return the first rows of a batch."""
        return own_memory(batch.slice(0, rows))


def _merged(
    request: RowRequest,
    reads: Sequence[Sequence[PartRead]],
    sources: QuerySources,
    engine: Engine = PLAIN,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one merge after the other."""
    fields, folds = request.schema.key_fields, request.folds
    for inputs in reads:
        merged = engine.merge(sources.sources(inputs), fields, folds)
        processed = request.processed(merged, [read.part for read in inputs])
        yield from map(own_memory, processed)


def _judged(schema: Schema, selection: Selection, processing: ProcessingPass | None) -> Judged:
    latest = None if processing is None else processing.processing.latest
    gone = row_request(schema, selection, None)
    wanted = RowFilter(schema.row_keys, (EVERYTHING,), gone.key_boxes, gone.early)
    return Judged(wanted, None if latest is None else latest.delete)
