"""Fields of files that users write in TOML: their paths, nearest names, and values that are
checked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from lakebed.config.settings import allowed_of
from lakebed.errors import InvalidError, did_you_mean

StructT = TypeVar("StructT", bound=msgspec.Struct)

A_FEED = "a feed"
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")


def at_of(*names: str) -> str:
    """Return the path of a field as TOML writes it: `feed.orders.source`."""
    return ".".join(name if _PLAIN.fullmatch(name) else ascii(name)[:80] for name in names)


def section(said: object, at: str) -> Mapping[str, Any]:
    """Return what is said, if it is a section. Raises: InvalidError: it is none."""
    if not isinstance(said, Mapping):
        raise InvalidError(
            "a value is given to a section", at=at, hint=f"write [{at}], or {{ ... }}"
        )
    return said


def check_names(
    fields: Mapping[str, Any], names: Sequence[str], at: str, *, of: str = A_FEED
) -> None:
    """Refuse a field of another name. of: what is said, for the error.

    Raises:
        InvalidError: with the nearest name.
    """
    for field in fields:
        if field not in names:
            where = f"{at}.{at_of(field)}" if at else at_of(field)
            raise InvalidError(
                f"an unknown setting of {of}",
                at=where,
                hint=did_you_mean(field, names, what="setting"),
            )


def checked(
    fields: Mapping[str, Any], form: type[StructT], at: str, *, of: str = A_FEED
) -> StructT:
    """Return a record of what is said. of: as above.

    Raises:
        InvalidError: a field has another name, kind or bound; it is named with what it may be.
    """
    check_names(fields, form.__struct_encode_fields__, at, of=of)
    try:
        return msgspec.convert(dict(fields), form)
    except msgspec.ValidationError as error:
        problem = str(error)
    for field in msgspec.structs.fields(form):  # one by one: which of them is it?
        if field.encode_name in fields:
            _check_field(fields[field.encode_name], field, at)
    raise InvalidError(
        f"a value is not allowed in {of}",
        at=at,
        problem=problem,
        hint="give what the problem asks for",
    )


def _check_field(value: object, field: msgspec.structs.FieldInfo, at: str) -> None:
    try:
        msgspec.convert(value, field.type)
    except msgspec.ValidationError as error:
        raise InvalidError(
            "not a value for the setting",
            at=f"{at}.{field.encode_name}",
            problem=str(error).replace(" - at `$", ", at `"),
            hint=f"give {allowed_of(field.type)}",
        ) from None
