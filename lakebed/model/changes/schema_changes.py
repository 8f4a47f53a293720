"""Change a schema: add a field, rename, drop or widen one. No file is rewritten for it.

What a field is called and how wide it is may change; its number, and with it the column of a file
that holds it, never does. Keys are encoded in the state and in files: they may only be renamed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from lakebed.errors import InvalidError
from lakebed.model.changes.field_changes import FieldChange, SchemaVersion, type_form, type_text
from lakebed.model.names import Micros
from lakebed.model.schema import Field, Schema, field_of
from lakebed.model.types import type_of, widens, wider_types

PAST_KEPT = 100
"""Versions whose changes a schema lists; the log lists all that it holds."""


def planned(
    schema: Schema,
    *,
    add: Mapping[str, object],
    rename: Mapping[str, str],
    drop: Sequence[str],
    widen: Mapping[str, object],
) -> tuple[FieldChange, ...]:
    """Return the changes that names ask for; all names but new ones are those of `schema`.

    Raises:
        InvalidError: an unknown field, one that is named twice, or a change that is not allowed.
    """
    if isinstance(drop, str):
        raise InvalidError("fields to drop are not a list", drop=drop, hint="give a list")
    changes = [FieldChange("drop", schema.field(name).number, name) for name in drop]
    for name, type_ in widen.items():
        wider = type_text(type_of(type_))
        changes.append(FieldChange("widen", schema.field(name).number, name, wider))
    for name, to in rename.items():
        if not isinstance(to, str):
            raise InvalidError("not a field name", field=name, to=to, hint="give a text")
        changes.append(FieldChange("rename", schema.field(name).number, name, to))
    numbers = [schema.next_number]
    for name, type_ in add.items():
        field = field_of({"name": name, "type": _of_nullable(name, type_)}, numbers)
        field.check_nesting()
        changes.append(FieldChange("add", field.number, name, type_text(field.type)))
    if not changes:
        raise InvalidError("nothing to change", hint="name a field to add, rename, drop or widen")
    for name in drop:
        if [*drop, *widen, *rename].count(name) > 1:
            hint = "name it once"
            raise InvalidError("a field is dropped and named again", field=name, hint=hint)
    changed(schema, changes, at=Micros(0))
    return tuple(changes)


def changed(schema: Schema, changes: Sequence[FieldChange], *, at: Micros) -> Schema:
    """Return the next version of a schema. at: when it came to be.

    Raises:
        InvalidError: no field has that number, or the change is not allowed.
    """
    fields = {field.number: field for field in schema.fields}
    used = schema.next_number - 1
    for change in changes:
        if change.do == "add":
            added = _added(change, used)
            fields[added.number] = added
            used = max(added.number, *(m.number for m in added.members), used)
            continue
        field = fields.get(change.number)
        if field is None:
            raise InvalidError(
                "no field of the schema has this number",
                field=change.name,
                number=change.number,
                hint="read the schema again, and name a field that it has",
            )
        match change.do:
            case "rename":
                _refuse_no_change(field, unchanged=field.name == change.to)
                fields[field.number] = msgspec.structs.replace(field, name=change.to)
            case "drop":
                _refuse_key(schema, field, "a key cannot be dropped")
                del fields[field.number]
            case "widen":
                fields[field.number] = _widened(schema, field, change)
    done = SchemaVersion(schema.version + 1, at, tuple(changes))

    def kept(part: tuple[Field, ...]) -> tuple[Field, ...]:
        return tuple(fields.pop(field.number) for field in part if field.number in fields)

    return Schema(
        row_keys=kept(schema.row_keys),
        sort_keys=kept(schema.sort_keys),
        values=kept(schema.values) + tuple(fields.values()),
        version=done.version,
        numbers_used=used,
        past=(*schema.past, done)[-PAST_KEPT:],
    )


def _of_nullable(name: str, type_: object) -> object:
    """Return the type of a field to add: rows that are there are null in it."""
    if not isinstance(type_, str):
        return type_
    if not type_.endswith("?"):
        hint = f"existing rows have no value in it: write '{type_}?'"
        raise InvalidError("an added field must be nullable", field=name, type=type_, hint=hint)
    return type_[:-1]


def _added(change: FieldChange, used: int) -> Field:
    form = {"name": change.name, "type": type_form(change.to), "number": change.number}
    field = field_of(form | {"nullable": True}, [change.number])
    if any(number <= used for number in (field.number, *(m.number for m in field.members))):
        raise InvalidError(
            "a field's number is never reused",
            field=field.name,
            number=field.number,
            hint=f"give a number above {used}, or none",
        )
    return field


def _widened(schema: Schema, field: Field, change: FieldChange) -> Field:
    wanted = type_of(type_form(change.to))
    _refuse_key(schema, field, "a key keeps its type")
    _refuse_no_change(field, unchanged=field.type == wanted)
    if not widens(field.type, wanted):
        raise InvalidError(
            "not a wider type",
            field=field.name,
            type=field.type,
            wanted=wanted,
            hint=wider_types(field.type),
        )
    return msgspec.structs.replace(field, type=wanted)


def _refuse_key(schema: Schema, field: Field, message: str) -> None:
    if field.number in {key.number for key in schema.key_fields}:
        hint = "rows lie by their keys' bytes; a new table can have other keys"
        raise InvalidError(message, field=field.name, hint=hint)


def _refuse_no_change(field: Field, *, unchanged: bool) -> None:
    if unchanged:
        raise InvalidError(
            "a change leaves the field as it is",
            field=field.name,
            type=field.type,
            hint="leave the change out",
        )
