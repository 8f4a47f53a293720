"""Defines what can happen to a table as a whole: its creation and end, its partitions, settings and
readers.

`check` may refuse and changes nothing. `apply` never refuses (protocol H4); for a released format
what it does never changes (H14).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import msgspec

from lakebed.config.settings import table_settings
from lakebed.errors import ConflictError, InvalidError, TableExistsError
from lakebed.model.changes.field_changes import FieldChange
from lakebed.model.changes.processing_changes import check_processing_change, gone_before
from lakebed.model.changes.schema_changes import changed
from lakebed.model.keys import prefix_values
from lakebed.model.names import FileName, Micros, PartitionId
from lakebed.model.partitions import ROOT, Partition, check_reached, grown, splits
from lakebed.model.processing import (
    Processing,
    check_schema_change,
    checked_processing,
    processing_from_json,
    processing_json,
)
from lakebed.model.ranges import EVERYTHING, KeyRange
from lakebed.model.schema import Schema, schema_from_json, schema_json
from lakebed.statestore.table_state.placing import own_key_range, split_references
from lakebed.statestore.table_state.state import Moment, TableState
from lakebed.statestore.table_state.state_json import PROCESSING


class CreateTable(msgspec.Struct, frozen=True, array_like=True, tag="create"):
    """The first entry.

    points: encodings of leading row keys at which the root is split.
    """

    schema: Mapping[str, Any]
    settings: Mapping[str, Any]
    points: tuple[bytes, ...] = ()

    def check(self, state: TableState) -> None:
        if state.head().root:  # and not the number: a neighbour in the entry may have created it
            raise TableExistsError("the table exists already")
        table_settings(self.settings)
        _check_points(self.points, EVERYTHING, schema_from_json(self.schema))

    def apply(self, state: TableState, moment: Moment) -> None:
        state.write(
            "UPDATE head SET schema = ?, settings = ?, root = ?, generation = 1",
            (json.dumps(self.schema), json.dumps(self.settings), ROOT),
        )
        _plant(state, ROOT, self.points)


class SetProcessing(msgspec.Struct, frozen=True, array_like=True, tag="processing"):
    """The processing of the table's rows, given in the entry that creates the table."""

    processing: Mapping[str, Any]

    def check(self, state: TableState) -> None:
        if state.head().number:
            raise InvalidError(
                "processing is given to a table that is there already",
                hint="change it by `ChangeProcessing`",
            )
        checked_processing(processing_from_json(dict(self.processing)), state.schema())

    def apply(self, state: TableState, moment: Moment) -> None:
        row = state.write("SELECT settings FROM head").fetchone()
        merged = json.loads(row[0]) | {PROCESSING: dict(self.processing)}
        state.write("UPDATE head SET settings = ?", (json.dumps(merged),))


class ChangeProcessing(msgspec.Struct, frozen=True, array_like=True, tag="reprocessing"):
    """The table does something else with its rows from now on; None: nothing. Where it has none,
    a new generation begins: whatever was begun with the old processing is begun again (H16)."""

    processing: Mapping[str, Any] | None

    def check(self, state: TableState) -> None:
        after, schema = None, state.schema()
        if self.processing is not None:
            after = checked_processing(processing_from_json(dict(self.processing)), schema)
        if state.has_files():
            check_processing_change(state.processing(), after, schema)

    def apply(self, state: TableState, moment: Moment) -> None:
        after = None if self.processing is None else dict(self.processing)
        if not state.has_files():
            state.write("UPDATE head SET generation = generation + 1")
        elif after is not None and after.get("age_off") is not None:
            age_off = dict(after["age_off"])
            gone = gone_before(state.processing(), age_off["seconds"], moment.at)
            after["age_off"] = age_off if gone is None else age_off | {"gone_before": gone}
        settings = json.loads(state.write("SELECT settings FROM head").fetchone()[0])
        settings.pop(PROCESSING, None)
        if after is not None:
            settings[PROCESSING] = after
        state.write("UPDATE head SET settings = ?", (json.dumps(settings),))


