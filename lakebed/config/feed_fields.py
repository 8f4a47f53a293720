"""Checks what all sections of a file of feeds share: values that can be stored, and secrets that
are named only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from typing import Any

from lakebed.config.definitions.toml_fields import at_of
from lakebed.errors import InvalidError
from lakebed.ports.secrets import SECRET_SCHEME, secret_name

DEPTH_MAX = 20
_SECRET = re.compile(r"(?i)(pass(word|wd|phrase)|secret|token|credentials?|private_?key|api_?key)$")
_LOGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/\s@]*:[^/\s@]*@")


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
