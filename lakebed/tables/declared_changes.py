"""Plans the changes of one table that make it what a file declares."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from lakebed.config.settings import TableSettings, check_compaction, table_settings
from lakebed.model.changes.processing_changes import check_processing_change
from lakebed.model.changes.schema_changes import changed, planned
from lakebed.model.names import Micros
from lakebed.model.processing import Processing, check_schema_change, processing_json
from lakebed.model.schema import Schema
from lakebed.statestore.log_entries.table_changes import (
    ChangeProcessing,
    ChangeSchema,
    ChangeSettings,
)
from lakebed.tables.declarations import Declaration, naming
from lakebed.tables.declared_fields import FieldsPlan, plan_fields
from lakebed.tables.plan_steps import Change, FoundTable


def table_changes(declared: Declaration, there: FoundTable) -> tuple[Change, ...]:
    """Return the changes that one commit makes, in an order in which each fits.

    Raises:
        InvalidError: the table cannot become what is declared.
    """
    fields = plan_fields(declared, there.schema)
    wanted = declared_processing(declared.processing, declared.schema)
    is_new = wanted != declared_processing(there.processing, there.schema)
    named = frozenset() if there.processing is None else there.processing.fields
    later = tuple(name for name in fields.drop if is_new and name in named)
    first = tuple(name for name in fields.drop if name not in later)
    changes: tuple[Change, ...]
    schema, changes = _fields_changed(
        there.schema, msgspec.structs.replace(fields, drop=first), there.processing
    )
    if is_new:
        with naming(at="processing"):
            if there.has_files:
                check_processing_change(there.processing, declared.processing, schema)
        changes = (*changes, ChangeProcessing(wanted))
    # what the old processing needs is dropped behind it
    _, last = _fields_changed(schema, FieldsPlan(drop=later), declared.processing)
    return (*changes, *last, *_settings_changed(declared, there.settings))


def declared_processing(processing: Processing | None, schema: Schema) -> dict[str, Any] | None:
    """Return a processing as files say it: without what the lake keeps beside it."""
    if processing is None:
        return None
    form = processing_json(processing, schema)
    if form.get("age_off") is not None:
        form["age_off"] = {k: v for k, v in form["age_off"].items() if k != "gone_before"}
    return form


def change_lines(changes: Sequence[Change], there: FoundTable) -> Iterator[str]:
    """Yield a line for each field, setting and processing that changes."""
    before = msgspec.to_builtins(there.settings)
    for change in changes:
        match change:
            case ChangeSchema():
                yield from map(str, change.changes)
            case ChangeSettings():
                yield from (f"{n}: {before[n]} -> {value}" for n, value in change.changes.items())
            case ChangeProcessing():
                old = processing_text(declared_processing(there.processing, there.schema))
                yield f"processing: {old} -> {processing_text(change.processing)}"


def watch_line(before: str, after: str) -> str:
    """Return a line for people: which folder a table watched, and which it watches. "": none."""
    return f"watch: {before or 'none'} -> {after or 'none'}"


def processing_text(processing: Mapping[str, Any] | None) -> str:
    """Return a processing for people."""
    return "none" if processing is None else json.dumps(processing)


def _fields_changed(
    schema: Schema, fields: FieldsPlan, processing: Processing | None
) -> tuple[Schema, tuple[Change, ...]]:
    """Return the schema after changes. processing: of the table at that time."""
    if fields.is_empty:
        return schema, ()
    changes = planned(
        schema, add=fields.add, rename=fields.rename, drop=fields.drop, widen=fields.widen
    )
    after = changed(schema, changes, at=Micros(0))
    if processing is not None:
        check_schema_change(processing, schema, after)
    return after, (ChangeSchema(schema.version, changes),)


def _settings_changed(declared: Declaration, there: TableSettings) -> tuple[Change, ...]:
    after = table_settings(declared.settings)
    wanted, before = msgspec.to_builtins(after), msgspec.to_builtins(there)
    changes = {name: value for name, value in wanted.items() if value != before[name]}
    with naming(at="settings"):
        check_compaction(changes, after)
    return (ChangeSettings(changes),) if changes else ()
