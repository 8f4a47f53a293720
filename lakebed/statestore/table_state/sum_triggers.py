"""Triggers that keep a state's sums with what a connection writes.

A connection has only those that its statements need: making all of them takes longer than many a
commit.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from functools import lru_cache

from lakebed.statestore.table_state.sums import COLUMNS, SUMMED_BY_HAND, row_sum

INSERT, UPDATE, DELETE = "INSERT", "UPDATE", "DELETE"

_KEEPING_TABLE: Mapping[str, str] = {
    INSERT: "UPDATE row_sums SET rows = rows + 1, total = total + {new} WHERE name = '{table}'",
    UPDATE: "UPDATE row_sums SET total = total + {new} - {old} WHERE name = '{table}'",
    DELETE: "UPDATE row_sums SET rows = rows - 1, total = total - {old} WHERE name = '{table}'",
}
"""The sum of a table."""
_KEEPING_PARTITION: Mapping[str, Mapping[str, str]] = {
    "partitions": {
        INSERT: "INSERT INTO partition_sums(partition, node) VALUES (NEW.id, {new})",
        UPDATE: "UPDATE partition_sums SET node = node + {new} - {old} WHERE partition = NEW.id",
        DELETE: "DELETE FROM partition_sums WHERE partition = OLD.id",
    },
    "file_references": {
        UPDATE: """UPDATE partition_sums SET total = total + {new} - {old},
        known = known + NEW.rows * NEW.exact - OLD.rows * OLD.exact,
        estimated = estimated + OLD.exact - NEW.exact WHERE partition = NEW.partition;
        UPDATE row_sums SET total = total + NEW.rows * NEW.exact - OLD.rows * OLD.exact,
        rows = rows + OLD.exact - NEW.exact WHERE name = 'known_rows'""",
        DELETE: """UPDATE partition_sums SET files = files - 1, total = total - {old},
        known = known - OLD.rows * OLD.exact, estimated = estimated - (NOT OLD.exact)
        WHERE partition = OLD.partition;
        UPDATE row_sums SET total = total - OLD.rows * OLD.exact, rows = rows - (NOT OLD.exact)
        WHERE name = 'known_rows'""",
    },
}
"""Sums of a partition."""

_WRITES = re.compile(r"(INSERT|UPDATE|DELETE)( OR REPLACE| OR IGNORE)?(?: INTO| FROM)? (\w+)")
_READS = "SELECT "


class SumTriggers:
    """The triggers of a connection that writes to a state.

    They are temporary, and made in the SQLite transaction that needs them first: undone, they are
    made again.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._made: set[tuple[str, str]] = set()
        self._made_now: set[tuple[str, str]] = set()
        self._can_sum = False

    def keep(self, statement: str) -> None:
        """Let sums be kept with what a statement writes, all but rows that are put into
        SUMMED_BY_HAND: it is for `PendingSums` to add those. For who runs it, before."""
        for table, event in _written(statement):
            if (table, event) not in self._made:
                self._make(table, event)

    def committed(self) -> None:
        """Be done with a transaction that was kept: its triggers stay."""
        self._made_now.clear()

    def undone(self) -> None:
        """Forget the triggers of a transaction that was undone, in whole or in part: they may be
        undone, too."""
        self._made -= self._made_now
        self._made_now.clear()

    def _make(self, table: str, event: str) -> None:
        run = self._connection.execute
        if not self._can_sum:
            self._connection.create_function("row_sum", -1, row_sum, deterministic=True)
            run("PRAGMA recursive_triggers=ON")  # else a replaced row is not subtracted
            self._can_sum = True
        new, old = (
            f"row_sum({', '.join(f'{age}.{column}' for column in COLUMNS[table].split())})"
            for age in ("NEW", "OLD")
        )
        bodies = _KEEPING_TABLE[event], _KEEPING_PARTITION.get(table, {}).get(event)
        body = "; ".join(filter(None, bodies)).format(table=table, new=new, old=old)
        run(
            f"CREATE TEMP TRIGGER IF NOT EXISTS {table}_{event.lower()} AFTER {event}"
            f" ON main.{table} BEGIN {body}; END"
        )
        self._made.add((table, event))
        self._made_now.add((table, event))


@lru_cache(maxsize=512)
def _written(statement: str) -> Sequence[tuple[str, str]]:
    """Return the tables and events of which a statement needs the triggers."""
    if statement.startswith(_READS):
        return ()
    found = _WRITES.match(statement)
    if found is None:
        raise AssertionError(f"no sums can be kept with {statement!r}")
    table, events = found[3], [found[1]]
    if table not in COLUMNS:
        return ()
    if found[2] == " OR REPLACE":
        events.append(DELETE)
    if " DO UPDATE " in statement:
        events.append(UPDATE)
    by_hand = table in SUMMED_BY_HAND
    return [(table, one) for one in events if not (by_hand and one == INSERT)]
