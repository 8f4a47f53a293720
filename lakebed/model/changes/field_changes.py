"""Changes of a table's fields after its creation, and what became of a name.

A change is committed with the schema's version, kept in the log and, the newest ones, with the
schema itself: so a query or an upload with an old name can be answered with the new one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

import msgspec

from lakebed.model.names import Micros
from lakebed.model.types import Type, type_json

Doing = Literal["add", "rename", "drop", "widen"]


class FieldChange(msgspec.Struct, frozen=True, array_like=True):
    """One change of one field.

    number, name: of the field, the name before a rename.
    to: the new name of a rename; the type's text of an addition or of a widening, JSON if nested.
    """

    do: Doing
    number: int
    name: str
    to: str = ""

    def __str__(self) -> str:
        match self.do:
            case "add":
                return f"add {self.name}: {self.to}"
            case "drop":
                return f"drop {self.name}"
            case _:
                return f"{self.do} {self.name} to {self.to}"


class SchemaVersion(msgspec.Struct, frozen=True, array_like=True):
    """A version of a schema, and the changes that made it.

    at: log time of its entry.
    """

    version: int
    at: Micros
    changes: tuple[FieldChange, ...]


def type_text(type_: Type) -> str:
    """Return a type as `FieldChange.to` has it."""
    form = type_json(type_)
    return form if isinstance(form, str) else json.dumps(form)


def type_form(text: str) -> object:
    """Return the text form of `types.type_of` that `type_text` made text of."""
    return json.loads(text) if text.startswith("{") else text


def former_names(past: Sequence[SchemaVersion]) -> dict[str, str]:
    """Return former names of fields that there are, with the names that these have now."""
    names = {change.name for version in past for change in version.changes if change.do == "rename"}
    fates = {name: fate_of(name, past) for name in sorted(names)}
    return {name: now for name, now in fates.items() if now and now != name}


def fate_of(name: str, past: Sequence[SchemaVersion]) -> str | None:
    """Return the name that a field of this former name has now, "" if it was dropped; None: there
    was none."""
    found: int | None = None
    now = ""
    for version in past:
        for change in version.changes:
            if change.name == name and change.do in ("rename", "drop"):
                found, now = change.number, name
            if change.number == found and change.do in ("rename", "drop"):
                now = change.to
    return None if found is None else now
