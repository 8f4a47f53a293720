"""The port `SortedFiles` for Arrow record batches and Parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from lakebed.errors import InvalidError
from lakebed.model.files import FilePart
from lakebed.model.names import FileName
from lakebed.model.processing import IteratorUse, ProcessingPass
from lakebed.model.ranges import EVERYTHING, KeyRange
from lakebed.model.samples import Sample
from lakebed.model.schema import Schema
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.sorted_files import Condition, FileWritten, ReadFigures, RowsWritten
from lakebed.sorted_files.arrow_schema import arrow_schema
from lakebed.sorted_files.conditions import RowFilter
from lakebed.sorted_files.engines import PLAIN, Engine, engine_for, kernels_pay
from lakebed.sorted_files.file_notes import BLOCK_BYTES
from lakebed.sorted_files.iterating import iterated
from lakebed.sorted_files.lookup import Lookup, PageCache
from lakebed.sorted_files.measuring import measured
from lakebed.sorted_files.merging import Source
from lakebed.sorted_files.merging_by_workers import merged_by_workers
from lakebed.sorted_files.outlines import Outlines
from lakebed.sorted_files.page_index_parts import IndexCache
from lakebed.sorted_files.part_sources import GroupSources, PartRead
from lakebed.sorted_files.query_sources import QuerySources
from lakebed.sorted_files.reading import BATCH_ROWS_MAX, Share, read_part
from lakebed.sorted_files.row_groups import GROUP_BYTES_MAX
from lakebed.sorted_files.row_requests import RowRequest, row_request
from lakebed.sorted_files.sorting import ExternalSorter
from lakebed.sorted_files.stored_groups import Stretch, stored_groups, stretches_of
from lakebed.sorted_files.tails import Tails
from lakebed.sorted_files.workers import Workers
from lakebed.sorted_files.writer_options import page_rows
from lakebed.sorted_files.writing import Content, write_file

MEMORY_BYTES = 512 * 1024 * 1024
PAGED_BYTES_MAX = 2 * 1024 * 1024
"""Of one part that is read by pages, as stored and decoded."""
TAILS_FRACTION = 16
"""Of a merge's memory is for whole tails; of the other files it keeps outlines."""
WINDOW_ROWS = 120_000
"""Rows of all inputs that a merge holds: its windows have about half, which suits the caches."""


