"""Sums that a state keeps of its own rows, so that rows which a disk changed or lost are noticed.

A row's sum is the CRC-32 of its values; a set of rows has their number and the sum of their sums.
Triggers (`sum_triggers.py`) keep them in the SQLite transaction that changes the rows, so a reader
of a set compares without knowing its history. Nothing here is digested: sums say nothing about the
table.

`row_sums`: each table of the layout. `partition_sums`: of each partition its own row (node), and
the references that lie on it (files, total): a query verifies the few sets that it reads. Beside
these, how many rows references have that are exact (known), and how many are not (estimated): of
each partition, and of all in `row_sums` under `known_rows`. So a table is counted without a scan.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any
from zlib import crc32

import msgspec

from lakebed.errors import CacheDamagedError

LAYOUT = (
    """CREATE TABLE row_sums(
        name TEXT PRIMARY KEY, rows INTEGER NOT NULL, total INTEGER NOT NULL) WITHOUT ROWID""",
    """CREATE TABLE partition_sums(
        partition INTEGER PRIMARY KEY, node INTEGER NOT NULL, files INTEGER NOT NULL DEFAULT 0,
        total INTEGER NOT NULL DEFAULT 0, known INTEGER NOT NULL DEFAULT 0,
        estimated INTEGER NOT NULL DEFAULT 0)""",
)
KNOWN_ROWS = "known_rows"
"""Name of a row of `row_sums`: `rows` is how many references are estimates, `total` how many rows
all others have."""
COUNTS = ("known", "estimated")
"""Columns of `partition_sums` that layouts below 4 do not have."""

COLUMNS: Mapping[str, str] = {
    "head": "only number at floor generation root partition_next dropped schema settings",
    "commits": "id digest number base user",
    "entry_times": "number at",
    "partitions": "id parent dimension point left right rows_unsplittable",
    "file_references": "partition file rows exact min max size tail_offset checksum"
    " tail_checksum job",
    "jobs": "key id partition number at",
    "garbage": "file number at size",
    "pins": "id number until",
    "positions": "name value owner",
    "last_entry": "only number checksum",
    "connections": "key id version number",
    "tallies": "connection name hour read stored filtered quarantined deduplicated sampled_out"
    " discarded bytes",
    "items": "connection item number",
    "gaps": "connection name number first end reason",
    "errors_in_row": "connection name errors",
    "watermarks": "connection time sealed reached",
    "progress": "connection name event_time since said",
    "windows": "connection end seconds rows late sealed revision number",
    "horizon": "only number",
    "tags": "name number at",
    "followers": "name number until is_behind",
}
"""Tables whose rows are summed, with all of their columns in order."""

SUMMED_BY_HAND = frozenset({"commits", "file_references"})
"""Tables that most rows are put into: by two statements only, which add their sums themselves."""

PROVEN_ROWS_MAX = 2_000
"""A state with at most so many rows is proven whole when it is opened, and again when another
process has written to it: a millisecond or two."""

_encode = msgspec.msgpack.Encoder().encode


def row_sum(*values: Any) -> int:  # noqa: ANN401 - whatever SQLite holds
    """Return the sum of a row."""
    return crc32(_encode(values))


def sum_of(rows: Iterable[Sequence[Any]]) -> tuple[int, int]:
    """Return number and total of rows, each a tuple of its values."""
    number = total = 0
    for row in rows:
        number += 1
        total += crc32(_encode(row))
    return number, total


def lay_out_sums(connection: sqlite3.Connection) -> None:
    """Make the sums of a state that has none, from the rows that it has."""
    for statement in LAYOUT:
        connection.execute(statement)
    for table in COLUMNS:
        connection.execute(
            "INSERT INTO row_sums VALUES (?, ?, ?)", (table, *_summed(connection, table))
        )
    nodes = connection.execute(_select("partitions")).fetchall()
    connection.executemany(
        "INSERT INTO partition_sums(partition, node) VALUES (?, ?)",
        ((row[0], row_sum(*row)) for row in nodes),
    )
    for partition, *sums in _by_partition(connection):
        connection.execute(
            "UPDATE partition_sums SET files = ?, total = ?, known = ?, estimated = ?"
            " WHERE partition = ?",
            (*sums, partition),
        )
    connection.execute(
        "INSERT INTO row_sums SELECT ?, coalesce(sum(estimated), 0), coalesce(sum(known), 0)"
        " FROM partition_sums",
        (KNOWN_ROWS,),
    )


class PendingSums:
    """Sums of rows that were put into SUMMED_BY_HAND and are not written yet: of many rows that
    are put in one SQLite transaction each sum is written once."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, int], tuple[int, int]] = {}
        self._counts: dict[int, tuple[int, int]] = {}

    def add(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Note rows, each with all columns. Those of references begin with the partition."""
        for row in rows:
            key = table, row[0] if table == "file_references" else 0
            files, total = self._sums.get(key, (0, 0))
            self._sums[key] = files + 1, total + crc32(_encode(row))
            if table == "file_references":
                known, estimated = self._counts.get(row[0], (0, 0))
                exact = bool(row[3])
                self._counts[row[0]] = known + row[2] * exact, estimated + (not exact)

    def of_partition(self, partition: int) -> tuple[int, int]:
        """Return number and total of references to a partition that are not written yet."""
        return self._sums.get(("file_references", partition), (0, 0))

    def copy(self) -> PendingSums:
        """Return one to go back to."""
        copied = PendingSums()
        copied._sums.update(self._sums)
        copied._counts.update(self._counts)
        return copied

    def clear(self) -> None:
        """Forget what was noted: it was undone."""
        self._sums.clear()
        self._counts.clear()

    def write(self, connection: sqlite3.Connection) -> None:
        """Write what was noted, in the SQLite transaction that put the rows."""
        of_partitions: list[tuple[int, ...]] = []
        of_tables: dict[str, tuple[int, int]] = {}
        for (table, partition), (rows, total) in self._sums.items():
            if table == "file_references":
                of_partitions.append((rows, total, *self._counts[partition], partition))
            rows_before, total_before = of_tables.get(table, (0, 0))
            of_tables[table] = rows_before + rows, total_before + total
        if self._counts:
            known, estimated = map(sum, zip(*self._counts.values(), strict=True))
            of_tables[KNOWN_ROWS] = estimated, known
        connection.executemany(
            "UPDATE partition_sums SET files = files + ?, total = total + ?, known = known + ?,"
            " estimated = estimated + ? WHERE partition = ?",
            of_partitions,
        )
        connection.executemany(
            "UPDATE row_sums SET rows = rows + ?, total = total + ? WHERE name = ?",
            [(*sums, table) for table, sums in of_tables.items()],
        )
        self.clear()


def verify_node(partition: int, node: int | None, row: Sequence[Any]) -> None:
    """Raise CacheDamagedError unless a partition's row is the one that was written."""
    if node != row_sum(*row):
        raise damaged("partitions", partition=partition)


def verify_table(connection: sqlite3.Connection, table: str) -> None:
    """Raise CacheDamagedError unless a table holds exactly the rows that were written."""
    if _summed(connection, table) != _kept(connection, table):
        raise damaged(table)


def verify_at_open(connection: sqlite3.Connection) -> bool:
    """Prove a small state whole, and of a large one the small tables and that no sum of a partition
    is missing or outdated. Returns whether all of it was proven.

    Raises:
        CacheDamagedError: it does not prove itself.
    """
    kept = dict(connection.execute("SELECT name, rows FROM row_sums").fetchall())
    if kept.keys() != {*COLUMNS, KNOWN_ROWS}:
        raise damaged("row_sums")
    del kept[KNOWN_ROWS]
    left = PROVEN_ROWS_MAX
    if sum(kept.values()) <= left:
        verify_all(connection)
        return True
    for table in sorted(kept, key=kept.__getitem__):
        left -= kept[table]
        if left >= 0:
            verify_table(connection, table)
    _verify_partition_totals(connection)
    return False


def verify_all(connection: sqlite3.Connection) -> None:
    """Prove a whole state: every row, every sum, every index.

    Raises:
        CacheDamagedError: it does not prove itself.
    """
    verify_rows(connection)
    problem = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if problem != "ok":
        raise damaged("pages", problem=problem)


def verify_rows(connection: sqlite3.Connection) -> None:
    """Prove every row and every sum of a state.

    Raises:
        CacheDamagedError: it does not prove itself.
    """
    for table in COLUMNS:
        verify_table(connection, table)
    _verify_partition_totals(connection)
    nodes = connection.execute(_select("partitions")).fetchall()
    wanted = {row[0]: [row_sum(*row), 0, 0, 0, 0] for row in nodes}
    for partition, *sums in _by_partition(connection):
        wanted.setdefault(partition, [0] * 5)[1:] = sums
    found = connection.execute(
        "SELECT partition, node, files, total, known, estimated FROM partition_sums"
    )
    if wanted != {partition: sums for partition, *sums in found}:
        raise damaged("partition_sums")


def damaged(where: str, **facts: object) -> CacheDamagedError:
    """Return the error of a state that does not prove itself. where: a table of it."""
    return CacheDamagedError(
        "the cache of the state is damaged",
        where=where,
        **facts,
        hint="send the same again: the cache is set aside and rebuilt from snapshot and log",
    )


def _verify_partition_totals(connection: sqlite3.Connection) -> None:
    """Hold the sums of partitions against those of their tables: none is missing or outdated."""
    count, nodes, files, total, known, estimated = connection.execute(
        "SELECT count(*), coalesce(sum(node), 0), coalesce(sum(files), 0), coalesce(sum(total), 0),"
        " coalesce(sum(known), 0), coalesce(sum(estimated), 0) FROM partition_sums"
    ).fetchone()
    if (count, nodes) != _kept(connection, "partitions"):
        raise damaged("partition_sums")
    if (files, total) != _kept(connection, "file_references"):
        raise damaged("partition_sums")
    if (estimated, known) != _kept(connection, KNOWN_ROWS):
        raise damaged("partition_sums")


def _kept(connection: sqlite3.Connection, table: str) -> tuple[int, int] | None:
    found = connection.execute(
        "SELECT rows, total FROM row_sums WHERE name = ?", (table,)
    ).fetchone()
    return None if found is None else (found[0], found[1])


def _summed(connection: sqlite3.Connection, table: str) -> tuple[int, int]:
    return sum_of(connection.execute(_select(table)))


def _select(table: str) -> str:
    return f"SELECT {', '.join(COLUMNS[table].split())} FROM {table}"  # noqa: S608 - constant names


def _by_partition(connection: sqlite3.Connection) -> Iterator[tuple[int, ...]]:
    """Yield partition, number and total of references, rows known and references estimated, by
    partition."""
    rows = connection.execute(_select("file_references"))
    for partition, own in groupby(rows, key=itemgetter(0)):
        files = total = known = estimated = 0
        for row in own:
            files += 1
            total += row_sum(*row)
            known += row[2] if row[3] else 0
            estimated += not row[3]
        yield partition, files, total, known, estimated
