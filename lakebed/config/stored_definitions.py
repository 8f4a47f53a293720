"""Definitions as the registry keeps them: JSON of what a user said, with the number of its form.

Defaults are not stored: what a user did not say is as this release has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from lakebed.config.feeds import FeedFile, file_of
from lakebed.errors import CorruptError, InvalidError, NewerFormatError
from lakebed.model.feeds.definitions import DefinitionKind, NamedDefinition

FORM = 1


class _Body(msgspec.Struct, frozen=True):
    form: int
    said: dict[str, Any]


def definition_body(said: Mapping[str, Any]) -> bytes:
    """Return the bytes that are stored, the same for the same definition."""
    kept = {name: value for name, value in said.items() if name != "version"}
    return msgspec.json.encode(_Body(FORM, kept), order="deterministic")


def said_of(definition: NamedDefinition) -> dict[str, Any]:
    """Return what a stored definition says.

    Raises:
        NewerFormatError: a newer Lakebed stored it.
        CorruptError: it is none.
    """
    at = f"{definition.kind}.{definition.name}"
    try:
        body = msgspec.json.decode(definition.body, type=_Body)
    except msgspec.DecodeError as error:
        hint = "apply it again from its file"
        raise CorruptError("not a definition", at=at, why=error, hint=hint) from None
    if body.form > FORM:
        raise NewerFormatError("a newer definition", at=at, form=body.form)
    return body.said


def stored_file(definitions: Iterable[NamedDefinition]) -> FeedFile:
    """Return what stored definitions say together.

    Raises:
        NewerFormatError: one says what this release does not know.
        CorruptError: one is none.
    """
    said: dict[tuple[DefinitionKind, str], Mapping[str, Any]] = {
        (one.kind, one.name): said_of(one) for one in definitions
    }
    try:
        return file_of(said)
    except InvalidError as error:
        hint = "upgrade this installation of lakebed, or apply the definition again"
        raise NewerFormatError(
            "a definition says what this release does not know", why=error, hint=hint
        ) from None
