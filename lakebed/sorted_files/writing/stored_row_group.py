"""A row group that a writer puts into its file as it is: from another file, or from a helper of a
merge. It is also the message in which processes hand row groups over."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lakebed.parquet_bytes.encoded import EncodedRowGroup
from lakebed.sorted_files.format.file_notes import RowGroupNote

Known = Sequence[tuple[int, bytes, int]]
"""Known rows, ascending: the index, the key, and by how many rows it may stand beside it."""


class StoredRowGroup(msgspec.Struct, frozen=True, array_like=True):
    """A row group as it is stored.

    note, checksums: what the file's notes say of it and of its pages.
    last: a row key, perhaps above all rows where more rows follow.
    known: rows from the first on, the first exactly.
    """

    encoded: EncodedRowGroup
    note: RowGroupNote
    checksums: bytes
    last: bytes
    known: Known

    @property
    def rows(self) -> int:
        return self.encoded.rows
