"""Times without an offset: the zone that a user gives them, and the times in UTC that they become.

A date is its midnight. Text may mix times with an offset, which keep it, and times without one.
"""

from __future__ import annotations

import difflib
import zoneinfo
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidError
from lakebed.model.schema import Schema

Zones = Mapping[str, str]
"""The zone of times without an offset, by field."""
NO_ZONES: Zones = {}
TYPE = "timestamp[us, UTC]"
IN_UTC = pa.timestamp("us", tz="UTC")
SAY_ZONE = "the times have no offset: say which zone they are in, for instance zone='UTC'"
CLOCK_CHANGE = "clocks change then: convert the column to UTC yourself, or give the offset"
_WITHOUT_OFFSET = pa.timestamp("us")
_OFFSET = r"[T ]\S*(?:Z|[+-]\d\d(?::?\d\d)?)$"
"""Only behind a time of day: `2024-01-01` ends with no offset."""


def zones_of(zone: str | Mapping[str, str] | None, schema: Schema) -> Zones:
    """Return the zone of each field in UTC. zone: one for all of them, or by field.

    Raises:
        InvalidError: no such zone; a field that does not exist, or is not 'timestamp[us, UTC]'.
    """
    if zone is None:
        return NO_ZONES
    in_utc = [field.name for field in schema.fields if str(field.type) == TYPE]
    zones = dict(zone) if isinstance(zone, Mapping) else dict.fromkeys(in_utc, zone)
    for name, given in zones.items():
        if name not in in_utc:
            known = ", ".join(in_utc) or "none"
            hint = f"fields of type {TYPE!r} take a zone, here: {known}"
            raise InvalidError("not a field that takes a zone", field=name, zone=given, hint=hint)
    for given in {zone} if isinstance(zone, str) else set(zones.values()):
        _check(given)
    return zones


def has_no_offset(got: pa.DataType) -> bool:
    """Return whether values of a type are times in UTC once their zone is known."""
    kinds = pa.types
    return bool(kinds.is_date(got) or (kinds.is_timestamp(got) and got.tz is None))


def in_utc(column: pa.Array, zone: str) -> pa.Array:
    """Return times without an offset, or dates, as times in UTC.

    Raises:
        pa.ArrowInvalid: a time that the zone skips or has twice; one finer than microseconds.
    """
    times = column.cast(_WITHOUT_OFFSET)
    if zone == "UTC":
        return times.cast(IN_UTC)
    return pc.assume_timezone(times, zone).cast(IN_UTC)


def texts_in_utc(texts: pa.Array, zone: str) -> pa.Array:
    """Return ISO 8601 texts as times in UTC. zone: of those without an offset.

    Raises:
        pa.ArrowInvalid: a text that is no time; as `in_utc`.
    """
    has_offset = pc.match_substring_regex(texts, _OFFSET)
    if not pc.any(has_offset).as_py():  # bounded: one flag
        return in_utc(texts.cast(_WITHOUT_OFFSET), zone)
    as_said = pc.if_else(has_offset, texts, None).cast(IN_UTC)
    return pc.coalesce(
        as_said, in_utc(pc.if_else(has_offset, None, texts).cast(_WITHOUT_OFFSET), zone)
    )


def _check(zone: str) -> None:
    try:
        pc.assume_timezone(pa.array([0], _WITHOUT_OFFSET), zone)
    except (pa.ArrowException, TypeError):
        near = difflib.get_close_matches(str(zone), zoneinfo.available_timezones(), n=1)
        meant = f"did you mean {near[0]!r}? " if near else ""
        hint = f"{meant}zones are UTC, names as Europe/Berlin, and offsets as +02:00"
        raise InvalidError("no such time zone", zone=zone, hint=hint) from None
