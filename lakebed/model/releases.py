"""The releases of Lakebed, and the forms that each reads and may write."""

from __future__ import annotations

import re

import msgspec

from lakebed.model.formats import NEWEST, Formats, at_least

UNKNOWN = ""
"""The release of a process that does not say: older than all that do."""


class Release(msgspec.Struct, frozen=True):
    """A release: its version, and the newest forms that it reads and writes."""

    name: str
    formats: Formats


RELEASES = (
    Release("0.1.0", Formats(entry=3, state=1)),
    Release("0.2.0", Formats(entry=4, state=2)),
    Release("0.3.0", NEWEST),
)
"""Oldest first. The last one is this program; the one before may run beside it."""

THIS, BEFORE = RELEASES[-1], RELEASES[-2]


def order_of(release: str) -> tuple[int, ...]:
    """Return what releases are compared by: `0.10.1` is after `0.9`. What is no version of numbers
    comes first, as a process does that does not say its release."""
    return tuple(map(int, release.split("."))) if re.fullmatch(r"\d+(\.\d+)*", release) else ()


def release_allowed(formats: Formats) -> Release:
    """Return the newest release all of whose forms are allowed: what a gate stands at."""
    fitting = [one for one in RELEASES if at_least(formats, one.formats)]
    return fitting[-1] if fitting else RELEASES[0]
