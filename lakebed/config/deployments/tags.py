"""Tags that an instance's owner gives to all of its resources that take some.

The bounds are those of the services that take least. Sources: "Tag naming limits and requirements",
Tagging AWS Resources User Guide; "Tag IAM resources", IAM User Guide, of keys that differ in case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lakebed.errors import InvalidError

TAGS_MAX = 40
"""Most tags, out of 50 that a resource may have: others are ours, and an operator's own."""
CHARACTERS_MAX = 1_500
"""Most characters of all tags together: a function that tags what it starts has them in a variable
of its environment."""

_KEY = re.compile(r"[\w.:/=+@ -]{1,128}")
_VALUE = re.compile(r"[\w.:/=+@ -]{0,256}")
_RESERVED = ("aws:", "lakebed:")


def checked_tags(tags: Mapping[str, object]) -> dict[str, str]:
    """Return tags of an owner.

    Raises:
        InvalidError: a key or value that AWS does not take, or that is ours; two keys that differ
            in case only; too many.
    """
    found = {key: _value(key, value) for key, value in tags.items()}
    by_case: dict[str, str] = {}
    for key in found:
        _check_key(key)
        other = by_case.setdefault(key.lower(), key)
        if other != key:
            hint = "keep one: roles take no two tags whose keys differ in case only"
            raise InvalidError("a tag is given twice", tags=f"{other}, {key}", hint=hint)
    characters = sum(len(key) + len(value) for key, value in found.items())
    if len(found) > TAGS_MAX or characters > CHARACTERS_MAX:
        raise InvalidError(
            "too many tags",
            tags=len(found),
            characters=characters,
            hint=f"give at most {TAGS_MAX}, with {CHARACTERS_MAX} characters in all",
        )
    return found


def _value(key: str, value: object) -> str:
    if not isinstance(value, str):
        hint = f'give a text: {key} = "{value}"'
        raise InvalidError("a tag is no text", tag=ascii(key)[:80], value=value, hint=hint)
    if not _VALUE.fullmatch(value) or value != value.strip():
        hint = "use up to 256 letters, digits, spaces between words, and any of . : / = + - @ _"
        raise InvalidError(
            "not the value of a tag", tag=ascii(key)[:80], value=ascii(value)[:80], hint=hint
        )
    return value


def _check_key(key: str) -> None:
    if key.lower().startswith(_RESERVED):
        hint = f"begin with something else than {' or '.join(_RESERVED)}"
        raise InvalidError("a tag whose name is reserved", tag=ascii(key)[:80], hint=hint)
    if not _KEY.fullmatch(key) or key != key.strip():
        hint = "use 1 to 128 letters, digits, spaces between words, and any of . : / = + - @ _"
        raise InvalidError("not the name of a tag", tag=ascii(key)[:160], hint=hint)
