"""Feeds as a file says them: `[feed.NAME]` in TOML."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from lakebed.errors import InvalidError, did_you_mean
from lakebed.model.names import TableName, table_name


class Feed(msgspec.Struct, frozen=True, kw_only=True):
    """A feed: where its records come from. They are landed as they come.

    files: a pattern of paths of files that grow, a record a line.
    version: of this definition: it rises when the definition changes.
    rotate_bytes: of records that are committed together, at the most.
    """

    name: str
    files: Annotated[str, Meta(min_length=1)]
    version: Annotated[int, Meta(ge=1, le=1 << 53)] = 1
    rotate_bytes: Annotated[int, Meta(ge=1, le=1 << 30)] = 64 << 20


def landing_table_name(feed: str) -> TableName:
    """Return the name of a feed's landing table. Raises: InvalidError: no table can have it."""
    return table_name(f"{feed}_landing")


def feeds_of(text: str) -> list[Feed]:
    """Return the feeds that a file says, in its order.

    Raises:
        InvalidError: it is no TOML, or says what there is not. It names the field, and the nearest.
    """
    try:
        said = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidError("not a file of feeds: it is no TOML", problem=error) from None
    _check_names(said, ("feed",), at="")
    named = said.get("feed", {})
    if not isinstance(named, dict) or not named:
        hint = 'write a section [feed.NAME] with `files = "PATTERN"`'
        raise InvalidError("a file of feeds without a feed", hint=hint)
    return [_feed_of(name, fields) for name, fields in named.items()]


def _feed_of(name: str, fields: Any) -> Feed:  # noqa: ANN401 - whatever TOML holds
    at = f"feed.{name}"
    if not isinstance(fields, dict):
        raise InvalidError("a feed is a section", at=at, hint=f"write [{at}]")
    landing_table_name(name)
    known = [field.name for field in msgspec.structs.fields(Feed) if field.name != "name"]
    _check_names(fields, known, at=at)
    if "files" not in fields:
        raise InvalidError("a feed without a source", at=at, hint='say where: `files = "PATTERN"`')
    try:
        return msgspec.convert({"name": name, **fields}, Feed)
    except msgspec.ValidationError as error:
        raise InvalidError("not allowed in a feed", at=at, problem=error) from None


def _check_names(fields: Mapping[str, Any], names: Sequence[str], *, at: str) -> None:
    for field in fields:
        if field not in names:
            where = f"{at}.{field}" if at else field
            raise InvalidError(
                "an unknown setting of a feed",
                at=where,
                hint=did_you_mean(field, names, what="setting"),
            )
