"""JSON objects whose fields come once: of a field that comes twice, readers take one or the other,
so the sender and we could mean different things."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lakebed.errors import InvalidError

NAME_CHARACTERS_SHOWN = 100


class FieldTwiceError(ValueError):
    """An object has a field twice. Its text is the field's name, as ASCII, cut."""

    def __init__(self, name: str) -> None:
        self.name = ascii(name[:NAME_CHARACTERS_SHOWN])[1:-1]
        super().__init__(f"the field {self.name!r} is given twice")


def fields_once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; the `object_pairs_hook` of `json.loads`. Raises: FieldTwiceError."""
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        raise FieldTwiceError(next(name for name in names if names.count(name) > 1))
    return made


def check_fields_once(body: bytes) -> None:
    """Refuse JSON that has a field twice, at any depth. What is no JSON is left to its reader.

    Raises:
        InvalidError: it names the field.
    """
    try:
        json.loads(body, object_pairs_hook=fields_once)
    except FieldTwiceError as error:
        hint = "write each field once"
        raise InvalidError("a field is given twice", field=error.name, hint=hint) from None
    except (ValueError, RecursionError):
        return
