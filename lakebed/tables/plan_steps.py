"""Holds what is found of a lake's tables, and steps that make them what files declare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from lakebed.config.settings import TableSettings
from lakebed.model.names import TableId, TableName
from lakebed.model.processing import Processing
from lakebed.model.schema import Schema
from lakebed.ports.table_registry import TableEntry
from lakebed.statestore.log_entries.table_changes import (
    ChangeProcessing,
    ChangeSchema,
    ChangeSettings,
)
from lakebed.statestore.open_table import Start

Removal = Literal["offline", "drop"]
Action = Literal["rename", "create", "adopt", "change", "watch", "online", "offline", "drop"]
Change = ChangeSchema | ChangeSettings | ChangeProcessing


class FoundTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table as a lake holds it.

    start: of a worker that has read just this.
    has_files: whether it may have rows.
    """

    start: Start
    schema: Schema
    settings: TableSettings
    processing: Processing | None
    has_files: bool = False

    @property
    def definition(self) -> tuple[Schema, TableSettings, Processing | None]:
        """Return what a plan rests on."""
        return self.schema, self.settings, self.processing


class FoundLake(msgspec.Struct, frozen=True, kw_only=True):
    """The tables of a lake.

    opened: those that were looked into, by id.
    """

    entries: Sequence[TableEntry]
    opened: Mapping[TableId, FoundTable] = {}


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """The data that a step removes for good.

    field: of the table; "": the whole table.
    rows, size: of the table, in bytes; None: not known. Rows may be estimates.
    """

    table: TableName
    id: TableId
    field: str = ""
    rows: int | None = None
    size: int | None = None

    @property
    def what(self) -> tuple[TableId, str]:
        """Return what it is, whatever it is called by now, and whatever it holds."""
        return self.id, self.field

    def __str__(self) -> str:
        of = f"field {self.field!r} of " if self.field else ""
        known = (
            "rows not known" if self.rows is None else f"{self.rows:,} rows, {self.size:,} bytes"
        )
        return f"{of}table {self.table} ({known})"


class TableStep(msgspec.Struct, frozen=True, kw_only=True):
    """One step, which is done or not: an entry of one log, or a change of one name.

    table: its name after the step.
    file: that declares it; "": none does any more.
    id: of the table; None: it is made.
    before: the former name, of a rename.
    watch: the folder that is watched after it; "": none.
    details: what changes, a line each.
    changes: that one commit makes.
    """

    action: Action
    table: TableName
    file: str = ""
    id: TableId | None = None
    before: TableName | None = None
    watch: str = ""
    details: tuple[str, ...] = ()
    losses: tuple[Loss, ...] = ()
    changes: tuple[Change, ...] = ()


class TablesPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The steps to be taken, in order: renames, creations, changes, removals.

    unchanged: tables that are as declared.
    left_alone: tables that files declared before, and none does now.
    quarantined: declared tables that are in quarantine: nothing is done with them.
    """

    steps: tuple[TableStep, ...]
    unchanged: tuple[TableName, ...] = ()
    left_alone: tuple[TableName, ...] = ()
    quarantined: tuple[TableName, ...] = ()

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Return all that is removed for good. `apply_tables` takes it as consent."""
        return tuple(loss for step in self.steps for loss in step.losses)
