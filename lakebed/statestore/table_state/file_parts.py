"""Files of which several leaves had a part, and one leaf has the last: found by the state alone."""

from __future__ import annotations

from collections.abc import Sequence

from lakebed.model.files import FileReference
from lakebed.model.names import (
    BASE_BYTES,
    FILE_NAME_BYTES,
    SEQUENCE_BYTES,
    SHARED_BIT,
    PartitionId,
    TransactionNumber,
    is_shared,
)
from lakebed.statestore.table_state.state import TableState

_FIRST_BYTE = FILE_NAME_BYTES - SEQUENCE_BYTES + 1
"""Position of the first byte of the sequence in a file's name, as SQLite counts."""
_SHARED_FROM = (SHARED_BIT >> (8 * (SEQUENCE_BYTES - 1))).to_bytes(1, "big")
_IS_PART = f"(NOT exact OR substr(file, {_FIRST_BYTE}, 1) >= ?1)"
_LEAVES = (
    "SELECT DISTINCT partition FROM file_references r"  # noqa: S608 - constant texts
    f" WHERE {_IS_PART} AND job IS NULL AND file < ?2 AND NOT EXISTS ("
    "SELECT 1 FROM file_references o WHERE o.file = r.file AND o.partition <> r.partition)"
    " ORDER BY partition"
)
_WHOLE = (
    "SELECT coalesce(sum(tail_offset), 0), coalesce(sum(rows), 0)"  # noqa: S608 - constant texts
    f" FROM file_references WHERE NOT {_IS_PART}"
)


class ReferenceSizes:
    """The bytes that the rows of references of one state take.

    A whole file is known exactly. Of a part its rows are known, or estimated; a row is taken to be
    as large as those of the table's whole files, or, where there are none, of its own file. All
    references of the table are read for that, once, when the first part is asked for.
    """

    def __init__(self, state: TableState) -> None:
        self._state = state
        self._row_bytes: float | None = None

    def sum_of(self, references: Sequence[FileReference]) -> float:
        """Return how many bytes the rows of some references take together."""
        return sum(map(self.of, references))

    def of(self, reference: FileReference) -> float:
        """Return how many bytes the rows of a reference take."""
        if not _is_part(reference):
            return reference.file.size
        if self._row_bytes is None:
            self._row_bytes = row_bytes(self._state)
        if self._row_bytes:
            return self._row_bytes * reference.rows
        rows = sum(other.rows for other in self._state.references_of(reference.file.name))
        return reference.file.size * reference.rows / max(1, rows)


def bytes_of(state: TableState, references: Sequence[FileReference]) -> float:
    """Return how many bytes the rows of all references take, as `ReferenceSizes`."""
    return ReferenceSizes(state).sum_of(references)


def last_parts(state: TableState, references: Sequence[FileReference]) -> list[FileReference]:
    """Return those references that are the last of files which had several: the rest of
    such a file is never read, and takes room until the part is rewritten."""
    return [r for r in references if _is_part(r) and len(state.references_of(r.file.name)) == 1]


def leaves_with_last_parts(state: TableState, upto: TransactionNumber) -> list[PartitionId]:
    """Return the leaves that have the last part of a file that is not claimed. upto: the greatest
    base of such a file."""
    below = (upto + 1).to_bytes(BASE_BYTES, "big")
    rows = state.connection.execute(_LEAVES, (_SHARED_FROM, below))
    return [partition for (partition,) in rows]


def row_bytes(state: TableState) -> float:
    """Return how many bytes a row takes in files that one leaf has whole, footers left out. 0.0:
    there are no such files."""
    size, rows = state.connection.execute(_WHOLE, (_SHARED_FROM,)).fetchone()
    return float(size / rows) if rows else 0.0


def _is_part(reference: FileReference) -> bool:
    """Return whether a reference is to a part of a file, or was."""
    return not reference.exact or is_shared(reference.file.name)
