"""Defines what is exported: a request, and the plan that is made of it once. A plan needs no state
of the table: files never change, so who reads it later reads the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import zstandard

from lakebed.errors import CorruptError, InvalidError
from lakebed.exports.manifest import check_format
from lakebed.exports.target import PLAN, ExportTarget
from lakebed.model.keys import decode_field, key_value_text
from lakebed.model.names import Micros, RequestDigest, TableId, TransactionNumber, digest_of
from lakebed.model.predicates.language import Predicate, checked_predicate, predicate_json
from lakebed.model.predicates.text import predicate_from_text
from lakebed.model.processing import ProcessingPass
from lakebed.model.ranges import Box
from lakebed.model.schema import Field, Schema
from lakebed.model.table_text import TableText
from lakebed.model.versions import AsOf, AsOfTag, AsOfTime, Version, version_of
from lakebed.ports.clock import Clock
from lakebed.ports.sorted_files import Selection
from lakebed.query.conditions import condition_of
from lakebed.query.run_query import QueryPlan
from lakebed.query.slices import Slice
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.version_pin import VersionPin

FORMAT = 1


class AskedRows(TypedDict, total=False):
    """The fields of an `ExportRequest` that a caller may give."""

    keys: Sequence[object] | None
    ranges: Sequence[Mapping[str, object]] | Mapping[str, object] | None
    columns: Sequence[str] | str | None
    where: Predicate | str | None
    as_of: AsOf | None


class ExportRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The rows and columns of an export, as `condition_of` takes them, and their version.

    as_of: the version; None: the newest one when the export begins.
    """

    keys: Sequence[object] | None = None
    ranges: Sequence[Mapping[str, object]] | Mapping[str, object] | None = None
    columns: Sequence[str] | str | None = None
    where: Predicate | str | None = None
    as_of: AsOf | None = None

    def selection(self, schema: Schema) -> Selection:
        """Return the condition of a query. Raises: InvalidError, as `condition_of`."""
        if isinstance(self.where, pc.Expression):
            hint = 'write it as a predicate, for instance lakebed.field("fare") >= 4'
            raise InvalidError("a manifest holds no expression of Arrow", hint=hint)
        return condition_of(
            schema, keys=self.keys, ranges=self.ranges, columns=self.columns, where=self.where
        )

    def conditions(self, schema: Schema) -> dict[str, Any] | None:
        """Return which rows are asked for as JSON values; None: all. Raises: InvalidError."""
        found: dict[str, Any] = {}
        if self.keys is not None or self.ranges is not None:
            boxes = self.selection(schema).boxes
            found["ranges"] = [_box_json(schema.row_keys, box) for box in boxes]
        where = predicate_from_text(self.where) if isinstance(self.where, str) else self.where
        if where is not None:
            found["where"] = predicate_json(checked_predicate(where, schema), schema)
        return found or None

    def digest(self, schema: Schema) -> RequestDigest:
        """Return what stands for it, in the words of the version that is exported. Raises:
        InvalidError."""
        columns = self.selection(schema).columns
        asked = {"conditions": self.conditions(schema), "columns": columns}
        if self.as_of is not None:
            asked["as_of"] = _version_json(version_of(self.as_of))
        return digest_of(msgspec.json.encode(asked, order="deterministic"))


class ExportPlan(msgspec.Struct, frozen=True, kw_only=True):
    """An export that was begun.

    id: in names of its objects.
    request: its digest, in hex digits.
    table, name: id and name of the table.
    number: of the log entry up to which it is read.
    table_text: schema and processing of that version.
    at: the instant of the processing's pass.
    pin: what keeps the version.
    is_past: the version was named; else it was the newest when the export began.
    """

    format: int = FORMAT
    id: str
    request: str
    table: TableId
    name: str
    number: TransactionNumber
    table_text: TableText
    at: Micros
    columns: tuple[str, ...] | None
    conditions: dict[str, Any] | None
    definition: dict[str, Any]
    pin: str
    slices: tuple[Slice, ...]
    is_past: bool = False

    @property
    def value_statistics(self) -> bool:
        """Return whether files record the bounds of values, as those of the table do."""
        return bool(self.definition["settings"].get("value_statistics", False))

    def version_pin(self, table: OpenTable, clock: Clock) -> VersionPin:
        """Return the pin of this version."""
        return VersionPin(table, self.pin, clock, number=self.number, was_newest=not self.is_past)

    def query_plan(self, selection: Selection) -> QueryPlan:
        """Return the plan of the query whose slices are exported, without any slice."""
        processing = self.table_text.row_processing()
        given = None if processing is None else ProcessingPass(processing, self.at, "query")
        return QueryPlan(
            self.number,
            self.table_text.schema(),
            (),
            selection,
            processing=given,
            is_past=self.is_past,
        )

    def arrow_columns(self) -> pa.Schema:
        """Return the columns that are exported."""
        whole = arrow_schema(self.table_text.schema())
        if self.columns is None:
            return whole
        return pa.schema([whole.field(name) for name in self.columns])


def plan_bytes(plan: ExportPlan) -> bytes:
    """Return a plan as it is stored."""
    packed = zstandard.ZstdCompressor(write_checksum=True)
    return packed.compress(msgspec.json.encode(plan))


def plan_in(target: ExportTarget) -> ExportPlan | None:
    """Return the plan of an export that was begun; None: there is none.

    Raises:
        CorruptError: it cannot be read. NewerFormatError: a newer Lakebed wrote it.
    """
    body, path = target.body(PLAN), target.address(PLAN)
    if body is None:
        return None
    try:
        plain = zstandard.ZstdDecompressor().decompress(body)
        value = msgspec.json.decode(plain, type=_Formatted)
        check_format({"format": value.format}, FORMAT, path)
        return msgspec.json.decode(plain, type=ExportPlan)
    except (zstandard.ZstdError, msgspec.DecodeError) as error:
        hint = "begin anew: --restart"
        raise CorruptError(
            "not the plan of an export", path=path, reason=error, hint=hint
        ) from None


class _Formatted(msgspec.Struct, frozen=True):
    format: int


def _version_json(version: Version) -> dict[str, object]:
    match version:
        case AsOfTag(name=name):
            return {"tag": name}
        case AsOfTime(at=at):
            return {"time": at}
    return {"number": version}


def _box_json(fields: Sequence[Field], box: Box) -> dict[str, Any]:
    """Return ranges by field, half open; fields without an end are left out."""
    found: dict[str, Any] = {}
    for field, r in zip(fields, box, strict=True):
        ends = {}
        if r.min:
            ends["min"] = _text(field, r.min)
        if r.max is not None:
            ends["below"] = _text(field, r.max)
        if ends:
            found[field.name] = ends
    return found


def _text(field: Field, encoded: bytes) -> str:
    return key_value_text(field, decode_field(field.type, encoded))
