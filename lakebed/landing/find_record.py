"""Finds what became of one record of a feed: the log entries that took its position, and the files
and row groups that hold its rows now."""

from __future__ import annotations

import msgspec

from lakebed.landing.verify_landing import TakenRange, taken_ranges
from lakebed.model.feeds.replays import origin_of
from lakebed.model.names import ConnectionId, TransactionNumber
from lakebed.model.predicates.language import And, Compare
from lakebed.model.ranges import KeyRange, Range
from lakebed.ports.sorted_files import Selection
from lakebed.ports.transaction_log import TransactionLog
from lakebed.query.conditions import condition_of
from lakebed.query.locate_rows import LocatedRows, RowGroupFinder, locate_rows
from lakebed.statestore.log_entries.codec import decode_entry
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.open_table import OpenTable

SPLIT, POSITION = "_split", "_position"
"""Columns of a table with lineage."""


class RecordInTable(msgspec.Struct, frozen=True, kw_only=True):
    """The traces of a record in one table.

    connection: that leads there; "": the landing of the feed.
    entries: that took its position, as far back as the log goes; several after an operator moved a
        position back, or a replay. Of a replay they are ranges in which it may lie.
    files: that hold rows of it now; none where no row was made of it.
    has_lineage: whether rows say which record they are of; else files are not known.
    """

    table: str
    connection: str
    entries: tuple[TakenRange, ...]
    files: tuple[LocatedRows, ...]
    has_lineage: bool


def find_landed(
    files: RowGroupFinder,
    table: OpenTable,
    log: TransactionLog,
    landed_by: ConnectionId,
    at: tuple[str, int],
) -> RecordInTable:
    """Return what became of a record in a landing table, whose keys it is found by.

    at: source split and position.
    """
    split, position = at
    ranges = {
        "source_split": Range(split, split, max_inclusive=True),
        "position": Range(position, position, max_inclusive=True),
    }
    condition = condition_of(table.schema, ranges=ranges, columns=["position"])
    return RecordInTable(
        table=table.name,
        connection="",
        entries=_entries(log, landed_by, at),
        files=tuple(locate_rows(files, table, condition)),
        has_lineage=True,
    )


def find_connected(
    files: RowGroupFinder,
    table: OpenTable,
    log: TransactionLog,
    connection: tuple[str, ConnectionId],
    at: tuple[str, int],
    *,
    has_lineage: bool,
) -> RecordInTable:
    """Return what became of a record in the table of a connection. Its rows are looked for among
    the keys of those files that the entries added.

    connection: its name and id.
    at: source split and position.
    has_lineage: whether rows say which record they are of.
    """
    name, id_ = connection
    entries = _entries(log, id_, at)
    found: list[LocatedRows] = []
    if has_lineage and entries:
        condition = _of_record(table, at)
        added = [one for entry in entries for one in _added(log, entry)]
        found = locate_rows(files, table, condition, added)
    return RecordInTable(
        table=table.name,
        connection=name,
        entries=entries,
        files=tuple(found),
        has_lineage=has_lineage,
    )


def _entries(
    log: TransactionLog, connection: ConnectionId, at: tuple[str, int]
) -> tuple[TakenRange, ...]:
    split, position = at
    taken, _ = taken_ranges(log, connection)
    return tuple(
        one
        for one in taken
        if origin_of(one.source_split) == split and one.begin <= position < one.end
    )


def _of_record(table: OpenTable, at: tuple[str, int]) -> Selection:
    split, position = at
    where = And((Compare(SPLIT, "=", split), Compare(POSITION, "=", position)))
    return condition_of(table.schema, columns=[POSITION], where=where)


def _added(log: TransactionLog, entry: TakenRange) -> list[KeyRange]:
    """Return the keys that the files of an entry have."""
    for number, body in log.read_after(TransactionNumber(entry.number - 1)):
        return [
            reference.bounds.as_range()
            for transaction in decode_entry(body, number).transactions
            for change in transaction.changes
            if isinstance(change, AddFiles)
            for reference in change.files
        ]
    return []
