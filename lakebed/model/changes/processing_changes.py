"""Decides when a table may do something else with its rows than before, and what becomes of rows in
files.

Some of them the old processing would have left out, or made one of several: whether it has, is up
to compactions. A change is right where no query shows it. So what was left out stays left out, and
what was merged stays merged; with no rows there, everything is right.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakebed.errors import InvalidError
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.model.predicates.language import And, Predicate
from lakebed.model.processing import AgeOff, Processing, fold_of
from lakebed.model.schema import Schema
from lakebed.model.types import MapOf

_CLEAR = "clear the table first, or ingest it into a new one"


def check_processing_change(
    before: Processing | None, after: Processing | None, schema: Schema
) -> None:
    """Refuse what would not be right for rows that are there. Both were checked by themselves.

    Raises:
        InvalidError: it names the part.
    """
    old, new = before or Processing(), after or Processing()
    if not _parts(old.filter) <= _parts(new.filter):
        hint = f"keep the old test and add to it: rows that it left out are gone; or {_CLEAR}"
        raise InvalidError("a filter can only become stricter", hint=hint)
    _check_age_off(old.age_off, new.age_off)
    if old.ages_groups or new.ages_groups:
        _check_group_ages(old, new)
    for part in ("aggregate", "latest", "iterator"):
        if getattr(old, part) not in (None, getattr(new, part)):
            hint = f"some rows are already merged in the old way: {_CLEAR}"
            raise InvalidError("the way rows are merged cannot change", part=part, hint=hint)
    if old.aggregate is None and new.aggregate is not None:
        _check_new_aggregate(new.aggregate, schema)


def gone_before(before: Processing | None, seconds: int, at: Micros) -> int | None:
    """Return since when rows are too old for good, if a table with rows lets them live `seconds`
    from now on; None: nothing else than that tells. at: log time of the change.

    Some of what was too old was left out by now, and some lies in files. None of it comes back.
    """
    old = None if before is None else before.age_off
    if old is None or seconds <= old.seconds:
        return None if old is None else old.gone_before
    least = at - old.seconds * MICROS_PER_SECOND
    return least if old.gone_before is None else max(least, old.gone_before)


def _parts(filter_: Predicate | None) -> set[Predicate]:
    """Return tests of which each must be true."""
    if isinstance(filter_, And):
        return {part for one in filter_.parts for part in _parts(one)}
    return set() if filter_ is None else {filter_}


def _check_age_off(old: AgeOff | None, new: AgeOff | None) -> None:
    if old is None:
        return
    if new is None:
        hint = "rows that were too old are gone: give so many seconds that no row grows so old"
        raise InvalidError("age-off cannot be removed", part="age_off", hint=hint)
    if (old.field, old.unit) != (new.field, new.unit):
        hint = f"only the seconds may change; or {_CLEAR}"
        raise InvalidError("the field of age-off cannot change", field=old.field, hint=hint)


def _check_group_ages(old: Processing, new: Processing) -> None:
    """Refuse another age-off or aggregation where groups age: what a group is follows from the
    span, for rows that were merged and for those that were not."""
    if (old.age_off, old.aggregate) != (new.age_off, new.aggregate):
        hint = f"where age-off goes by a merged field, it stays as it is: {_CLEAR}"
        raise InvalidError("the way groups age cannot change", part="age_off", hint=hint)


def _check_new_aggregate(aggregate: Mapping[str, str], schema: Schema) -> None:
    """Rows that came before an aggregation were not counted, nor their maps put in order."""
    for name, text in aggregate.items():
        per_map_key = isinstance(schema.field(name).type, MapOf)
        function = fold_of(text).function
        if function == "count" or (per_map_key and function in ("sum", "min", "max")):
            hint = f"it applies when rows are ingested, and the table has some: {_CLEAR}"
            raise InvalidError(
                "this function cannot begin on a table with rows",
                field=name,
                function=text,
                hint=hint,
            )
