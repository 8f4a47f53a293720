"""Defines what a decoder says of a record: that it became a row, or why not."""

from __future__ import annotations

from enum import IntEnum


class Verdict(IntEnum):
    """The verdict on a record. The numbers are stored in quarantine tables and never change."""

    ROW = 0
    UNPARSABLE = 1
    NOT_ONE_OBJECT = 2
    DUPLICATE_FIELD = 3
    UNKNOWN_FIELD = 4
    MISSING_FIELD = 5
    NULL_IN_REQUIRED = 6
    TYPE_MISMATCH = 7
    OUT_OF_RANGE = 8
    NOT_UTF8 = 9
    KEY_TOO_LONG = 10
    TIME_UNREADABLE = 11
    TIME_OUT_OF_BOUNDS = 12
    TOO_LARGE = 13
    SCHEMA_UNKNOWN = 14
    TRANSFORM_FAILED = 15
    TRANSFORM_TIMEOUT = 16
    LATE = 17
    IGNORED = 18
    """Filtered, not bad: it has no value, and the connection says `nulls = "ignore"`; or it belongs
    to another table of the connection's route."""
    NO_ROUTE = 19
    REFUSED_BY_TABLE = 20
    """The decoder made a row of it, and the table refused that row."""

    @property
    def code(self) -> str:
        """Its name in messages, pages and quarantine tables."""
        return self.name.lower().replace("_", "-")
