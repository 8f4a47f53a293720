"""Computes how groups of rows with equal keys age, where the time that age-off goes by is itself
merged.

Times are counted in steps of the span. Rows of a key are one group as long as no step between
their times is empty. What merges some rows of a key makes one of those in the same step only: so
what it gives says as much of groups as what it was given. What sees all rows of a key makes one row
of a group, in its newest step. Rows that come later are at most a step and a day older than the
log: to them that row is as near as the whole group was. docs/design/processing.md says more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.model.processing import ProcessingPass, age_off_limit, micros_of_unit
from lakebed.model.schema import Schema

LATE_SECONDS = 86_400
"""An ingest commits at most so long after it began: what it brings is as old as was right then."""
FORMAT = 6
"""Format of log entries with group ages: older releases do not know them."""


class GroupAges(msgspec.Struct, frozen=True):
    """The bounds on the age of groups, in units of the field.

    field: the time of rows; of a merged row that of its newest.
    step: units of a step.
    limit: a group whose time is less is too old to be shown.
    last: the step that is past for all rows to come, but for those of the step before it.
    is_query: whether groups are shown, not kept.
    is_whole: whether all rows of each key are there.
    """

    field: str
    step: int
    limit: int
    last: int
    is_query: bool
    is_whole: bool

    @property
    def oldest(self) -> int:
        """Return the oldest step whose group rows to come may still belong to."""
        return self.last - 2


def group_ages(given: ProcessingPass, schema: Schema) -> GroupAges | None:
    """Return how groups age in a pass of rows; None: rows age, each by itself, or not at all."""
    age_off = given.processing.age_off
    if age_off is None or not given.processing.ages_groups:
        return None
    unit = micros_of_unit(age_off, schema)
    step = max(1, -(-age_off.seconds * MICROS_PER_SECOND // unit))
    past = Micros(given.at - LATE_SECONDS * MICROS_PER_SECOND)
    return GroupAges(
        field=age_off.field,
        step=step,
        limit=age_off_limit(age_off, schema, given.at),
        last=past // unit // step,
        is_query=given.stage == "query",
        is_whole=given.whole,
    )


def format_of_processing(stored: Mapping[str, Any] | None) -> int:
    """Return the lowest format of an entry that says this of a table's processing."""
    parts = stored or {}
    by_field = (parts.get("age_off") or {}).get("field")
    return FORMAT if by_field in (parts.get("aggregate") or {}) else 1
