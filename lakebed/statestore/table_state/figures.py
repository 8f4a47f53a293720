"""Sums over a state, for people who look at it: each is one statement, whatever the table's
size."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lakebed.model.names import Micros, PartitionId
from lakebed.statestore.table_state.kept_versions import kept_versions, unneeded
from lakebed.statestore.table_state.state import TableState
from lakebed.statestore.table_state.sums import KNOWN_ROWS


class FileFigures(msgspec.Struct, frozen=True):
    """Files of a state.

    size: bytes.
    rows: exact if `exact`; after a split, estimates per leaf.
    """

    files: int
    size: int
    rows: int
    exact: bool


class GarbageFigures(msgspec.Struct, frozen=True):
    """Files without references that are not removed yet.

    due: those that may be removed now.
    """

    files: int
    size: int
    due: int


def file_figures(state: TableState) -> FileFigures:
    """Return the sums over all files, each counted once."""
    files, size, rows, exact = state.connection.execute(
        "SELECT count(*), coalesce(sum(size), 0), coalesce(sum(rows), 0), coalesce(min(exact), 1)"
        " FROM (SELECT max(size) AS size, sum(rows) AS rows, min(exact) AS exact"
        " FROM file_references GROUP BY file)"
    ).fetchone()
    return FileFigures(files, size, rows, bool(exact))


def rows_known_exactly(state: TableState) -> int:
    """Return how many rows lie in parts of files whose rows are counted, not estimated."""
    return _known_rows(state)[0]


def inexact_leaves(state: TableState) -> set[PartitionId]:
    """Return the leaves whose row counts are estimates."""
    if not _known_rows(state)[1]:
        return set()
    rows = state.connection.execute("SELECT partition FROM partition_sums WHERE estimated > 0")
    return {partition for (partition,) in rows}


def _known_rows(state: TableState) -> tuple[int, int]:
    """Return the rows of references that are exact, and how many references are not. Kept with the
    sums of the state, so no reference is read; proven with them."""
    known, estimated = state.connection.execute(
        "SELECT total, rows FROM row_sums WHERE name = ?", (KNOWN_ROWS,)
    ).fetchone()
    return known, estimated


def leaf_bytes(state: TableState) -> dict[PartitionId, int]:
    """Return the bytes of each leaf that has files: of a file that several leaves share, as large a
    part as its rows."""
    rows = state.connection.execute(
        "SELECT partition, sum(CASE WHEN r.rows = whole.rows THEN size"
        " WHEN whole.rows = 0 THEN size / whole.leaves ELSE size * r.rows / whole.rows END)"
        " FROM file_references r JOIN (SELECT file, sum(rows) AS rows, count(*) AS leaves"
        " FROM file_references GROUP BY file) whole ON whole.file = r.file GROUP BY partition"
    )
    return dict(rows)


def garbage_figures(state: TableState, *, before: Micros, now: Micros) -> GarbageFigures:
    """Return the sums over garbage. before: due is what was removed until then and no
    version needs."""
    files, size, due = state.connection.execute(
        "SELECT count(*), coalesce(sum(size), 0), coalesce(sum(at <= ?), 0) FROM garbage", (before,)
    ).fetchone()
    kept = kept_versions(state, now=now)
    if kept:
        due = sum(1 for _ in unneeded(state, kept, before=before))
    return GarbageFigures(files, size, due)


def claims_by_job(state: TableState) -> Sequence[tuple[str, int]]:
    """Return how many references each job holds."""
    return state.connection.execute(
        "SELECT j.id, count(r.file) FROM jobs j LEFT JOIN file_references r ON r.job = j.key"
        " GROUP BY j.key ORDER BY j.key"
    ).fetchall()


def claims_without_job(state: TableState) -> Sequence[tuple[bytes, int]]:
    """Return file and partition of references that a job holds which is not there."""
    return state.connection.execute(
        "SELECT file, partition FROM file_references"
        " WHERE job IS NOT NULL AND job NOT IN (SELECT key FROM jobs)"
    ).fetchall()


def garbage_with_references(state: TableState) -> Sequence[bytes]:
    """Return files that are garbage and referenced."""
    rows = state.connection.execute(
        "SELECT file FROM garbage WHERE file IN (SELECT file FROM file_references)"
    )
    return [file for (file,) in rows]


def numbers_beyond(state: TableState) -> Sequence[tuple[str, int]]:
    """Return what holds a log number above the state's own, or an id that is not given out."""
    return state.connection.execute(
        "SELECT what, n FROM (SELECT 'floor' AS what, floor AS n FROM head"
        " UNION ALL SELECT 'commit ' || id, number FROM commits"
        " UNION ALL SELECT 'base of commit ' || id, base + 1 FROM commits"
        " UNION ALL SELECT 'job ' || id, number FROM jobs"
        " UNION ALL SELECT 'pin ' || id, number FROM pins"
        " UNION ALL SELECT 'horizon', number FROM horizon"
        " UNION ALL SELECT 'tag ' || name, number FROM tags"
        " UNION ALL SELECT 'follower ' || name, number FROM followers"
        " UNION ALL SELECT 'garbage ' || hex(file), number FROM garbage"
        " UNION ALL SELECT 'connection ' || id, number FROM connections"
        " UNION ALL SELECT 'item ' || hex(item), number FROM items"
        " UNION ALL SELECT 'gap in ' || name, number FROM gaps"
        " UNION ALL SELECT 'window that ends at ' || end, number FROM windows"
        " UNION ALL SELECT 'sealed window that ends at ' || end, sealed FROM windows)"
        " WHERE n > (SELECT number FROM head)"
        " UNION ALL SELECT 'partition', id FROM partitions"
        " WHERE id >= (SELECT partition_next FROM head)"
    ).fetchall()


def state_bytes(state: TableState) -> int:
    """Return how large a state is, as the database that it is."""
    (pages,) = state.connection.execute("PRAGMA page_count").fetchone()
    (page_bytes,) = state.connection.execute("PRAGMA page_size").fetchone()
    return int(pages * page_bytes)
