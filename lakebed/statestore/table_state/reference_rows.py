"""File references as rows of the state's SQLite, both ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakebed.model.files import FileReference, KeyBounds, StoredFile

REFERENCE_COLUMNS = (
    "partition, file, rows, exact, min, max, size, tail_offset, checksum, tail_checksum, job"
)
INSERT_REFERENCE = (
    f"INSERT INTO file_references({REFERENCE_COLUMNS})"  # noqa: S608 - constant names
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def reference_of(row: Sequence[Any]) -> FileReference:
    """Return the reference that a row says; what follows its columns is left alone."""
    partition, name, rows, exact, least, most, size, tail_offset, checksum, tail_checksum = row[:10]
    return FileReference(
        StoredFile(name, size, tail_offset, checksum & 0xFFFF_FFFF_FFFF_FFFF, tail_checksum),
        partition,
        rows,
        KeyBounds(least, most),
        bool(exact),
    )


def row_of(reference: FileReference, job: int | None) -> tuple[Any, ...]:
    """Return the row of a reference. job: key of the job that holds it."""
    file, bounds = reference.file, reference.bounds
    return (
        reference.partition,
        file.name,
        reference.rows,
        int(reference.exact),
        bounds.min,
        bounds.max,
        file.size,
        file.tail_offset,
        _signed(file.checksum),
        file.tail_checksum,
        job,
    )


def _signed(checksum: int) -> int:
    """SQLite's integers have 63 bits and a sign."""
    return checksum - (1 << 64) if checksum >= 1 << 63 else checksum
