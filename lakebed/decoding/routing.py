"""Decoders for one of several tables: by the value of one field, a record belongs to this table, to
another one, or to none.

Whose a record is depends on that value alone, which is read before anything else of it: never on
what a table's columns make of it. Of a record that belongs to another table nothing else is read.
A record whose value cannot be read may belong to any table, so it is bad for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.config.decoders import ColumnOf, ColumnsOf, DecoderSettings
from lakebed.config.definitions.routes import Route
from lakebed.config.definitions.toml_fields import at_of
from lakebed.decoding.decoder import Decoded, Decoder
from lakebed.decoding.engines import NO_RESOURCES, Resources, decoder_of
from lakebed.errors import InvalidError, did_you_mean
from lakebed.model.feeds.verdicts import Verdict
from lakebed.model.schema import Schema, schema_of

Mask = npt.NDArray[np.bool_]
_ROUTE: Final = "route"
_ANY_FIELD: Final = frozenset({"json", "msgpack"})
"""Formats whose records may have fields that no definition names."""


def table_decoder(
    settings: DecoderSettings,
    columns: ColumnsOf,
    schema: Schema,
    route: Route | None,
    table: str,
    *,
    version: int = 1,
    resources: Resources = NO_RESOURCES,
    at: str = "connection",
) -> Decoder:
    """Return what makes rows of one of a route's tables (protocol R7).

    columns: of all its tables; each takes those that it has.
    route: None: all records belong to the table.
    Other arguments: as `decoder_of` has them.

    Raises:
        InvalidError: decoder, columns, route and table do not fit.
    """
    if route is None:
        return decoder_of(settings, columns, schema, version=version, resources=resources, at=at)
    values = _values_of(settings, columns, route, resources, at)
    own = columns_of_table(columns, schema, table, at)
    own = msgspec.structs.replace(own, known={route.field: route.as_})
    try:
        rows = decoder_of(settings, own, schema, version=version, resources=resources, at=at)
    except InvalidError as error:
        facts = {name: fact for name, fact in error.facts.items() if name != "table"}
        raise InvalidError(error.message, table=table, hint=error.hint, **facts) from None
    return _RoutedDecoder(values, rows, route, table)


def check_route(
    settings: DecoderSettings,
    columns: ColumnsOf,
    route: Route,
    schemas: Sequence[Schema],
    *,
    at: str,
) -> None:
    """Refuse a route whose field, or columns, none of its tables and no mapping knows.

    Raises:
        InvalidError: with the nearest.
    """
    names = [field.name for schema in schemas for field in schema.fields]
    for column in columns.columns:
        if column not in names:
            hint = did_you_mean(column, dict.fromkeys(names), what="column")
            where = f"{at}.columns.{at_of(column)}"
            raise InvalidError("no table of the route has such a column", at=where, hint=hint)
    said = columns.columns
    paths = [one.path if isinstance(one, ColumnOf) else one for one in said.values()]
    if route.field in said and route.field not in paths:
        one = said[route.field]
        hint = f"write its path: {(one.path if isinstance(one, ColumnOf) else one)!r}"
        raise InvalidError("a column, and no field of a record", at=f"{at}.route.field", hint=hint)
    known = dict.fromkeys(paths or names)
    if settings.format in _ANY_FIELD and route.field not in known:
        hint = did_you_mean(route.field, known, what="field")
        if hint.startswith("did you mean"):
            where = f"{at}.route.field"
            raise InvalidError("no column has such a field", at=where, got=route.field, hint=hint)


def columns_of_table(columns: ColumnsOf, schema: Schema, table: str, at: str) -> ColumnsOf:
    """Return which values become which columns of one of the tables.

    Raises:
        InvalidError: none of them.
    """
    names = {field.name for field in schema.fields}
    own = {name: value for name, value in columns.columns.items() if name in names}
    if columns.columns and not own:
        hint = f'say where they come from: {at}.columns.{schema.fields[0].name} = "PATH"'
        raise InvalidError("no column of the table has a source", at=at, table=table, hint=hint)
    return msgspec.structs.replace(columns, columns=own)


def _values_of(
    settings: DecoderSettings, columns: ColumnsOf, route: Route, resources: Resources, at: str
) -> Decoder:
    """Return what reads the value that decides, and nothing else of a record."""
    if settings.format == "raw":
        hint = "choose another format, or a connection with one table"
        raise InvalidError("raw records have no fields", at=f"{at}.route.field", hint=hint)
    values = {"_split": "string", "_version": "int64", _ROUTE: f"{route.as_}?"}
    schema = schema_of(row_keys={"_position": "int64"}, values=values)
    reads = ColumnsOf(columns={_ROUTE: route.field}, lineage=True, nulls=columns.nulls)
    alone = msgspec.structs.replace(settings, time=None)
    try:
        return decoder_of(alone, reads, schema, resources=resources, at=at)
    except InvalidError as error:
        facts = {name: fact for name, fact in error.facts.items() if name != "at"}
        where = f"{at}.route.field"
        raise InvalidError(error.message, at=where, hint=error.hint, **facts) from None


class _RoutedDecoder:
    """Decodes the records of one table."""

    def __init__(self, values: Decoder, rows: Decoder, route: Route, table: str) -> None:
        self._values = values
        self._rows = rows
        make = int if route.as_ == "int64" else str
        kind = pa.int64() if route.as_ == "int64" else pa.string()
        self._own = pa.array(list(map(make, route.values_of(table))), kind)
        self._all = pa.array(list(map(make, route.tables)), kind)
        self._has_rest, self._rest_is_own = bool(route.otherwise), route.otherwise == table
        self._quarantines = route.unrouted == "quarantine"
        self._detail = f"{route.field}: no table for its value"

    def decode(self, records: pa.RecordBatch, *, source_split: str = "") -> Decoded:
        """Return the rows of those that belong to the table: see `Decoder`."""
        read = self._values.decode(records, source_split=source_split)
        verdicts, details = read.verdicts.copy(), dict(read.details)
        record = read.record.to_numpy()
        own, lost = self._shares(read.rows.column(_ROUTE))
        verdicts[record[~own & ~lost]] = Verdict.IGNORED
        verdicts[record[lost]] = Verdict.NO_ROUTE if self._quarantines else Verdict.IGNORED
        if self._quarantines:
            details |= dict.fromkeys(record[lost].tolist(), self._detail)  # bounded: bad ones
        chosen = record[own]
        some = records if len(chosen) == records.num_rows else records.take(pa.array(chosen))
        rows = self._rows.decode(some, source_split=source_split)
        verdicts[chosen] = rows.verdicts
        details |= {int(chosen[index]): text for index, text in rows.details.items()}
        return Decoded(
            rows=rows.rows,
            record=pa.array(chosen[rows.record.to_numpy()], pa.int64()),
            time=rows.time,
            verdicts=verdicts,
            details=details,
            unknown=rows.unknown,
        )

    def _shares(self, values: pa.Array) -> tuple[Mask, Mask]:
        """Return which values are of this table, and which of none."""
        own, known = _mask(values, self._own), _mask(values, self._all)
        if self._rest_is_own:
            own = own | ~known
        lost = np.zeros(len(known), np.bool_) if self._has_rest else ~known
        return own, lost


def _mask(values: pa.Array, of: pa.Array) -> Mask:
    found: Mask = pc.is_in(values, value_set=of).to_numpy(zero_copy_only=False)
    return found.astype(np.bool_)
