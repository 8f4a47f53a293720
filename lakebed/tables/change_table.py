"""Change a table that is there: settings, fields, or all of its rows; list what was changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from lakebed.config.settings import check_batching, check_compaction, table_settings
from lakebed.errors import GenerationError, InvalidError, LogTruncatedError
from lakebed.model.changes.schema_changes import planned
from lakebed.model.names import Micros, TransactionNumber
from lakebed.model.processing import Processing, checked_processing, processing_json
from lakebed.model.schema import Schema
from lakebed.observe import events
from lakebed.ports.installed_steps import InstalledSteps
from lakebed.ports.transaction_log import TransactionLog
from lakebed.statestore.log_entries.codec import decode_entry
from lakebed.statestore.log_entries.feed_changes import BeginAgain
from lakebed.statestore.log_entries.table_changes import (
    ChangeProcessing,
    ChangeSchema,
    ChangeSettings,
    Clear,
    CreateTable,
)
from lakebed.statestore.log_entries.transactions import Change
from lakebed.statestore.open_table import OpenTable, start_of
from lakebed.tables.check_steps import check_iterator, check_strategy

PLANS_MAX = 10
"""A plan is made again when the table was cleared just before, which is rare."""

What = Literal["created", "settings", "fields", "processing", "cleared"]


class TableChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change to a table as a whole.

    number, at: of its log entry.
    settings: their new values.
    fields: what was done to them.
    processing: what is done with rows from then on.
    leaves: how many the table had afterwards, where the change made them anew.
    """

    number: TransactionNumber
    at: Micros
    what: What
    settings: Mapping[str, Any] = {}
    fields: tuple[str, ...] = ()
    processing: Mapping[str, Any] | None = None
    leaves: int | None = None


class TableHistory(msgspec.Struct, frozen=True, kw_only=True):
    """Changes to a table as a whole, oldest first.

    since: the oldest log entry that is kept; those before it were emptied when snapshots took their
        place.
    """

    since: TransactionNumber
    changes: tuple[TableChange, ...]


def change_settings(
    table: OpenTable, changes: Mapping[str, Any], steps: InstalledSteps
) -> TransactionNumber:
    """Give settings new values; the rest stay. Returns the number of its log entry.

    Raises:
        InvalidError: nothing to change, an unknown setting, a value out of bounds, a strategy that
            is not among the steps; nothing was changed.
        ConflictError, UnavailableError: nothing was changed; call again.
        UnknownOutcomeError: call again; twice is as good as once.
    """
    if not changes:
        raise InvalidError("no setting to change", table=table.name, hint="name one: NAME=VALUE")
    settings = table_settings(changes, table.settings())
    check_compaction(changes, settings)
    check_batching(changes, settings)
    check_strategy(changes, steps)
    number = _committed(table, ChangeSettings(dict(changes)))
    events.emit(events.SETTINGS_CHANGED, table=table.name, number=number, settings=[*changes])
    return number


def change_fields(
    table: OpenTable,
    *,
    add: Mapping[str, object],
    rename: Mapping[str, str],
    drop: Sequence[str],
    widen: Mapping[str, object],
) -> Schema:
    """Add, rename, drop and widen fields in one transaction; no file is rewritten. All names but
    new ones are those of before. Returns the newest schema.

    Raises:
        InvalidError: nothing to change, an unknown field, a change that is not allowed; nothing was
            changed.
        ConflictError: another process changed fields meanwhile; nothing was changed: look, and call
            again. UnavailableError: nothing was changed; call again.
        UnknownOutcomeError: perhaps it is done: look at the schema before calling again.
    """
    before = table.schema
    changes = planned(before, add=add, rename=rename, drop=drop, widen=widen)
    number = _committed(table, ChangeSchema(before.version, changes))
    events.emit(events.FIELDS_CHANGED, table=table.name, number=number, fields_count=len(changes))
    return table.schema


def change_processing(
    table: OpenTable, processing: Processing | None, steps: InstalledSteps
) -> TransactionNumber:
    """Do something else with rows from now on; None: nothing. Returns the number of its log entry.

    Raises:
        InvalidError: it is not allowed, or not right for rows that are there; an iterator that is
            not among the steps; nothing was changed.
        ConflictError, UnavailableError: nothing was changed; call again.
        UnknownOutcomeError: perhaps it is done: look at the processing before calling again.
    """
    schema = table.schema
    check_iterator(processing, schema, steps)
    value = None
    if processing is not None:
        value = processing_json(checked_processing(processing, schema), schema)
    number = _committed(table, ChangeProcessing(value))
    events.emit(events.PROCESSING_CHANGED, table=table.name, number=number)
    return number


def clear_table(
    table: OpenTable, points: tuple[bytes, ...] | None, *, from_start: bool = False
) -> TransactionNumber:
    """Remove all rows; what ingests and compactions have begun before is refused (protocol H16).

    points: of a new partition tree; None keeps the one that is there. Readers of older versions go
        on, until their files are collected.
    from_start: feeds begin their sources again; else they go on behind what they have taken.

    Returns the number of its log entry.

    Raises:
        InvalidError: points that cannot be; the table is as before.
        ConflictError, UnavailableError: the table is as before; call again.
        UnknownOutcomeError: perhaps it is cleared: look before calling again.
    """
    again = (BeginAgain(),) if from_start else ()
    number = _committed(table, Clear(points), *again)
    events.emit(events.TABLE_CLEARED, table=table.name, number=number)
    return number


def history(log: TransactionLog) -> TableHistory:
    """Return the changes to a table as a whole, as far back as its log is kept."""
    since = TransactionNumber(1)
    for _ in range(PLANS_MAX):
        try:
            return TableHistory(since=since, changes=tuple(_changes(log, since)))
        except LogTruncatedError as error:  # perhaps just now
            since = TransactionNumber(error.oldest)
    raise LogTruncatedError(since)


def _committed(table: OpenTable, *changes: Change) -> TransactionNumber:
    """Commit what does not depend on what the table holds: a generation that is gone is no harm."""
    for tried in range(1, PLANS_MAX + 1):
        with table.head.reading() as state:
            start = start_of(state)
        try:
            return table.head.commit(table.own(start, *changes))
        except GenerationError:
            if tried == PLANS_MAX:
                raise
    raise AssertionError("the last try returns or raises")


def _changes(log: TransactionLog, since: TransactionNumber) -> Iterator[TableChange]:
    for number, body in log.read_after(TransactionNumber(since - 1)):
        entry = decode_entry(body, number)
        for transaction in entry.transactions:
            for change in transaction.changes:
                found = _table_change(change, number, entry.at)
                if found is not None:
                    yield found


def _table_change(change: Change, number: TransactionNumber, at: Micros) -> TableChange | None:
    match change:
        case CreateTable():
            leaves = len(change.points) + 1
            return TableChange(
                number=number, at=at, what="created", settings=change.settings, leaves=leaves
            )
        case ChangeSettings():
            return TableChange(number=number, at=at, what="settings", settings=change.changes)
        case ChangeSchema():
            fields = tuple(map(str, change.changes))
            return TableChange(number=number, at=at, what="fields", fields=fields)
        case ChangeProcessing():
            given = change.processing
            return TableChange(number=number, at=at, what="processing", processing=given)
        case Clear():
            made = None if change.points is None else len(change.points) + 1
            return TableChange(number=number, at=at, what="cleared", leaves=made)
        case _:
            return None
