"""A ledger of usage in one SQLite file. Hints: the last sums may be lost with the power, and those
that contradict their checksums are left out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from lakebed.backends.local.sqlite_database import SqliteDatabase
from lakebed.observe.usage import NO_TABLE, Counts
from lakebed.ports.paying.usage_ledger import HOUR_SECONDS, KEPT_SECONDS, LedgerEntry

_FORMAT = 2
_SCHEMA = """
CREATE TABLE usage (
    table_id TEXT NOT NULL,
    hour INTEGER NOT NULL,
    kind TEXT NOT NULL,
    counter TEXT NOT NULL,
    amount REAL NOT NULL,
    checksum INTEGER,
    PRIMARY KEY (table_id, hour, kind, counter)
) STRICT, WITHOUT ROWID"""
_SUM = "row_checksum(table_id, hour, kind, counter, amount)"
_UPGRADES = {
    1: (
        "ALTER TABLE usage ADD COLUMN checksum INTEGER",
        f"UPDATE usage SET checksum = {_SUM}",  # noqa: S608 - constant texts
    ),
}
_ADDED = f"iif(checksum IS {_SUM}, amount, 0.0) + excluded.amount"
_ADD = f"""
INSERT INTO usage VALUES (?1, ?2, ?3, ?4, ?5, row_checksum(?1, ?2, ?3, ?4, ?5))
ON CONFLICT DO UPDATE SET
    amount = {_ADDED}, checksum = row_checksum(table_id, hour, kind, counter, {_ADDED})
"""  # noqa: S608 - constant texts
_IS_THERE = f"""
SELECT 1 FROM usage WHERE table_id = ? AND hour = ? AND kind = ? AND checksum IS {_SUM}
LIMIT 1"""  # noqa: S608 - constant texts
_FORGET = "DELETE FROM usage WHERE table_id = ? AND hour < ?"
_READ = f"""
SELECT hour, kind, counter, amount FROM usage
WHERE table_id = ? AND hour >= ? AND hour < ? AND checksum IS {_SUM}
ORDER BY hour, kind, counter"""  # noqa: S608 - constant texts
_TABLES = "SELECT DISTINCT table_id FROM usage"
_KEPT_HOURS = KEPT_SECONDS // HOUR_SECONDS


class SqliteUsageLedger:
    """Sums, in the file `usage.sqlite` of a folder."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._database = SqliteDatabase(
            Path(root) / "usage.sqlite",
            _SCHEMA,
            format=_FORMAT,
            upgrades=_UPGRADES,
            durable=False,
        )

    @property
    def taken_by_add(self) -> Mapping[str, float]:
        """Return what one call of `add` uses itself, by counter."""
        return {"local_writes": 1.0}

    def add(self, entry: LedgerEntry) -> None:
        """Add counts, and forget those of the table that are too old."""
        self._add(entry, once=False)

    def add_once(self, entry: LedgerEntry) -> bool:
        """Add counts where there are none."""
        return self._add(entry, once=True)

    def _add(self, entry: LedgerEntry, *, once: bool) -> bool:
        key = entry.table, entry.hour, entry.kind
        with self._database.writing() as connection:
            if once and connection.execute(_IS_THERE, key).fetchone():
                return False
            rows = [(*key, counter, float(amount)) for counter, amount in entry.counts.items()]
            connection.executemany(_ADD, rows)
            connection.execute(_FORGET, (entry.table, entry.hour - _KEPT_HOURS))
        return True

    def read(self, table: str, *, since: int, until: int) -> list[LedgerEntry]:
        """Return the sums of a table, by hour and kind."""
        sums: dict[tuple[int, str], Counts] = {}
        if self._database.exists():
            with self._database.reading() as connection:
                rows = connection.execute(_READ, (table, since, until)).fetchall()
            for hour, kind, counter, amount in rows:
                sums.setdefault((hour, kind), {})[counter] = amount
        return [
            LedgerEntry(table=table, hour=hour, kind=kind, counts=counts)
            for (hour, kind), counts in sums.items()
        ]

    def tables(self) -> list[str]:
        """Return the tables that have entries."""
        found = {NO_TABLE}
        if self._database.exists():
            with self._database.reading() as connection:
                found |= {table for (table,) in connection.execute(_TABLES)}
        return sorted(found)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._database.close()