class Split(msgspec.Struct, frozen=True, array_like=True, tag="split"):
    """A leaf becomes several. It refuses no commit: references and claims move down (H17, H18).

    points: sorted, encodings of one or more leading row keys.
    shares: for a file, the weight of each new leaf from its sample; files that are not named share
        their rows evenly.
    dimension: always 0; other numbers were meant for leaves that overlap in key order (decision 8).
    """

    partition: PartitionId
    points: tuple[bytes, ...]
    shares: tuple[tuple[FileName, tuple[int, ...]], ...] = ()
    dimension: int = 0

    def check(self, state: TableState) -> None:
        leaf = state.partition(self.partition)
        if leaf is None or not leaf.is_leaf:
            raise ConflictError("the partition is not a leaf any more", partition=self.partition)
        if not self.points:
            raise InvalidError(
                "a split has no point", partition=self.partition, hint="give at least one point"
            )
        if self.dimension:
            raise InvalidError(
                "a split is by one row key: splits are on whole keys",
                dimension=self.dimension,
                hint="give dimension 0",
            )
        _check_points(self.points, own_key_range(state, self.partition), state.schema())
        for _, weights in self.shares:
            if len(weights) != len(self.points) + 1 or min(weights) < 0:
                raise InvalidError(
                    "the shares of a file are not one weight for each new leaf",
                    got=weights,
                    hint=f"give {len(self.points) + 1} weights of 0 or more",
                )

    def apply(self, state: TableState, moment: Moment) -> None:
        leaf = state.partition(self.partition)
        assert leaf is not None, "checked"
        grow(state, leaf, self.points)
        split_references(state, self.partition, dict(self.shares))


class MarkUnsplittable(msgspec.Struct, frozen=True, array_like=True, tag="unsplittable"):
    """A leaf of `rows` rows has no split point; it is asked again when it has doubled (H22)."""

    partition: PartitionId
    rows: int

    def check(self, state: TableState) -> None:
        leaf = state.partition(self.partition)
        if leaf is None or not leaf.is_leaf:
            raise ConflictError("the partition is not a leaf any more", partition=self.partition)

    def apply(self, state: TableState, moment: Moment) -> None:
        state.write(
            "UPDATE partitions SET rows_unsplittable = ? WHERE id = ?", (self.rows, self.partition)
        )


class Clear(msgspec.Struct, frozen=True, array_like=True, tag="clear"):
    """All rows go, a new generation begins (H16).

    points: a new tree; None keeps the partitions.
    """

    points: tuple[bytes, ...] | None = None

    def check(self, state: TableState) -> None:
        _check_points(self.points or (), EVERYTHING, state.schema())

    def apply(self, state: TableState, moment: Moment) -> None:
        state.write(
            "INSERT INTO garbage SELECT file, ?, ?, max(size) FROM file_references GROUP BY file",
            (moment.number, moment.at),
        )
        state.write("DELETE FROM file_references")
        state.write("DELETE FROM jobs")
        state.write("UPDATE head SET generation = generation + 1")
        state.write("UPDATE partitions SET rows_unsplittable = 0")
        if self.points is not None:
            root = PartitionId(state.head().partition_next)
            state.write("DELETE FROM partitions")
            state.write("UPDATE head SET root = ?", (root,))
            _plant(state, root, self.points)


class ChangeSettings(msgspec.Struct, frozen=True, array_like=True, tag="settings"):
    """Some settings have new values."""

    changes: Mapping[str, Any]

    def check(self, state: TableState) -> None:
        table_settings(self.changes, state.settings())

    def apply(self, state: TableState, moment: Moment) -> None:
        row = state.write("SELECT settings FROM head").fetchone()
        merged = json.loads(row[0]) | dict(self.changes)
        state.write("UPDATE head SET settings = ?", (json.dumps(merged),))


class ChangeSchema(msgspec.Struct, frozen=True, array_like=True, tag="schema"):
    """Fields are added, renamed, dropped or widened. Files stay as they were written.

    version: of the schema that the changes were planned on; of two at once the later is refused.
    """

    version: int
    changes: tuple[FieldChange, ...]

    def check(self, state: TableState) -> None:
        schema = state.schema()
        if schema.version != self.version:
            hint = "look at the schema, then plan the change anew"
            raise ConflictError(
                "the schema was changed meanwhile", version=schema.version, hint=hint
            )
        if not self.changes:
            raise InvalidError("no field is changed", hint="name at least one change")
        after = changed(schema, self.changes, at=Micros(0))
        processing = state.processing()
        if processing is not None:
            check_schema_change(processing, schema, after)

    def apply(self, state: TableState, moment: Moment) -> None:
        after = changed(state.schema(), self.changes, at=moment.at)
        state.write("UPDATE head SET schema = ?", (json.dumps(schema_json(after)),))


