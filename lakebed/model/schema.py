"""A table's schema: row keys, sort keys and values, each field numbered for ever."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import msgspec

from lakebed.errors import InvalidError, NewerFormatError, did_you_mean
from lakebed.model.changes.field_changes import SchemaVersion, fate_of
from lakebed.model.types import (
    KEY_TYPES,
    Primitive,
    StructMember,
    Type,
    check_nesting,
    members_within,
    type_json,
    type_of,
)

SCHEMA_FORMAT = 1
CHANGED_FORMAT = 2
"""Format of a schema whose fields were changed, so that older programs know to stop."""
RESERVED_PREFIX = "_lakebed"
Role = Literal["row key", "sort key", "value"]


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """A column.

    number: Parquet's field_id; never changes, never used for another field.
    """

    name: str
    type: Type
    number: int
    nullable: bool = False

    @property
    def members(self) -> tuple[StructMember, ...]:
        """Return all struct members inside the field's type."""
        return members_within(self.type)

    def check_nesting(self) -> None:
        """Raise InvalidError for a new field with more levels than rows could fill."""
        with _named(self.name):
            check_nesting(self.type)


class Schema(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of a table, in order: row keys, sort keys, values.

    Rows are sorted by row keys, then by sort keys. Only row keys decide in which partition a row
    lies.

    version: 1, and one more after each change of fields.
    past: the newest of these changes.
    numbers_used: the highest that a field ever had; 0: none is higher than those that are there.
    """

    row_keys: tuple[Field, ...]
    sort_keys: tuple[Field, ...] = ()
    values: tuple[Field, ...] = ()
    version: int = 1
    numbers_used: int = 0
    past: tuple[SchemaVersion, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what can never work. Raises: InvalidError."""
        if not self.row_keys:
            raise InvalidError(
                "a schema needs a row key", hint="name at least one field as row key"
            )
        seen: dict[str, str] = {}
        numbers: set[int] = set()
        for field in self.fields:
            _check_name(field.name, seen)
            for number in (field.number, *(m.number for m in field.members)):
                if number < 1 or number in numbers:
                    raise InvalidError(
                        "a field's number is below 1, or that of another field",
                        number=number,
                        hint="give each field and member a number of its own, from 1 on",
                    )
                numbers.add(number)
        for field in self.key_fields:
            _check_key(field)

    @property
    def key_fields(self) -> tuple[Field, ...]:
        """Row keys, then sort keys: the order of rows."""
        return self.row_keys + self.sort_keys

    @property
    def fields(self) -> tuple[Field, ...]:
        """Return all columns, in order."""
        return self.row_keys + self.sort_keys + self.values

    def field(self, name: str) -> Field:
        """Return the field called `name`. Raises: InvalidError, with the nearest known name."""
        for field in self.fields:
            if field.name == name:
                return field
        raise InvalidError("no such field", field=name, hint=self.hint_for(name))

    def hint_for(self, name: str) -> str:
        """Return what to write instead of a name that no field has."""
        now = fate_of(name, self.past)
        if now is None:
            return did_you_mean(name, (f.name for f in self.fields), what="field")
        return f"it was renamed to {now!r}" if now else "this field was dropped"

    @property
    def next_number(self) -> int:
        """Return the number of the next new field."""
        there = [n for f in self.fields for n in (f.number, *(m.number for m in f.members))]
        return max(self.numbers_used, *there) + 1

    def dimension_of(self, name: str) -> int:
        """Return the index of a row key field among the row keys. Raises: InvalidError."""
        field = self.field(name)
        if field not in self.row_keys:
            keys = ", ".join(f.name for f in self.row_keys)
            hint = f"row keys are: {keys}; ask for other fields with a predicate: --where, where="
            raise InvalidError("not a row key", field=name, hint=hint)
        return self.row_keys.index(field)


def schema_of(
    *,
    row_keys: Mapping[str, object],
    sort_keys: Mapping[str, object] | None = None,
    values: Mapping[str, object] | None = None,
) -> Schema:
    """Return a schema from names and types, numbered in order. A value type `T?` is nullable.

    Example: `schema_of(row_keys={"id": "string"}, values={"count": "int64", "note": "string?"})`

    Raises:
        InvalidError: a name or type that is not allowed.
    """

    def part(fields: Mapping[str, object] | None) -> list[dict[str, object]]:
        return [nullable_by_mark(name, type_) for name, type_ in (fields or {}).items()]

    return schema_from_json(
        {"row_keys": part(row_keys), "sort_keys": part(sort_keys), "values": part(values)}
    )


def schema_json(schema: Schema) -> dict[str, Any]:
    """Return the schema as JSON values, as `schema_from_json` reads them."""

    def part(fields: Sequence[Field]) -> list[dict[str, object]]:
        return [
            {"name": f.name, "type": type_json(f.type), "number": f.number}
            | ({"nullable": True} if f.nullable else {})
            for f in fields
        ]

    form: dict[str, Any] = {
        "format": SCHEMA_FORMAT,
        "row_keys": part(schema.row_keys),
        "sort_keys": part(schema.sort_keys),
        "values": part(schema.values),
    }
    if schema.version > 1:
        form["format"] = CHANGED_FORMAT
        form |= {name: msgspec.to_builtins(getattr(schema, name)) for name in _OF_CHANGED}
    return form


def schema_from_json(value: object) -> Schema:
    """Return the schema that JSON values describe. Fields without numbers are numbered in order.

    Raises:
        InvalidError: something is not allowed; the error names it.
        NewerFormatError: a newer Lakebed wrote it.
    """
    if not isinstance(value, dict):
        raise InvalidError("a schema is a JSON object", hint='{"row_keys": [...], "values": [...]}')
    parts = ("row_keys", "sort_keys", "values")
    for name in value:
        if name not in (*parts, "format", *_OF_CHANGED):
            hint = did_you_mean(str(name), parts, what="part of a schema")
            raise InvalidError("unknown part of a schema", part=name, hint=hint)
    if value.get("format", SCHEMA_FORMAT) not in (SCHEMA_FORMAT, CHANGED_FORMAT):
        raise NewerFormatError("unknown schema format", format=value["format"])
    numbers = [1]
    row_keys, sort_keys, values = (_fields_of(value.get(p, []), p, numbers) for p in parts)
    try:
        changed = msgspec.convert({n: value[n] for n in _OF_CHANGED if n in value}, _Changed)
    except msgspec.ValidationError as error:
        hint = f"leave out {', '.join(_OF_CHANGED)}: they describe changes made by Lakebed"
        raise InvalidError("not a changed schema", reason=error, hint=hint) from None
    return Schema(
        row_keys=row_keys,
        sort_keys=sort_keys,
        values=values,
        version=changed.version,
        numbers_used=changed.numbers_used,
        past=changed.past,
    )


_KEY_INSTEAD = {
    "timestamp[us]": (
        "make it 'timestamp[us, UTC]', and say the zone of your times when they come: zone='UTC'"
    ),
    **dict.fromkeys(("bool", "int8", "int16", "uint8", "uint16"), "make it int32"),
    "uint32": "make it int64",
    "time64[us]": "make it int64, of microseconds",
}


class _Changed(msgspec.Struct):
    version: int = 1
    numbers_used: int = 0
    past: tuple[SchemaVersion, ...] = ()


_OF_CHANGED = _Changed.__struct_fields__


def _fields_of(fields: object, part: str, numbers: list[int]) -> tuple[Field, ...]:
    if not isinstance(fields, list):
        raise InvalidError(
            "a part of a schema is not a list of fields",
            part=part,
            hint='write [{"name": NAME, "type": TYPE}]',
        )
    return tuple(field_of(field, numbers) for field in fields)


def field_of(field: object, numbers: list[int]) -> Field:
    """Return the field that JSON values describe. numbers: one cell, the next free number.

    Raises:
        InvalidError: something is not allowed; the error names it.
    """
    if not isinstance(field, dict) or not isinstance(field.get("name"), str):
        raise InvalidError("not a field", field=field, hint='use {"name": NAME, "type": TYPE}')
    unknown = set(field) - {"name", "type", "number", "nullable"}
    if unknown or "type" not in field:
        raise InvalidError(
            "a field lacks its type, or says what fields do not have",
            field=field["name"],
            unknown=", ".join(sorted(unknown)),
            hint="a field has `name`, `type`, and may have `nullable` and `number`",
        )
    number, nullable = field.get("number", numbers[0]), field.get("nullable", False)
    if type(number) is not int or type(nullable) is not bool:
        raise InvalidError(
            "a field's number or nullability is of another type",
            field=field["name"],
            hint="let `number` be an integer, and `nullable` true or false",
        )
    numbers[0] = max(numbers[0], number + 1)
    with _named(field["name"]):
        type_ = type_of(field["type"], next_number=numbers)
    return Field(name=field["name"], type=type_, number=number, nullable=nullable)


@contextmanager
def _named(field: str) -> Iterator[None]:
    """Name the field in an error of its type."""
    try:
        yield
    except InvalidError as error:
        error.facts = {"field": field, **error.facts}
        raise


def nullable_by_mark(name: str, type_: object) -> dict[str, object]:
    """Return a field's JSON values from its type as users write it: `T?` is nullable."""
    if isinstance(type_, str) and type_.endswith("?"):
        return {"name": name, "type": type_[:-1], "nullable": True}
    return {"name": name, "type": type_}


def _check_name(name: str, seen: dict[str, str]) -> None:
    if not name or "\x00" in name or name.lower().startswith(RESERVED_PREFIX):
        hint = f"names are not empty, hold no NUL and do not begin with {RESERVED_PREFIX}"
        raise InvalidError("not a field name", name=repr(name), hint=hint)
    if name.lower() in seen:
        hint = "names are unique without regard to case, as Spark reads them"
        raise InvalidError(
            "two fields have one name", name=name, hint=hint, other=seen[name.lower()]
        )
    seen[name.lower()] = name


def _check_key(field: Field) -> None:
    if field.nullable:
        raise InvalidError(
            "a key cannot be null", field=field.name, hint="keep it as a value, or make it required"
        )
    if not isinstance(field.type, Primitive) or field.type.name not in KEY_TYPES:
        name = field.type.name if isinstance(field.type, Primitive) else ""
        instead = _KEY_INSTEAD.get(name, "scale floats and decimals to an integer")
        hint = f"{instead}; key types are {', '.join(KEY_TYPES)}"
        raise InvalidError("not a type for a key", field=field.name, type=field.type, hint=hint)
