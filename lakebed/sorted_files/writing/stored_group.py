"""A row group as another file stores it: a writer puts it into its file as it is."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lakebed.parquet_bytes.encoded import EncodedRowGroup

Known = Sequence[tuple[int, bytes, int]]
"""Some rows, ascending: the place, the key, and by how many rows it may stand beside it."""


class StoredGroup(msgspec.Struct, frozen=True):
    """A row group as it is stored. checksums: of its pages, as the notes have them. first, last:
    row keys, the last one perhaps above all rows where more rows follow. known: rows from the first
    on, the first exactly."""

    encoded: EncodedRowGroup
    checksums: bytes
    first: bytes
    last: bytes
    row_bytes: int
    known: Known

    @property
    def rows(self) -> int:
        return self.encoded.rows
