"""Finds the files of a version that may hold the keys that a query asks for."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lakebed.model.files import FilePart, FileReference
from lakebed.model.ranges import Box, KeyRange, box_around, overlaps_any, span_of, union
from lakebed.model.schema import Schema
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.placing import reached_leaves
from lakebed.statestore.table_state.state import TableState


class LeafFiles(msgspec.Struct, frozen=True):
    """The files of a leaf.

    key_range: the leaf's.
    """

    key_range: KeyRange
    references: tuple[FileReference, ...]


class AskedKeys:
    """The keys that a query wants: ranges of whole keys, and boxes where these hold more."""

    def __init__(self, schema: Schema, boxes: Sequence[Box]) -> None:
        spans = [span_of(schema.row_keys, box) for box in boxes]
        self.keys = union([span for span, _ in spans])
        self._fields = schema.row_keys
        self._boxes = () if all(exact for _, exact in spans) else boxes

    def may_be_in(self, key_range: KeyRange) -> bool:
        """Return whether keys that are wanted may lie in a region."""
        if not overlaps_any(key_range, self.keys):
            return False
        if not self._boxes:
            return True
        around = box_around(self._fields, key_range)
        return any(all(map(KeyRange.overlaps, box, around)) for box in self._boxes)


def leaves_of(state: TableState, asked: AskedKeys) -> list[LeafFiles]:
    """Return the leaves that may hold what is asked for, in key order, with all their files.

    Raises:
        TableMissingError: the table was dropped.
    """
    state.require_table()
    return [
        LeafFiles(key_range, tuple(reference for reference, _ in state.references(leaf)))
        for leaf, key_range in reached_leaves(state, state.head().root, asked.keys)
        if asked.may_be_in(key_range)
    ]


def parts_of(
    table: OpenTable, asked: AskedKeys, leaves: Sequence[LeafFiles]
) -> tuple[tuple[FilePart, ...], ...]:
    """Return the files of some leaves that may hold what is asked for, leaf by leaf, without
    leaves that have none."""
    found = (
        tuple(
            table.part(reference, leaf.key_range)
            for reference in leaf.references
            if asked.may_be_in(reference.bounds.as_range().meets(leaf.key_range))
        )
        for leaf in leaves
    )
    return tuple(filter(None, found))
