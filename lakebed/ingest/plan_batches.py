"""Decides which files of those that wait become a table's next batch. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lakebed.config.settings import TableSettings
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.ports.file_batches import LIST_BYTES_MAX, BatchTarget, SubmittedFile

INGEST_BYTES_MAX = 20 << 30
"""A batch with more is a bulk import's, where the table leaves it to us."""
LEAF_ROWS_MAX = 5_000_000
"""A batch with more rows for each leaf is a bulk import's, too."""


class TargetFigures(NamedTuple):
    """The size of a table, in rows, bytes and leaves."""

    rows: int = 0
    bytes: int = 0
    leaves: int = 1


def next_batch(
    pending: Sequence[SubmittedFile], settings: TableSettings, now: Micros
) -> list[SubmittedFile]:
    """Return the files of the next batch, in the order of `pending`; none: it is not due yet.

    pending: the oldest first. The oldest is in each batch, so that none waits for ever; then
    whatever fits. A file above the maximum goes alone.
    """
    if not _is_due(pending, settings, now):
        return []
    chosen: list[SubmittedFile] = []
    size = listed = 0
    for file in pending:
        fits = size + file.size <= settings.batch_bytes_max
        if not chosen or (fits and listed + file.list_bytes <= LIST_BYTES_MAX):
            chosen.append(file)
            size += file.size
            listed += file.list_bytes
        if len(chosen) == settings.batch_files_max or size >= settings.batch_bytes_max:
            break
    return chosen


def _is_due(pending: Sequence[SubmittedFile], settings: TableSettings, now: Micros) -> bool:
    if not pending:
        return False
    if now - pending[0].seen >= settings.batch_seconds_max * MICROS_PER_SECOND:
        return True
    enough = sum(file.size for file in pending) >= settings.batch_bytes_min
    return enough and len(pending) >= settings.batch_files_min


def target_of(
    files: Sequence[SubmittedFile], settings: TableSettings, table: TargetFigures
) -> BatchTarget:
    """Return what takes a batch in. Rows of files are guessed by the bytes of rows in the table."""
    if settings.batch_target != "auto":
        return settings.batch_target
    size = sum(file.size for file in files)
    rows = size * table.rows // table.bytes if table.bytes else 0
    is_large = size > INGEST_BYTES_MAX or rows > LEAF_ROWS_MAX * table.leaves
    return "bulk-import" if is_large else "ingest"
