"""Restore: a table is made of an export. All rows are taken in by one commit, once: its id follows
from the manifest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pyarrow as pa

from lakebed.errors import CorruptError, InvalidError, TableExistsError, TableMissingError
from lakebed.exports.exported_files import batches_of, check_file
from lakebed.exports.manifest import ExportManifest, required_manifest
from lakebed.exports.row_sums import RowSum
from lakebed.exports.target import ExportTarget
from lakebed.ingest.ingest_rows import IngestRows
from lakebed.model.names import JobId, RequestDigest, TransactionNumber, digest_of
from lakebed.model.processing import Processing, checked_processing, processing_json
from lakebed.model.schema import Schema, schema_json
from lakebed.observe import events
from lakebed.observe.usage import carried
from lakebed.ports.installed_steps import InstalledSteps
from lakebed.query.run_query import RunQuery
from lakebed.statestore.open_table import OpenTable
from lakebed.tables.catalog import TableCatalog
from lakebed.tables.check_new_table import check_new_table
from lakebed.tables.definition import Definition, definition_from_json, definition_of
from lakebed.user_files.casting import conformed

CHECKED_AT_ONCE = 8


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a restore.

    number: of the log entry that took the rows in.
    rows, files: of the table, as far as this call made them.
    repeated: the table had been restored before; this call did nothing.
    verified: how many rows were compared; None: that was not asked for.
    """

    table: str
    number: TransactionNumber
    rows: int
    files: int
    repeated: bool = False
    verified: int | None = None


class RestoreTable:
    """Makes tables of exports. Safe to kill anywhere, and to run again.

    ingest: takes rows in that such a table gave.
    steps: those that will work on the table.
    """

    def __init__(
        self,
        *,
        catalog: TableCatalog,
        ingest: IngestRows[pa.RecordBatch],
        query: RunQuery[pa.RecordBatch],
        steps: InstalledSteps,
    ) -> None:
        self._catalog = catalog
        self._steps = steps
        self._ingest = ingest
        self._query = query

    def run(
        self,
        name: str,
        source: ExportTarget,
        *,
        verify: bool = False,
        on_progress: Callable[[str, int, int], None] = lambda _phase, _done, _total: None,
    ) -> Restored:
        """Make the table of an export, or complete what an earlier try began.

        verify: read files and table, and compare.
        on_progress: called with what is being done, with how many rows, of how many.

        Raises:
            InvalidError: no export lies there, or no table can be made of it; a table of this name
                has another schema or processing, or rows. CorruptError: a manifest that was
                changed, a file that is damaged or missing. Nothing was made.
            As `IngestRows.run`: the table is there, perhaps, without rows; run it again.
            CorruptError: rows are others than those of the files, where that was to be verified.
        """
        manifest = required_manifest(source)
        wanted = _definition(manifest, self._steps)
        job = JobId(f"restore-{manifest.digest.hex()}")
        digest = digest_of(b"restore", manifest.digest)
        table = self._found(name)
        if table is None or table.number_of(job, digest) is None:
            if table is not None:
                _refuse_other(table, wanted)
            _check_files(source, manifest)
            table = table or self._made(name, wanted)
        rows = _ExportedRows(source, manifest, table.schema, digest)
        done = self._ingest.run(
            table, rows, job, written=lambda d, total: on_progress("written", d, total)
        )
        restored = Restored(
            table=table.name,
            number=done.number,
            rows=done.rows,
            files=done.files,
            repeated=done.repeated,
        )
        if not done.repeated:
            events.emit(
                events.TABLE_RESTORED,
                table=table.name,
                rows_count=done.rows,
                files_count=done.files,
                number=done.number,
            )
        if verify:
            self._verify(table, source, manifest, on_progress)
            restored = msgspec.structs.replace(restored, verified=manifest.rows)
        return restored

    def _found(self, name: str) -> OpenTable | None:
        try:
            return self._catalog.find(name)
        except TableMissingError:
            return None

    def _made(self, name: str, wanted: Definition) -> OpenTable:
        """Return the new table, or the one that another process made just now."""
        try:
            return self._catalog.create(
                name,
                wanted.schema,
                split_points=wanted.split_points,
                settings=wanted.settings,
                processing=wanted.processing,
            )
        except TableExistsError:
            table = self._catalog.find(name)
            _refuse_other(table, wanted)
            return table

    def _verify(
        self,
        table: OpenTable,
        source: ExportTarget,
        manifest: ExportManifest,
        on_progress: Callable[[str, int, int], None],
    ) -> None:
        """Compare the rows of files and table. Raises: CorruptError: they differ."""
        total = 2 * manifest.rows
        sums = RowSum(), RowSum()
        columns = list(manifest.columns)
        for batch in _rows_of(source, manifest):
            sums[0].add(batch.select(columns))
            on_progress("compared", sums[0].rows, total)
        for batch in self._query.run(table):
            sums[1].add(batch.select(columns))
            on_progress("compared", sums[0].rows + sums[1].rows, total)
        if sums[0].value != sums[1].value:
            hint = "if rows came to the table since, or grew too old, that is why"
            raise CorruptError(
                "the table has other rows than the export",
                table=table.name,
                rows=sums[1].rows,
                exported=sums[0].rows,
                hint=hint,
            )


