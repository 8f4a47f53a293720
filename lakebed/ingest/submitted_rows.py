"""Rows of submitted files, of each only as it was when it was submitted."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lakebed.errors import InvalidError, LakebedError
from lakebed.model.schema import Schema
from lakebed.ports.file_batches import SubmittedFile
from lakebed.ports.source_files import SourceFile, SourceFiles
from lakebed.user_files.input_files import InputFile, format_of, rows_of


class RowsOfFiles:
    """Rows of files by name, each on this machine while it is read."""

    def __init__(self, files: SourceFiles) -> None:
        self._files = files

    def rows(self, file: SubmittedFile, schema: Schema) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file. Raises: as `SubmittedRows.rows`, with the file's name."""
        try:
            with self._files.on_disk(SourceFile(file.name, file.size, file.version)) as path:
                local = InputFile(str(path), format_of(path), file.size, file.version)
                yield from rows_of(local, schema)
        except LakebedError as error:
            error.facts["path"] = file.name
            raise

    def problem(self, file: SubmittedFile) -> str:
        """Return why a file is not there as it was submitted; "": it is."""
        try:
            found = [one for one in self._files.find(file.name) if one.name == file.name]
        except InvalidError as error:
            return f"{error.code()}: {error.message}"
        if not found:
            return "it is gone"
        same = (found[0].size, found[0].version) == (file.size, file.version)
        return "" if same else "it was changed after it was submitted"
