"""Rows as they truly lie in objects: what a job takes away is seen before it is believed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from lakebed.model.files import FilePart, StoredFile
from lakebed.model.names import Micros, TableId
from lakebed.model.paths import file_path
from lakebed.model.processing import ProcessingPass
from lakebed.model.ranges import EVERYTHING, KeyRange
from lakebed.model.schema import Schema
from lakebed.statestore.log_entries.file_changes import ReplaceFiles
from lakebed.statestore.table_state.placing import own_key_range
from lakebed.statestore.table_state.state import TableState
from tests.simulation.rows import Row, rows_asked


class StoredRows:
    """Reads the objects of a table. files: of the true store. schema: that users send rows by."""

    def __init__(
        self,
        table: TableId,
        files: Any,  # noqa: ANN401 - of either kind
        schema: Schema,
    ) -> None:
        self._table = table
        self._files = files
        self._schema = schema

    def taken_away(self, state: TableState, change: ReplaceFiles) -> Counter[Row]:
        """Return the rows of a job's inputs, merged, that its output has not."""
        inputs = {r.file.name: r.file for r in state.claimed(change.job)}
        key_range = own_key_range(state, change.partition)
        before = self._rows(state, list(inputs.values()), key_range)
        output = () if change.output is None else (change.output.file,)
        return before - self._rows(state, output, EVERYTHING)

    def _rows(
        self, state: TableState, files: Sequence[StoredFile], key_range: KeyRange
    ) -> Counter[Row]:
        parts = [FilePart(f, file_path(self._table, f.name), key_range, 0) for f in files]
        processing = state.processing()
        given = None if processing is None else ProcessingPass(processing, Micros(0), "compaction")
        batches = self._files.merge(state.schema(), parts, processing=given) if parts else ()
        return Counter(row for batch in batches for row in rows_asked(batch, self._schema))
