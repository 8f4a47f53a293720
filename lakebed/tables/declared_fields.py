"""Plans the changes that make a table's fields those that a file declares."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from lakebed.errors import InvalidError
from lakebed.model.schema import Field, Schema
from lakebed.model.types import type_json, widens, wider_types
from lakebed.tables.declarations import Declaration

OTHER_KEYS = (
    "keys stay as they are, but for names (`was`): declare a table of another name with these keys,"
    " ingest the rows into it (`lakebed export` writes them), then remove this one"
)

_NULLABLE = "write `T?`, or of a nested type { type = ..., nullable = true }"


class FieldsPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of fields, as `changes.schema_changes.planned` takes them."""

    add: Mapping[str, object] = {}
    rename: Mapping[str, str] = {}
    drop: tuple[str, ...] = ()
    widen: Mapping[str, object] = {}

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to change."""
        return not (self.add or self.rename or self.drop or self.widen)


def renames(former: Mapping[str, str], there: Collection[str]) -> dict[str, str]:
    """Return new names by old ones, in an order in which each new name is free. former: old names
    by new ones, as files say them; what was renamed before is not renamed again.

    Two that exchange their names keep them: nothing tells whether they have done so already.
    """
    found: dict[str, str] = {}
    is_news = True
    while is_news:  # each turn frees a name
        is_news = False
        for new, old in former.items():
            is_free = new not in there or new in found
            if is_free and old in there and old not in found:
                found[old], is_news = new, True
    return found


def plan_fields(declared: Declaration, there: Schema) -> FieldsPlan:
    """Return how a table's fields become those that are declared.

    Raises:
        InvalidError: other keys, a type that is not wider, a field to add that is not nullable; the
            hint says what to do instead.
    """
    renamed = renames(declared.former, [field.name for field in there.fields])
    _check_keys(declared.schema, there, renamed)
    now = {renamed.get(field.name, field.name): field for field in there.values}
    add: dict[str, object] = {}
    widen: dict[str, object] = {}
    for field in declared.schema.values:
        if field.name not in now:
            add[field.name] = _added(field)
        elif _is_wider(now[field.name], field):
            widen[now[field.name].name] = type_json(field.type)
    wanted = {field.name for field in declared.schema.values}
    drop = tuple(field.name for name, field in now.items() if name not in wanted)
    return FieldsPlan(add=add, rename=renamed, drop=drop, widen=widen)


def _check_keys(declared: Schema, there: Schema, renamed: Mapping[str, str]) -> None:
    for part in ("row_keys", "sort_keys"):
        wanted = [f"{field.name}: {field.type}" for field in getattr(declared, part)]
        found = [f"{renamed.get(f.name, f.name)}: {f.type}" for f in getattr(there, part)]
        if wanted != found:
            raise InvalidError(
                "the keys of a table cannot change",
                at=part,
                there=", ".join(found) or "none",
                declared=", ".join(wanted) or "none",
                hint=OTHER_KEYS,
            )


def _added(field: Field) -> object:
    form = type_json(field.type, numbered=False)
    if not field.nullable:
        hint = f"rows that are there have no value in it: {_NULLABLE}"
        raise InvalidError("an added field must be nullable", field=field.name, hint=hint)
    return f"{form}?" if isinstance(form, str) else form


def _is_wider(there: Field, declared: Field) -> bool:
    """Return whether a field is to be widened; False: it is as declared. Raises: InvalidError: it
    can never be."""
    if there.nullable is not declared.nullable:
        form = "nullable" if there.nullable else "required"
        mark = _NULLABLE if there.nullable else "leave `?` and `nullable` out"
        hint = f"{mark}; or declare a field of another name"
        raise InvalidError(f"a field that is {form} stays so", field=declared.name, hint=hint)
    if type_json(there.type, numbered=False) == type_json(declared.type, numbered=False):
        return False
    if not widens(there.type, declared.type):
        hint = f"{wider_types(there.type)}; or declare a field of another name"
        raise InvalidError(
            "not a wider type",
            field=declared.name,
            type=there.type,
            declared=declared.type,
            hint=hint,
        )
    return True
