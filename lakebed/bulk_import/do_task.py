"""The tasks of a bulk import: sort some input into a run, merge runs into a file.

Each attempt writes under names of its own, used once (protocol H19), and answers with them. What is
put by attempts whose answer was lost, is never referred to and swept once the floor has passed
its base (H11).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import msgspec
import pyarrow as pa

from lakebed.bulk_import.work import (
    FileMerged,
    ImportJob,
    MergeWork,
    RunSorted,
    SortWork,
    decode,
    encode,
    refused,
)
from lakebed.errors import (
    CorruptError,
    DeniedError,
    InvalidError,
    LakebedError,
    NewerFormatError,
)
from lakebed.model.names import RUN_BYTES, FileName, file_name
from lakebed.model.paths import file_path, run_path
from lakebed.model.processing import Processing, ProcessingPass
from lakebed.model.ranges import EVERYTHING
from lakebed.model.schema import Schema
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.source_files import SourceFile, SourceFiles
from lakebed.sorted_files.parquet_files import ParquetFiles
from lakebed.sorted_files.sorting.stored_runs import merged_runs, store_run
from lakebed.user_files.casting import conformed
from lakebed.user_files.input_files import rows_of
from lakebed.user_files.signed_types import unsigned_again

NO_RETRY = (InvalidError, CorruptError, DeniedError, NewerFormatError)
"""Errors that another attempt of the same task would meet again: the run ends with them."""


class DoTask:
    """Does tasks, one after the other, in any process that reaches the lake's objects.

    sources: users' files. rng: for names of attempts; not the same in two processes.
    """

    def __init__(
        self,
        *,
        objects: ObjectStore,
        files: ParquetFiles,
        sources: SourceFiles,
        rng: random.Random,
    ) -> None:
        self._objects = objects
        self._files = files
        self._sources = sources
        self._rng = rng

    def sort(self, job: bytes, work: bytes) -> bytes:
        """Sort rows of input files and put them as one run; return the answer.

        Raises:
            UnavailableError, UnknownOutcomeError: another attempt may succeed.
        """
        try:
            return encode(self._sort(decode(job, ImportJob), decode(work, SortWork)))
        except NO_RETRY as error:
            return encode(refused(error))

    def merge(self, job: bytes, work: bytes) -> bytes:
        """Merge runs into one file and put it; return the answer. Raises: as `sort`."""
        try:
            return encode(self._merge(decode(job, ImportJob), decode(work, MergeWork)))
        except NO_RETRY as error:
            return encode(refused(error))

    def sort_frame(self, job: bytes, number: int, batches: Iterable[pa.RecordBatch]) -> bytes:
        """Sort rows that are given and put them as one run; return the answer.

        number: of this part of the rows, counted from 0; no other part has it.

        Raises:
            As `sort`.
        """
        try:
            decoded = decode(job, ImportJob)
            schema = decoded.table_text.schema()
            given = unsigned_again(batches, schema)
            rows = conformed(given, schema, extra_columns=decoded.extra_columns)
            return encode(self._sorted(decoded, number, schema, rows))
        except NO_RETRY as error:
            return encode(refused(error))

    def _sort(self, job: ImportJob, work: SortWork) -> RunSorted:
        schema = job.table_text.schema()
        return self._sorted(job, work.number, schema, self._rows(job, work, schema))

    def _sorted(
        self, job: ImportJob, number: int, schema: Schema, rows: Iterable[pa.RecordBatch]
    ) -> RunSorted:
        read = 0
        with self._files.sorter(schema, _before(job), job_rows=job.rows_about) as sorter:
            for batch in rows:
                read += len(batch)
                sorter.add(batch)
            (kept,) = sorter.rows_in([EVERYTHING])
            sorted_run = store_run(
                self._objects,
                schema,
                sorter.sorted_batches(EVERYTHING),
                path=run_path(job.table, self._name(job, number)),
                points=job.points,
            )
        return RunSorted(number, sorted_run, read, read - kept)

    def _rows(self, job: ImportJob, work: SortWork, schema: Schema) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all pieces. An error names the file as its sender does."""
        for piece in work.pieces:
            file = piece.file
            row_groups = None if piece.row_groups is None else range(*piece.row_groups)
            seen = SourceFile(file.path, file.size, file.version)
            try:
                with self._sources.on_disk(seen, piece.spans) as path:
                    here = msgspec.structs.replace(file, path=str(path))
                    yield from rows_of(
                        here, schema, extra_columns=job.extra_columns, row_groups=row_groups
                    )
            except LakebedError as error:
                error.facts["path"] = file.path
                raise

    def _merge(self, job: ImportJob, work: MergeWork) -> FileMerged:
        schema, processing = job.table_text.schema(), job.table_text.row_processing()
        name = self._name(job, work.number, shared=len(work.key_ranges) > 1)
        after = None if processing is None else ProcessingPass(processing, job.at, "compaction")
        batches = merged_runs(
            self._objects,
            schema,
            work.sorted_runs,
            work.key_range,
            job_rows=work.job_rows,
            processing=after,
        )
        written = self._files.write(
            schema,
            batches,
            name=name,
            path=file_path(job.table, name),
            key_ranges=work.key_ranges,
            job_rows=work.job_rows,
            value_statistics=job.value_statistics,
        )
        return FileMerged(work.number, written)

    def _name(self, job: ImportJob, number: int, *, shared: bool = False) -> FileName:
        attempt = self._rng.getrandbits(8 * RUN_BYTES)
        return file_name(base=job.base, job=job.job, run=attempt, sequence=number, shared=shared)


def _before(job: ImportJob) -> ProcessingPass | None:
    """Return what is done with rows of one run. An iterator sees all rows of a leaf, hence later;
    what rows with equal keys become may be found in two steps."""
    processing = job.table_text.row_processing()
    if processing is None:
        return None
    first = msgspec.structs.replace(processing, iterator=None)
    return None if first == Processing() else ProcessingPass(first, job.at, "ingest")
