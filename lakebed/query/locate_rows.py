"""Finds the files of a table, and the row groups in them, where rows lie now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from lakebed.errors import ObjectMissingError, VersionExpiredError
from lakebed.model.files import FilePart
from lakebed.model.ranges import KeyRange, overlaps_any, union
from lakebed.model.schema import Schema
from lakebed.ports.sorted_files import Selection
from lakebed.query.run_query import plan_query
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.placing import reached_leaves
from lakebed.statestore.table_state.state import TableState

FILES_MAX = 10_000
"""Files that are looked into at the most."""


class LocatedRows(msgspec.Struct, frozen=True):
    """Rows in one row group of a file.

    path: of the file's object.
    row_group: its index in the file.
    rows: that were looked for.
    """

    path: str
    row_group: int
    rows: int


class RowGroupFinder(Protocol):
    """A finder of the row groups of files that hold wanted rows."""

    def row_groups_with(
        self, schema: Schema, part: FilePart, condition: Selection
    ) -> list[tuple[int, int]]:
        """Return the row groups of a file that hold rows of a condition, each with how many."""
        ...


def locate_rows(
    files: RowGroupFinder,
    table: OpenTable,
    condition: Selection,
    within: Sequence[KeyRange] | None = None,
) -> list[LocatedRows]:
    """Return where the rows of a condition lie in a table's newest version, in key order. Rows as
    they are stored: whatever processing makes of them when they are read.

    within: keys that the rows have; None: any.

    Raises:
        VersionExpiredError: a file was merged meanwhile; ask again.
        CorruptError, UnavailableError: as queries do.
    """
    table.head.follow()
    with table.head.reading() as state:
        number, schema = state.head().number, state.schema()
        if within is None:
            leaves = plan_query(state, table, schema, condition).leaves
            parts = [part for of_leaf in leaves for part in of_leaf]
        else:
            parts = _parts_within(state, table, union(within))
    try:
        return [
            LocatedRows(part.path, row_group, rows)
            for part in parts[:FILES_MAX]
            for row_group, rows in files.row_groups_with(schema, part, condition)
        ]
    except ObjectMissingError as error:
        hint = "ask again"
        raise VersionExpiredError("the version was collected", number=number, hint=hint) from error


def _parts_within(state: TableState, table: OpenTable, keys: Sequence[KeyRange]) -> list[FilePart]:
    """Return the files that may hold some keys, by the bounds of theirs."""
    state.require_table()
    return [
        table.part(reference, key_range)
        for leaf, key_range in reached_leaves(state, state.head().root, keys)
        for reference, _ in state.references(leaf)
        if overlaps_any(reference.bounds.as_range().meets(key_range), keys)
    ]
