"""The async twin of `lakebed.face.known_table`.

Made by `make docs` from `lakebed/face/known_table.py`; change it there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakebed.aio.calls import Later
from lakebed.aio.fed_table import FedTable
from lakebed.config.settings import TableSettings
from lakebed.face.known_table import KnownTable as SyncKnownTable
from lakebed.model.keys import KeyValue
from lakebed.model.names import TableName
from lakebed.model.processing import Processing
from lakebed.model.schema import Schema


class KnownTable(FedTable):
    """A table of which one knows what it is, and changes that."""

    _sync: SyncKnownTable

    @property
    def name(self) -> TableName:
        """Return the table's name."""
        return self._sync.name

    @property
    def schema(self) -> Later[Schema]:
        """Row keys, sort keys and values."""
        return Later(self._calls, lambda: self._sync.schema)

    @property
    def arrow_schema(self) -> Later[pa.Schema]:
        """Return the Arrow schema of the columns that queries give."""
        return Later(self._calls, lambda: self._sync.arrow_schema)

    @property
    def processing(self) -> Later[Processing | None]:
        """Return what the table does with its rows; None: it keeps all as they are."""
        return Later(self._calls, lambda: self._sync.processing)

    @property
    def split_points(self) -> Later[list[KeyValue | tuple[KeyValue, ...]]]:
        """Return the keys at which leaves begin; `create_table` makes the same leaves of them."""
        return Later(self._calls, lambda: self._sync.split_points)

    @property
    def definition(self) -> Later[dict[str, Any]]:
        """Return all that makes an empty table like this one, as JSON values: schema, split points,
        settings and processing. `Lake.create_table_from` takes it.
        """
        return Later(self._calls, lambda: self._sync.definition)

    @property
    def settings(self) -> Later[TableSettings]:
        """Return the table's settings."""
        return Later(self._calls, lambda: self._sync.settings)

    async def change_settings(self, /, **changes: Any) -> TableSettings:
        """Give settings new values, for all who work on the table. Returns all settings.

        Raises:
            InvalidError: an unknown setting, a value out of bounds, a strategy that is not there;
                nothing was changed.
        """
        return await self._calls.run(lambda: self._sync.change_settings(**changes))

    async def change_fields(
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
        return await self._calls.run(
            lambda: self._sync.change_fields(add=add, rename=rename, drop=drop, widen=widen)
        )

    async def add_field(self, name: str, type_: object) -> Schema:
        """Add a nullable value field, null in all rows there are. Raises as `change_fields`."""
        return await self._calls.run(lambda: self._sync.add_field(name, type_))

    async def rename_field(self, name: str, to: str) -> Schema:
        """Give a field, also a key, another name. Raises as `change_fields`."""
        return await self._calls.run(lambda: self._sync.rename_field(name, to))

    async def drop_field(self, name: str) -> Schema:
        """Drop a value field: its values are read no more. Raises as `change_fields`."""
        return await self._calls.run(lambda: self._sync.drop_field(name))

    async def widen_field(self, name: str, type_: object) -> Schema:
        """Give a value field a type that holds more. Raises as `change_fields`."""
        return await self._calls.run(lambda: self._sync.widen_field(name, type_))

    async def change_processing(self, processing: Processing | None) -> Processing | None:
        """Do something else with rows from now on, None: nothing; also with those that are there,
        where that is right: a filter becomes stricter, age-off gets other seconds, and what merges
        rows is added. Returns what is done now. A table without rows takes every processing.

        Raises:
            InvalidError: it is not allowed, or not right for rows that are there; an iterator that
                is not installed. Nothing was changed.
        """
        return await self._calls.run(lambda: self._sync.change_processing(processing))
