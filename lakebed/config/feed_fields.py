"""What all sections of a file of feeds share: paths of fields, nearest names, values that are
checked, and secrets that are named only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time
from typing import Any, TypeVar

import msgspec

from lakebed.config.settings import allowed_of
from lakebed.errors import InvalidError, did_you_mean
from lakebed.ports.secrets import SECRET_SCHEME, secret_name

StructT = TypeVar("StructT", bound=msgspec.Struct)

DEPTH_MAX = 20
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_SECRET = re.compile(r"(?i)(pass(word|wd|phrase)|secret|token|credentials?|private_?key|api_?key)$")
_LOGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/\s@]*:[^/\s@]*@")


def at_of(*names: str) -> str:
    """Return the path of a field as TOML writes it: `feed.orders.source`."""
    return ".".join(name if _PLAIN.fullmatch(name) else ascii(name)[:80] for name in names)


def section(said: object, at: str) -> Mapping[str, Any]:
    """Return what is said, if it is a section. Raises: InvalidError: it is none."""
    if not isinstance(said, Mapping):
        raise InvalidError("it is a section", at=at, hint=f"write [{at}], or {{ ... }}")
    return said


def check_names(fields: Mapping[str, Any], names: Sequence[str], at: str) -> None:
    """Refuse a field of another name. Raises: InvalidError: with the nearest."""
    for field in fields:
        if field not in names:
            where = f"{at}.{at_of(field)}" if at else at_of(field)
            raise InvalidError(
                "an unknown setting of a feed",
                at=where,
                hint=did_you_mean(field, names, what="setting"),
            )


def checked(fields: Mapping[str, Any], form: type[StructT], at: str) -> StructT:
    """Return a record of what is said.

    Raises:
        InvalidError: a field has another name, kind or bound; it is named with what it may be.
    """
    check_names(fields, form.__struct_encode_fields__, at)
    try:
        return msgspec.convert(dict(fields), form)
    except msgspec.ValidationError as error:
        problem = str(error)
    for field in msgspec.structs.fields(form):  # one by one: which of them is it?
        if field.encode_name in fields:
            _check_field(fields[field.encode_name], field, at)
    raise InvalidError("not allowed in a feed", at=at, problem=problem)


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


def plain(said: object, at: str = "", depth: int = DEPTH_MAX) -> Any:  # noqa: ANN401 - any TOML
    """Return what is said with times as texts, so that it is stored and read again alike.

    Raises:
        InvalidError: a secret stands there in the open; it is nested too deep.
    """
    if depth < 0:
        raise InvalidError("it is nested too deep", at=at, hint=f"nest at most {DEPTH_MAX} times")
    if isinstance(said, Mapping):
        if not at.endswith((".columns", ".route.tables")):  # names that users' data has
            _check_secrets(said, at)
        return {
            str(k): plain(v, f"{at}.{at_of(str(k))}".lstrip("."), depth - 1)
            for k, v in said.items()
        }
    if isinstance(said, list | tuple):
        return [plain(value, at, depth - 1) for value in said]
    if isinstance(said, datetime | date | time):
        return said.isoformat()
    if isinstance(said, str) and _LOGIN.match(said):
        hint = "leave the login out; give user and password by fields of their own"
        raise InvalidError("an address with a password", at=at, hint=hint)
    if said is not None and not isinstance(said, str | int | float | bool):
        hint = "use text, numbers, true and false, lists and sections"
        kind = type(said).__name__
        raise InvalidError("no setting can be that", at=at, got=kind, hint=hint)
    return said


def secrets_in(said: object) -> Iterator[str]:
    """Yield the names of all secrets that something names."""
    if isinstance(said, Mapping):
        said = list(said.values())
    if isinstance(said, list | tuple):
        for value in said:
            yield from secrets_in(value)
    if isinstance(said, str) and said.startswith(SECRET_SCHEME):
        yield said.removeprefix(SECRET_SCHEME)


def _check_secrets(fields: Mapping[str, Any], at: str) -> None:
    for name, value in fields.items():
        where = f"{at}.{at_of(str(name))}".lstrip(".")
        is_named = isinstance(value, str) and value.startswith(SECRET_SCHEME)
        if is_named:
            try:
                secret_name(value.removeprefix(SECRET_SCHEME))
            except InvalidError as error:
                raise InvalidError(error.message, at=where, hint=error.hint) from None
        elif isinstance(value, str) and value and _SECRET.search(str(name)):
            hint = f'store it under a name, and write `{name} = "{SECRET_SCHEME}NAME"`'
            raise InvalidError("a secret stands in the open", at=where, hint=hint)
