"""One slice of an export becomes a file and a note of what is in it; again, both are kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, suppress
from itertools import chain

import msgspec
import pyarrow as pa

from lakebed.errors import CorruptError, ObjectExistsError, UnavailableError
from lakebed.exports.ahead import made_ahead
from lakebed.exports.export_plan import ExportPlan
from lakebed.exports.exported_files import FirstAndLast, checksum_text, read_through
from lakebed.exports.manifest import ExportedFile
from lakebed.exports.rows_object import columns_sorted, put_rows
from lakebed.exports.target import ExportTarget, note_path, rows_path
from lakebed.ports.sorted_files import Selection
from lakebed.query.parquet_objects import ParquetPut, put_bytes, row_groups_of
from lakebed.query.run_query import RunQuery
from lakebed.query.slices import Slice, plan_of_slice
from lakebed.sorted_files.sorting.engines import kernels_pay
from lakebed.sorted_files.writing.encoding_row_groups import RowGroupEncoder
from lakebed.statestore.open_table import OpenTable

ROW_GROUP_BYTES = 16 << 20
"""Bytes of a row group in memory: while one is encoded, the next is read."""

RowsDone = Callable[[int], None]
"""Is called with how many more rows lie in files."""


class WriteSlice:
    """Writes slices of one plan, in any order, by any number of threads. Safe to kill anywhere, and
    for several processes at once: objects are put if absent.

    readers: so many slices are read at the same time. Another one is begun when one is read to its
        end, while its file is finished.
    """

    def __init__(
        self,
        *,
        query: RunQuery[pa.RecordBatch],
        table: OpenTable,
        target: ExportTarget,
        plan: ExportPlan,
        selection: Selection,
        readers: int,
    ) -> None:
        self._query = query
        self._table = table
        self._target = target
        self._plan = plan
        self._query_plan = plan.query_plan(selection)
        self._columns = plan.arrow_columns()
        self._schema = self._query_plan.schema
        self._row_keys = self._schema.row_keys
        self._rows = sum(part.rows for part in plan.slices)
        self._reading = threading.Semaphore(readers)
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Let all threads end soon; what they have begun is not finished."""
        self._stopped.set()

    def run(self, part: Slice, on_rows: RowsDone) -> ExportedFile | None:
        """Return what is known of a slice's file, which is written unless it is there; None: the
        slice has no rows, and is not the first.

        Raises:
            CorruptError: what is there is not what an earlier run wrote. As `RunQuery.read` and
            `ObjectStore`: run it again.
        """
        found = self._note(part.number) or self._rest_of_a_run(part.number)
        if found is None:
            found = self._written(part, on_rows)
        else:
            on_rows(found.rows)
        return found if found.rows or not part.number else None

    def _note(self, number: int) -> ExportedFile | None:
        """Return the note of a file that is as it says; None: there is none."""
        path = note_path(self._plan.id, number)
        body = self._target.body(path)
        if body is None:
            return None
        try:
            note = msgspec.json.decode(body, type=ExportedFile)
        except msgspec.DecodeError as error:
            raise self._contradiction(path, error) from None
        facts = self._target.objects.look(note.path) if note.bytes else None
        held = None if facts is None else (facts.size, checksum_text(facts.checksum))
        if note.bytes and held != (note.bytes, note.checksum):
            raise self._contradiction(note.path, "it is not what was written")
        return note

    def _rest_of_a_run(self, number: int) -> ExportedFile | None:
        """Return what a run left that was killed before its note; None: nothing is there."""
        path = rows_path(self._plan.id, number)
        if self._target.objects.size_of(path) is None:
            return None
        return self._noted(number, self._read_through(path))

    def _written(self, part: Slice, on_rows: RowsDone) -> ExportedFile:
        path = rows_path(self._plan.id, part.number)
        keys = FirstAndLast(self._row_keys, self._columns)
        with closing(made_ahead(self._row_groups(part, keys))) as ahead:
            first = next(ahead, None)
            if first is None and part.number:
                empty = ExportedFile(path=path, rows=0, bytes=0, checksum=checksum_text(0))
                return self._noted(part.number, empty)
            some = chain(() if first is None else (first,), ahead)
            try:
                put = self._put(path, self._counted(some, on_rows))
            except ObjectExistsError:  # another process does this export, too
                return self._noted(part.number, self._read_through(path))
        file = ExportedFile(
            path=path,
            rows=put.rows,
            bytes=put.bytes,
            checksum=checksum_text(put.checksum),
            first=keys.first,
            last=keys.last,
        )
        return self._noted(part.number, file)

    def _row_groups(self, part: Slice, keys: FirstAndLast) -> Generator[pa.Table, None, None]:
        """Read a slice, when it is its turn."""
        with self._reading:
            self._check_stopped()
            plan = plan_of_slice(self._query_plan, part)
            batches = self._query.read(self._table, plan, job_rows=self._rows)
            yield from row_groups_of(map(keys.seen, batches), bytes_max=ROW_GROUP_BYTES)

    def _put(self, path: str, row_groups: Iterable[pa.Table]) -> ParquetPut:
        names = self._columns.names
        encoder = RowGroupEncoder(
            self._schema,
            compiled=kernels_pay(self._rows),
            value_statistics=self._plan.value_statistics,
            columns=names,
        )
        with closing(encoder):
            return put_rows(
                self._target.objects,
                path,
                row_groups,
                encoder=encoder,
                sorted_by=columns_sorted(self._schema, names),
            )

    def _counted(self, row_groups: Iterable[pa.Table], on_rows: RowsDone) -> Iterator[pa.Table]:
        for row_group in row_groups:
            self._check_stopped()
            yield row_group
            on_rows(row_group.num_rows)

    def _check_stopped(self) -> None:
        if self._stopped.is_set():
            raise UnavailableError("the export was stopped", hint="run it again: it goes on")

    def _read_through(self, path: str) -> ExportedFile:
        return read_through(self._target, path, self._row_keys, self._columns)

    def _noted(self, number: int, file: ExportedFile) -> ExportedFile:
        """Put the note of a file. One that is there already, of another process, says the same."""
        path = note_path(self._plan.id, number)
        with suppress(ObjectExistsError):
            put_bytes(self._target.objects, path, msgspec.json.encode(file))
        return file

    def _contradiction(self, path: str, problem: object) -> CorruptError:
        hint = "begin the export anew: --restart"
        return CorruptError(
            "a file that an earlier run wrote is damaged",
            path=self._target.address(path),
            problem=problem,
            hint=hint,
        )
