"""The forms that may be written to a lake. Every release reads all older ones; which ones it may
write is recorded in the lake, so that releases can run side by side while one replaces another.

What has had one form only, such as messages and reports, enters the record with its second one.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Formats(msgspec.Struct, frozen=True, kw_only=True):
    """The newest forms that may be written.

    entry: of a log entry.
    state: of a snapshot.
    """

    entry: int
    state: int


OLDEST = Formats(entry=3, state=1)
"""Formats of lakes without a record: they were made before there was one."""

NEWEST = Formats(entry=6, state=4)
"""Formats that this release writes when it may."""


def formats_of(stored: Mapping[str, int]) -> Formats | None:
    """Return the forms that a record names; those that it does not name are the oldest. None: it is
    empty. Forms that only newer releases know are left out."""
    if not stored:
        return None
    return Formats(
        entry=stored.get("entry", OLDEST.entry),
        state=stored.get("state", OLDEST.state),
    )


def higher(one: Formats, other: Formats) -> Formats:
    """Return the newer form of each."""
    return Formats(entry=max(one.entry, other.entry), state=max(one.state, other.state))


def at_least(formats: Formats, needed: Formats) -> bool:
    """Return whether each form is as new as one that is needed, or newer."""
    return higher(formats, needed) == formats