class PutPin(msgspec.Struct, frozen=True, array_like=True, tag="pin"):
    """A long reader of the version that this entry makes: its files stay until `until` (H24).

    Again with the same id: another end for the same version.
    """

    id: str
    until: Micros

    def check(self, state: TableState) -> None:
        """Nothing can refuse it."""

    def apply(self, state: TableState, moment: Moment) -> None:
        state.write(
            "INSERT INTO pins VALUES (?, ?, ?)"
            " ON CONFLICT(id) DO UPDATE SET until = excluded.until",
            (self.id, moment.number, self.until),
        )


class DropPin(msgspec.Struct, frozen=True, array_like=True, tag="unpin"):
    """A long reader has finished."""

    id: str

    def check(self, state: TableState) -> None:
        """Nothing can refuse it."""

    def apply(self, state: TableState, moment: Moment) -> None:
        state.write("DELETE FROM pins WHERE id = ?", (self.id,))


class DropTable(msgspec.Struct, frozen=True, array_like=True, tag="drop"):
    """The last entry, a tombstone: nothing is committed after it (H10)."""

    def check(self, state: TableState) -> None:
        """Nothing can refuse it."""

    def apply(self, state: TableState, moment: Moment) -> None:
        state.write("UPDATE head SET dropped = 1")
        for table in (
            *("file_references", "jobs", "garbage", "pins", "positions", "partitions"),
            *("connections", "tallies", "items", "gaps", "errors_in_row"),
            *("watermarks", "progress", "windows", "horizon", "tags", "followers"),
        ):
            state.write(f"DELETE FROM {table}")  # noqa: S608 - names from the tuple above


def create_table(
    schema: Schema, settings: Mapping[str, Any], points: tuple[bytes, ...]
) -> CreateTable:
    """Return the first change of a table's life. Raises: InvalidError for what no table can be."""
    table_settings(settings)
    for field in schema.values:
        field.check_nesting()
    new = Schema(row_keys=schema.row_keys, sort_keys=schema.sort_keys, values=schema.values)
    return CreateTable(schema_json(new), dict(settings), points)


def set_processing(schema: Schema, processing: Processing | None) -> tuple[SetProcessing, ...]:
    """Return what follows the creation of a table in its entry. Raises: InvalidError."""
    if processing is None:
        return ()
    return (SetProcessing(processing_json(checked_processing(processing, schema), schema)),)


def _check_points(points: tuple[bytes, ...], key_range: KeyRange, schema: Schema) -> None:
    if any(a >= b for a, b in pairwise(points)):
        raise InvalidError(
            "split points are not in order, or one comes twice",
            hint="sort them, and name each once",
        )
    if points and not (splits(key_range, points[0]) and splits(key_range, points[-1])):
        raise InvalidError(
            "a split point lies outside the partition",
            hint="give points between the least key and the end of the partition",
        )
    for point in points:
        try:
            prefix_values(schema.row_keys, point)
        except ValueError as error:
            raise InvalidError(
                "a split point is no key",
                problem=error,
                hint="give the encoded values of leading row keys",
            ) from None
    check_reached(points, key_range, schema.row_keys)


def _plant(state: TableState, root: PartitionId, points: tuple[bytes, ...]) -> None:
    state.write("UPDATE head SET partition_next = ?", (root + 1,))
    grow(state, Partition(root), points)


def grow(state: TableState, leaf: Partition, points: tuple[bytes, ...]) -> None:
    """Write the nodes that replace a leaf; ids count up and are never used twice."""
    nodes = grown(leaf, points, next_id=state.head().partition_next)
    for n in nodes:
        state.write(
            "INSERT INTO partitions(id, parent, dimension, point, left, right)"
            " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT(id) DO UPDATE SET parent = excluded.parent,"
            " dimension = excluded.dimension, point = excluded.point, left = excluded.left,"
            " right = excluded.right, rows_unsplittable = 0",
            (n.id, n.parent, n.dimension, n.point, n.left, n.right),
        )
    state.write("UPDATE head SET partition_next = partition_next + ?", (len(nodes) - 1,))
