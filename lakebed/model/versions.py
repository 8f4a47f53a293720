"""Reads which version of a table is meant: a number, a time or a tag; checks names of tags and
followers."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import msgspec

from lakebed.errors import InvalidError
from lakebed.model.names import MICROS_PER_SECOND, Micros, TransactionNumber

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_AS_OF_HINT = "give the number of a log entry, a time like 2026-11-25T10:00Z, or the name of a tag"

AsOf = int | str | datetime
"""As callers say it."""


class AsOfTime(msgspec.Struct, frozen=True):
    """The newest version by then, in log time."""

    at: Micros


class AsOfTag(msgspec.Struct, frozen=True):
    """The version that has a tag."""

    name: str


Version = TransactionNumber | AsOfTime | AsOfTag


def check_version_name(name: object) -> str:
    """Return the name of a tag or a follower.

    Raises:
        InvalidError: it is not of the form that is allowed, or reads as a number or a time.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name):
        hint = "use 1 to 100 of A-Z a-z 0-9 . _ -, beginning with a letter or a digit"
        raise InvalidError("not a name of a version", name=ascii(name)[:80], hint=hint)
    if name.isdigit() or _time_in(name) is not None:
        hint = "add a letter: numbers and times mean versions by themselves"
        raise InvalidError("a number or a time is no name", name=name, hint=hint)
    return name


def version_of(as_of: object) -> Version:
    """Return which version a caller means. A text of digits is a number, one in ISO 8601 a time,
    any other a tag.

    Raises:
        InvalidError: it is none of these, or a time without an offset.
    """
    if isinstance(as_of, str) and as_of.strip().isdigit():
        as_of = int(as_of)
    if type(as_of) is int:
        if not 0 < as_of < 1 << 40:
            raise InvalidError("not a number of a version", as_of=as_of, hint=_AS_OF_HINT)
        return TransactionNumber(as_of)
    time = _time_in(as_of) if isinstance(as_of, str) else as_of
    if isinstance(time, datetime):
        if time.tzinfo is None:
            hint = "add an offset, for instance 2026-11-25T10:00Z"
            raise InvalidError("a time needs an offset", as_of=as_of, hint=hint)
        return AsOfTime(Micros((time - _EPOCH) // timedelta(microseconds=1)))
    if isinstance(as_of, str) and NAME.fullmatch(as_of):
        return AsOfTag(as_of)
    raise InvalidError("not a version", as_of=ascii(as_of)[:80], hint=_AS_OF_HINT)


def time_of(at: int) -> datetime:
    """Return microseconds since 1970 as a time."""
    return _EPOCH + timedelta(seconds=at // MICROS_PER_SECOND, microseconds=at % MICROS_PER_SECOND)


def _time_in(text: str) -> datetime | None:
    """Return the time that a text is, perhaps without an offset; a date is its beginning."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