class _ExportedRows:
    """Rows of an export, to ingest. schema: of the table that takes them."""

    def __init__(
        self, source: ExportTarget, manifest: ExportManifest, schema: Schema, digest: RequestDigest
    ) -> None:
        self._source = source
        self._manifest = manifest
        self.schema = schema
        self.digest = digest

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        return conformed(_rows_of(self._source, self._manifest), self.schema)


def _rows_of(source: ExportTarget, manifest: ExportManifest) -> Iterator[pa.RecordBatch]:
    for file in manifest.files:
        yield from batches_of(source, file)


def _definition(manifest: ExportManifest, steps: InstalledSteps) -> Definition:
    """Return what the table is made of: of the schema just the columns that were exported.

    Raises:
        InvalidError: a key was not exported, or processing needs a field that was not.
    """
    whole = definition_from_json(manifest.definition)
    names = set(manifest.columns)
    schema, processing = whole.schema, whole.processing
    keys = {field.name for field in schema.key_fields}
    needed = keys | _fields_needed(schema, processing)
    missing = sorted(needed - names)
    if missing:
        what = "a key" if missing[0] in keys else "a field that processing needs"
        hint = "export it with more columns, or create a table and ingest the files"
        raise InvalidError(f"{what} was not exported", field=missing[0], hint=hint)
    values = tuple(field for field in schema.values if field.name in names)
    found = msgspec.structs.replace(
        whole, schema=Schema(row_keys=schema.row_keys, sort_keys=schema.sort_keys, values=values)
    )
    check_new_table(found.schema, found.settings, found.processing, steps)
    return found


def _fields_needed(schema: Schema, processing: Processing | None) -> set[str]:
    if processing is None:
        return set()
    if processing.iterator is not None:  # it is called with all columns
        return {field.name for field in schema.fields}
    return set(processing.fields)


def _refuse_other(table: OpenTable, wanted: Definition) -> None:
    """Refuse a table that is not an empty one of this definition. Raises: InvalidError."""
    there = definition_of(table)
    hint = "choose another name, or drop that table first"
    if _essence(definition_from_json(there)) != _essence(wanted):
        raise InvalidError(
            "a table of this name has another schema or processing", table=table.name, hint=hint
        )
    with table.head.reading() as state:
        files = sum(leaf.files for leaf in state.leaf_figures())
    if files:
        raise InvalidError("a table of this name has other rows", table=table.name, hint=hint)


def _essence(definition: Definition) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
    """Return what decides which rows a table takes, and what it makes of them."""
    done, schema = definition.processing, definition.schema
    if done is None:
        return schema_json(schema), None
    return schema_json(schema), processing_json(checked_processing(done, schema), schema)


def _check_files(source: ExportTarget, manifest: ExportManifest) -> None:
    """Compare all files with their checksums. Raises: CorruptError, for the first that differs."""
    with ThreadPoolExecutor(CHECKED_AT_ONCE, thread_name_prefix="lakebed-check") as threads:
        for _ in threads.map(carried(lambda file: check_file(source, file)), manifest.files):
            pass