class ParquetFiles:
    """Sorted files as Parquet objects. spill_directory: on local disk, made when needed.

    memory_bytes: of one merge; of one sorter and the files that are written from it. cache_bytes:
    of tails, parsed parts of them and pages, which are kept for lookups; None: as much as suits the
    memory. merge_bytes: of the buffers of one merge into a file, kept or refused; None: as much as
    `memory_bytes` suggests. workers: threads that one merge into a file uses.
    """

    def __init__(
        self,
        objects: ObjectStore,
        *,
        spill_directory: Path,
        memory_bytes: int = MEMORY_BYTES,
        cache_bytes: int | None = None,
        merge_bytes: int | None = None,
        workers: int = 1,
    ) -> None:
        self._objects = objects
        self._spill_directory = spill_directory
        self._memory_bytes = memory_bytes
        self._merge_bytes = memory_bytes if merge_bytes is None else merge_bytes
        self._limited = merge_bytes is not None
        self._workers = workers
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
        regions: Sequence[KeyRange],
        job_rows: int = 0,
        value_statistics: bool = False,
    ) -> FileWritten | None:
        """Put one file of sorted rows at `path`; None, and no object, when there are no rows."""
        return write_file(
            self._objects,
            schema,
            batches,
            name=name,
            path=path,
            regions=regions,
            compiled=kernels_pay(job_rows),
            value_statistics=value_statistics,
        )

    def merge_into_file(
        self,
        schema: Schema,
        parts: Sequence[FilePart],
        *,
        name: FileName,
        path: str,
        region: KeyRange,
        processing: ProcessingPass | None = None,
        value_statistics: bool = False,
    ) -> FileWritten | None:
        """Put the rows of all parts into one file; row groups that need no merging are copied."""
        engine = engine_for(sum(part.rows for part in parts))
        request = row_request(schema, None, processing)
        with Workers(self._workers) as workers:
            return write_file(
                self._objects,
                schema,
                self._contents(request, parts, engine, workers),
                name=name,
                path=path,
                regions=[region],
                compiled=engine is not PLAIN,
                value_statistics=value_statistics,
                workers=workers,
            )

    def _contents(
        self, request: RowRequest, parts: Sequence[FilePart], engine: Engine, workers: Workers
    ) -> Iterator[Content]:
        """Yield rows and row groups in the order of their keys."""
        reads = self._reads(request, parts, by_pages=engine is not PLAIN)
        outlines = self._outlines()
        self._refuse_more_than_memory_holds(reads, outlines)
        if request.work is not None:  # every row is looked at
            stretches = [Stretch(tuple(reads), is_passed_on=False)]
        else:
            stretches = stretches_of(reads, outlines, request.columns)
        groups = GroupSources(self._objects, outlines)
        for stretch in stretches:
            if stretch.is_passed_on:
                (read,) = stretch.reads
                yield from stored_groups(self._objects, read, outlines.whole(read.part))
                continue
            sources = [
                groups.source(read, by_pages=engine is not PLAIN, workers=workers)
                for read in stretch.reads
            ]
            merged = self._merged(request, sources, engine, workers)
            yield from request.processed(merged, parts)

    def _merged(
        self, request: RowRequest, sources: Sequence[Source], engine: Engine, workers: Workers
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of sources in order; several workers merge at the same time."""
        fields = request.schema.key_fields
        if engine is PLAIN or workers.count == 1:
            return engine.merge(sources, fields, request.folds)
        return merged_by_workers(
            sources,
            fields,
            lambda part: request.combined(engine.merge(part, fields, request.folds)),
            workers,
            bytes_max=self._merge_bytes // 4,
        )

    def merge(
        self,
        schema: Schema,
        parts: Sequence[FilePart],
        condition: Condition | None = None,
        processing: ProcessingPass | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows of all parts in the order of their keys, each part only inside its region."""
        request = row_request(schema, condition, processing)
        rows = sum(part.rows for part in parts)
        engine = engine_for(rows) if condition is None else PLAIN  # a query may end early
        reads = self._reads(request, parts, by_pages=engine is not PLAIN)
        groups = GroupSources(self._objects, self._outlines())
        sources = [groups.source(read, by_pages=engine is not PLAIN) for read in reads]
        merged = engine.merge(sources, schema.key_fields, request.folds)
        return request.processed(merged, parts)

    def read(
        self,
        schema: Schema,
        groups: Sequence[Sequence[FilePart]],
        condition: Condition | None = None,
        figures: ReadFigures | None = None,
        processing: ProcessingPass | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one group after the other, reading ahead."""
        request = row_request(schema, condition, processing)
        reads = [self._reads(request, parts) for parts in groups]
        sources = QuerySources(
            self._objects,
            self._tails,
            reads,
            lookup=None if condition is None else self._lookup,
            bytes_max=self._memory_bytes // 8,
            figures=figures or ReadFigures(),
        )
        with sources:
            for group, parts in zip(reads, groups, strict=True):
                merged = PLAIN.merge(sources.sources(group), schema.key_fields)
                yield from request.processed(merged, parts)

    def iterated(
        self, schema: Schema, batches: Iterable[pa.RecordBatch], use: IteratorUse
    ) -> Iterator[pa.RecordBatch]:
        """Yield what a user's iterator makes of sorted rows with all columns."""
        return iterated(schema, batches, use)

    def select(
        self, schema: Schema, batch: pa.RecordBatch, columns: Sequence[str]
    ) -> pa.RecordBatch:
        """Return some columns of a batch that has all."""
        return batch.select(list(columns))

    def sample(self, schema: Schema, part: FilePart) -> Sample:
        """Return the sample of a file, inside the part's region."""
        return self._tails.of(part).notes.sample.inside(part.region)

    def measure(
        self, schema: Schema, part: FilePart, regions: Sequence[KeyRange]
    ) -> tuple[RowsWritten | None, ...]:
        """Read every row of a file; return what lies in each region."""
        fresh = Tails(self._objects, bytes_max=0)  # a kept tail says nothing of what is stored
        everything = RowFilter(schema.row_keys, EVERYTHING, None)
        share, columns = self._share(1), arrow_schema(schema)
        tail = fresh.of(part)
        batches = read_part(
            self._objects, part, tail, columns=columns, wanted=everything, share=share
        )
        return measured(schema, batches, tail.notes, path=part.path, regions=regions)

    def rows(self, batch: pa.RecordBatch) -> int:
        """Return how many rows a batch has."""
        return len(batch)

    def head(self, batch: pa.RecordBatch, rows: int) -> pa.RecordBatch:
        """Return the first rows of a batch."""
        return batch.slice(0, rows)

    def _share(self, inputs: int, *, by_pages: bool = False) -> Share:
        """Return what each of so many inputs may hold.

        A fourth of the memory is batches that wait (one and a half per input), a fourth their
        files' bytes; the window's copies, or those of a row group, take the rest.
        """
        each = self._merge_bytes // (4 * max(1, inputs))
        rows = max(1024, min(BATCH_ROWS_MAX, 2 * WINDOW_ROWS // max(1, inputs)))
        if by_pages:  # more is no faster, and there are no windows
            each, rows = min(each, PAGED_BYTES_MAX), BATCH_ROWS_MAX
        batch_bytes = max(1, int(each / self._batches_waiting))
        return Share(batch_bytes=batch_bytes, batch_rows=rows, file_bytes=each)

    @property
    def _batches_waiting(self) -> float:
        return 1.5 if self._workers == 1 else 2.5  # one more is read ahead

    def _outlines(self) -> Outlines:
        return Outlines(self._objects, whole_bytes_max=self._merge_bytes // TAILS_FRACTION)

    def _refuse_more_than_memory_holds(self, reads: Sequence[PartRead], outlines: Outlines) -> None:
        """Raise InvalidError where the limit of a merge cannot be kept: each part needs the rows of
        a page as they are stored, in whole blocks of each column, and decoded, each of which is a
        fourth of all; row groups need half."""
        if not self._limited:
            return
        outlines.read([read.part for read in reads])
        rows = {g.row_bytes for read in reads for g in outlines.of(read.part).groups}
        leaves = max((len(read.columns) for read in reads), default=0)
        page = max((page_rows(row) * row for row in rows), default=0)
        each = max(page + leaves * BLOCK_BYTES, int(page * self._batches_waiting))
        inputs = overlap([read.part.region for read in reads])
        smallest = max(4 * inputs * each, 6 * max(GROUP_BYTES_MAX, *rows, 0))
        if self._merge_bytes < smallest:
            raise InvalidError(
                "a merge needs more memory than it may take",
                merge_bytes=self._merge_bytes,
                smallest=smallest,
                files=inputs,
                hint="allow as much as `smallest`, or merge fewer files at a time",
            )

    def _reads(
        self, request: RowRequest, parts: Sequence[FilePart], *, by_pages: bool = False
    ) -> list[PartRead]:
        """Return what is to be read of each part."""
        if request.boxes == ():
            return []
        row_keys = request.schema.row_keys
        share = self._share(overlap([part.region for part in parts]), by_pages=by_pages)
        return [
            PartRead(
                part,
                RowFilter(row_keys, part.region, request.boxes, request.early),
                request.columns,
                share,
                request.work,
            )
            for part in parts
        ]


def overlap(regions: Sequence[KeyRange]) -> int:
    """Return how many regions at most hold one key."""
    ends = sorted(
        [(r.min, 1) for r in regions] + [(r.max, -1) for r in regions if r.max is not None]
    )
    most = depth = 0
    for _, step in ends:
        depth += step
        most = max(most, depth)
    return most
