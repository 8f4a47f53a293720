"""Shows what a table is, its schema, settings and processing, and changes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakebed.config.settings import TableSettings
from lakebed.face.fed_table import FedTable
from lakebed.model.keys import KeyValue
from lakebed.model.names import TableName
from lakebed.model.partitions import split_points_in
from lakebed.model.processing import Processing
from lakebed.model.schema import Schema
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.tables.change_table import (
    change_fields,
    change_processing,
    change_settings,
)
from lakebed.tables.definition import definition_of


class KnownTable(FedTable):
    """A table of which one knows what it is, and changes that."""

    @property
    def name(self) -> TableName:
        """Return the table's name."""
        return self._opened.name

    @property
    def schema(self) -> Schema:
        """Row keys, sort keys and values."""
        return self._opened.schema

    @property
    def arrow_schema(self) -> pa.Schema:
        """Return the Arrow schema of the columns that queries give."""
        return arrow_schema(self.schema)

    @property
    def processing(self) -> Processing | None:
        """Return what the table does with its rows; None: it keeps all as they are."""
        with self._opened.head.reading() as state:
            return state.processing()

    @property
    def split_points(self) -> list[KeyValue | tuple[KeyValue, ...]]:
        """Return the keys at which leaves begin; `create_table` makes the same leaves of them."""
        with self._opened.head.reading() as state:
            return split_points_in(state.tree(), state.schema())

    @property
    def definition(self) -> dict[str, Any]:
        """Return all that makes an empty table like this one, as JSON values: schema, split points,
        settings and processing. `Lake.create_table_from` takes it."""
        return definition_of(self._opened)

    @property
    def settings(self) -> TableSettings:
        """Return the table's settings."""
        return self._opened.settings()

    def change_settings(self, /, **changes: Any) -> TableSettings:  # noqa: ANN401 - as each is
        """Give settings new values, for all who work on the table. Returns all settings.

        Raises:
            InvalidError: an unknown setting, a value out of bounds, a strategy that is not there;
                nothing was changed.
        """
        change_settings(self._opened, changes, self._app.steps)
        return self.settings

    def change_fields(
        self,
        *,
        add: Mapping[str, object] | None = None,
        rename: Mapping[str, str] | None = None,
        drop: Sequence[str] = (),
        widen: Mapping[str, object] | None = None,
    ) -> Schema:
        """Change fields, all at once, without rewriting a file. Returns the newest schema.

        Names are those of before. Keys may only be renamed.

        add: types of new value fields, nullable: `"float64?"`.
        rename: new names.
        widen: wider types of value fields.

        Raises:
            InvalidError: an unknown field, a change that is not allowed.
            ConflictError: another process changed fields meanwhile. Nothing was changed.
        """
        return change_fields(
            self._opened, add=add or {}, rename=rename or {}, drop=drop, widen=widen or {}
        )

    def add_field(self, name: str, type_: object) -> Schema:
        """Add a nullable value field, null in all rows there are. Raises as `change_fields`."""
        return self.change_fields(add={name: type_})

    def rename_field(self, name: str, to: str) -> Schema:
        """Give a field, also a key, another name. Raises as `change_fields`."""
        return self.change_fields(rename={name: to})

    def drop_field(self, name: str) -> Schema:
        """Drop a value field: its values are read no more. Raises as `change_fields`."""
        return self.change_fields(drop=[name])

    def widen_field(self, name: str, type_: object) -> Schema:
        """Give a value field a type that holds more. Raises as `change_fields`."""
        return self.change_fields(widen={name: type_})

    def change_processing(self, processing: Processing | None) -> Processing | None:
        """Do something else with rows from now on, None: nothing; also with those that are there,
        where that is right: a filter becomes stricter, age-off gets other seconds, and what merges
        rows is added. Returns what is done now. A table without rows takes every processing.

        Raises:
            InvalidError: it is not allowed, or not right for rows that are there; an iterator that
                is not installed. Nothing was changed.
        """
        change_processing(self._opened, processing, self._app.steps)
        return self.processing
