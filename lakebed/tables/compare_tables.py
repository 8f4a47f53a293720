"""Finds how tables of a lake differ from those that files declare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from lakebed.errors import InvalidError
from lakebed.model.names import TableName
from lakebed.ports.table_registry import TableEntry
from lakebed.tables.declarations import Declaration
from lakebed.tables.declared_changes import change_lines, table_changes, watch_line
from lakebed.tables.plan_steps import FoundLake


class TableDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A table that is not as declared.

    file: that declares it; "": none does.
    is_there: whether the lake has it.
    details: what differs, a line each; empty: only one side has the table.
    """

    table: TableName
    file: str = ""
    is_there: bool = True
    details: tuple[str, ...] = ()


def compare_tables(declared: Sequence[Declaration], found: FoundLake) -> list[TableDifference]:
    """Return tables that differ, by name. What cannot become as declared says why."""
    entries = {entry.name: entry for entry in found.entries}
    names = {one.name for one in declared}
    differing = [TableDifference(table=name) for name in entries if name not in names]
    for one in declared:
        entry = entries.get(one.name)
        if entry is None:
            differing.append(TableDifference(table=one.name, file=one.file, is_there=False))
        elif details := tuple(_details(one, entry, found)):
            difference = TableDifference(table=one.name, file=one.file, details=details)
            differing.append(difference)
    return sorted(differing, key=lambda one: one.table)


def _details(declared: Declaration, entry: TableEntry, found: FoundLake) -> Iterator[str]:
    if entry.quarantined:
        yield "in quarantine: it cannot be compared"
        return
    if entry.online is not declared.online:
        yield "offline -> online" if declared.online else "online -> offline"
    if entry.watched != declared.watch:
        yield watch_line(entry.watched, declared.watch)
    there = found.opened[entry.id]
    try:
        yield from change_lines(table_changes(declared, there), there)
    except InvalidError as error:
        yield str(error)
