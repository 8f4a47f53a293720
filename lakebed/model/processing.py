"""Defines what a table does with its rows, alike in ingest, compaction and query: given when it is
created.

First rows are left out (`filter`, `age_off`), then rows with equal row and sort keys become one
(`aggregate`, `latest`), or a user's `iterator` works on them. Only mixtures are allowed that give
the same rows whatever was compacted when (docs/design/processing.md says why each one does).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast
from typing import Literal as OneOf

import msgspec

from lakebed.errors import InvalidError, did_you_mean
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.model.predicates.language import (
    Predicate,
    checked_predicate,
    fields_of,
    predicate_from_json,
    predicate_json,
    tests_patterns,
)
from lakebed.model.predicates.literals import FLOATS, INTEGER_BITS, UNSIGNED_BITS
from lakebed.model.predicates.text import predicate_from_text
from lakebed.model.schema import Field, Schema
from lakebed.model.types import Decimal, MapOf, Primitive, Type

SECONDS_MAX = 10_000 * 366 * 86_400
CONFIG_BYTES_MAX = 64 * 1024
UNIT_MICROS = {"s": MICROS_PER_SECOND, "ms": 1_000, "us": 1}
_MICROS_OF_TYPE = {"date32": 86_400_000_000, "timestamp[us]": 1, "timestamp[us, UTC]": 1}
_WHOLE = (*INTEGER_BITS, *UNSIGNED_BITS)
_SEQUENCES = (*_WHOLE, "date32", "timestamp[us]", "timestamp[us, UTC]")
_SUMMED = (*_WHOLE, *FLOATS)
_ORDERED = (*_SUMMED, "bool", "string", "binary", "date32", "time64[us]", *_SEQUENCES)
_FOLD = re.compile(r"(sum|min|max|count)|(first|last) by (.+)", re.DOTALL)
_FUNCTIONS = "sum, min, max, count, first by FIELD, last by FIELD"


class AgeOff(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rows are left out once `field` is more than `seconds` ago. A row without a time never is.

    unit: of an integer field, "s", "ms" or "us" since 1970. A date is its first moment in UTC.
    gone_before: microseconds since 1970; what is older is left out whatever `seconds` says. Set
        when `seconds` are made more: rows that had been too old before then do not come back.
    """

    field: str
    seconds: int
    unit: OneOf["s", "ms", "us"] | None = None
    gone_before: int | None = None


class Latest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Keeps, of rows with equal keys, the one with the greatest `sequence`.

    delete: a bool field: where it is true in the latest row, the key is gone.
    """

    sequence: str
    delete: str | None = None


class IteratorUse(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A step of an installed package.

    name: its entry point in `lakebed.iterators`.
    """

    name: str
    config: Mapping[str, Any] = {}


class Processing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The processing of a table's rows.

    aggregate: a function for each value field: "sum", "min", "max", "count", "first by FIELD" or
        "last by FIELD"; for maps the first three, per map key.
    """

    filter: Predicate | None = None
    age_off: AgeOff | None = None
    aggregate: Mapping[str, str] | None = None
    latest: Latest | None = None
    iterator: IteratorUse | None = None

    @property
    def merges_rows(self) -> bool:
        """Return whether a row that a query gives may come of several that are stored."""
        return not (self.aggregate is None and self.latest is None and self.iterator is None)

    @property
    def ages_groups(self) -> bool:
        """Return whether rows age together with others of their key: age-off goes by a merged
        field."""
        return self.age_off is not None and self.age_off.field in (self.aggregate or ())

    @property
    def fields(self) -> frozenset[str]:
        """Return the names of all fields that the processing uses."""
        names = set(self.aggregate or ())
        if self.filter is not None:
            names |= fields_of(self.filter)
        if self.age_off is not None:
            names.add(self.age_off.field)
        if self.latest is not None:
            names |= {self.latest.sequence, self.latest.delete or self.latest.sequence}
        return frozenset(names)


class Fold(msgspec.Struct, frozen=True):
    """The function by which values of equal keys become one.

    by: the sequence field of first and last.
    """

    function: OneOf["sum", "min", "max", "count", "first", "last"]
    by: str | None = None


Stage = OneOf["ingest", "compaction", "query"]


class ProcessingPass(msgspec.Struct, frozen=True):
    """One way of rows through a table's processing.

    at: the instant that decides which are old.
    whole: whether a compaction has all rows of each key that it has a row of.

    Ingest counts rows, a query does not show keys that are deleted; else all three are alike.
    """

    processing: Processing
    at: Micros
    stage: Stage
    whole: bool = False


def iterator_use(given: object) -> IteratorUse:
    """Return the iterator that a user names with its configuration. Raises: InvalidError."""
    match given:
        case (str(name), Mapping() as config):
            use = IteratorUse(name, dict(config))
        case _:
            hint = 'give ("name", {"option": 1})'
            raise InvalidError("not an iterator", got=ascii(given)[:80], hint=hint)
    _check_iterator(use)
    return use


def fold_of(text: str) -> Fold:
    """Return the function that a text names. Raises: InvalidError."""
    found = _FOLD.fullmatch(str(text))
    if found is None:
        raise InvalidError("no such function", function=text, hint=f"use one of {_FUNCTIONS}")
    return Fold(cast("Any", found[1] or found[2]), found[3])


def processing_from_json(value: object) -> Processing:
    """Return the processing that JSON values describe. The filter may be text.

    Raises:
        InvalidError: something is not allowed; the error names it.
    """
    if not isinstance(value, dict):
        hint = 'for instance {"age_off": {"field": "at", "seconds": 86400}}'
        raise InvalidError("processing is a JSON object", hint=hint)
    parts = dict(value)
    for name in parts:
        if name not in Processing.__struct_fields__:
            known = Processing.__struct_fields__
            hint = did_you_mean(str(name), known, what="part of processing")
            raise InvalidError("unknown part of processing", part=name, hint=hint)
    filter_ = parts.pop("filter", None)
    if filter_ is not None:
        by_text = isinstance(filter_, str)
        filter_ = predicate_from_text(filter_) if by_text else predicate_from_json(filter_)
    try:
        others = msgspec.convert(parts, Processing)
    except (msgspec.ValidationError, RecursionError) as error:
        hint = "`lakebed explain processing` says what each part takes"
        raise InvalidError("not a processing", problem=error, hint=hint) from None
    return msgspec.structs.replace(others, filter=filter_)


def processing_json(processing: Processing, schema: Schema) -> dict[str, Any]:
    """Return a checked processing as JSON values, as `processing_from_json` reads them."""
    found: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(processing, filter=None))
    if processing.age_off is not None and processing.age_off.gone_before is None:
        del found["age_off"]["gone_before"]
    if processing.filter is not None:
        found = {"filter": predicate_json(processing.filter, schema)} | found
    return found


def checked_processing(processing: Processing, schema: Schema) -> Processing:
    """Return the processing with its filter's literals as they are compared.

    Raises:
        InvalidError: a field, function or mixture that is not allowed; the hint says what is.
    """
    if processing == Processing():
        raise InvalidError("processing that does nothing", hint="leave it out")
    _check_mixture(processing)
    if processing.aggregate is not None:
        _check_aggregate(processing.aggregate, schema)
    if processing.latest is not None:
        _check_latest(processing.latest, schema)
    if processing.iterator is not None:
        _check_iterator(processing.iterator)
    if processing.age_off is not None:
        _check_age_off(processing.age_off, processing, schema)
    if processing.filter is None:
        return processing
    predicate = checked_predicate(processing.filter, schema)
    _check_filter(predicate, processing, schema)
    return msgspec.structs.replace(processing, filter=predicate)


def check_schema_change(processing: Processing, before: Schema, after: Schema) -> None:
    """Refuse a change of fields that the processing cannot follow. Raises: InvalidError."""
    kept = {field.number: field.name for field in after.fields}
    for name in sorted(processing.fields):
        if kept.get(before.field(name).number) != name:
            hint = "change the processing first: a field that it names cannot be renamed or dropped"
            raise InvalidError("the table's processing uses this field", field=name, hint=hint)
    checked_processing(processing, after)


def age_off_limit(age_off: AgeOff, schema: Schema, at: Micros) -> int:
    """Return the least value of the field that is not too old at an instant, in its own unit."""
    micros = micros_of_unit(age_off, schema)
    least = at - age_off.seconds * MICROS_PER_SECOND
    if age_off.gone_before is not None:
        least = max(least, age_off.gone_before)
    return -(-least // micros)


def micros_of_unit(age_off: AgeOff, schema: Schema) -> int:
    """Return how many microseconds one more in the field is."""
    type_ = schema.field(age_off.field).type
    name = type_.name if isinstance(type_, Primitive) else ""
    return UNIT_MICROS[age_off.unit] if age_off.unit else _MICROS_OF_TYPE[name]


def _check_mixture(processing: Processing) -> None:
    merging = [
        name
        for name in ("aggregate", "latest", "iterator")
        if getattr(processing, name) is not None
    ]
    if len(merging) > 1:
        hint = "choose one: the second would see other rows after each compaction"
        raise InvalidError(f"{' and '.join(merging)} do not mix", hint=hint)


def _check_aggregate(aggregate: Mapping[str, str], schema: Schema) -> None:
    values = {field.name: field for field in schema.values}
    for name in aggregate:
        field = schema.field(name)
        if name not in values:
            hint = "rows with equal keys become one: only value fields have a function"
            raise InvalidError("a key cannot be aggregated", field=field.name, hint=hint)
    for name, field in values.items():
        if name not in aggregate:
            hint = f"give it one of {_FUNCTIONS}"
            raise InvalidError("a value field without a function", field=name, hint=hint)
        fold = fold_of(aggregate[name])
        _check_fold(field, fold)
        if fold.by is not None:
            _check_sequence(schema, fold.by, values)
            wanted = "max" if fold.function == "last" else "min"
            if fold_of(aggregate.get(fold.by, wanted)).function != wanted:
                hint = f"give {fold.by!r} the function {wanted}, or order by another field"
                raise InvalidError(
                    f"`{fold.function} by` needs the {wanted} of its field", field=name, hint=hint
                )


def _check_fold(field: Field, fold: Fold) -> None:
    type_, per_key = field.type, ""
    if isinstance(type_, MapOf) and fold.function in ("sum", "min", "max"):
        type_, per_key = type_.value, " per map key"
    allowed = {
        "sum": (_SUMMED, "integers, floats, decimals, and maps to them"),
        "min": (_ORDERED, "numbers, text, binary, dates and times, and maps to them"),
        "max": (_ORDERED, "numbers, text, binary, dates and times, and maps to them"),
        "count": (("int64",), "int64"),
    }
    if fold.function not in allowed:
        return
    names, shown = allowed[fold.function]
    if not (_is_one_of(type_, names) or (isinstance(type_, Decimal) and fold.function != "count")):
        hint = f"{fold.function}{per_key} takes {shown}; `first by` and `last by` take every type"
        raise InvalidError(
            "the field's type does not support this function",
            field=field.name,
            type=field.type,
            function=fold.function,
            hint=hint,
        )


def _check_sequence(schema: Schema, name: str, values: Mapping[str, Field]) -> None:
    field = schema.field(name)
    if name not in values:
        hint = "rows with equal keys have the same there: name a value field"
        raise InvalidError("a key is no sequence", field=name, hint=hint)
    if field.nullable or not _is_one_of(field.type, _SEQUENCES):
        hint = f"a sequence is required (without `?`) and one of {', '.join(_SEQUENCES)}"
        raise InvalidError("not a field for a sequence", field=name, type=field.type, hint=hint)


def _check_latest(latest: Latest, schema: Schema) -> None:
    values = {field.name: field for field in schema.values}
    _check_sequence(schema, latest.sequence, values)
    if latest.delete is None:
        return
    field = schema.field(latest.delete)
    if field.name not in values or not _is_one_of(field.type, ("bool",)):
        hint = "name a value field of type bool"
        raise InvalidError("not a field that marks deletes", field=field.name, hint=hint)


def _check_iterator(use: IteratorUse) -> None:
    if not use.name or not use.name.isprintable():
        raise InvalidError("an iterator has a name", name=ascii(use.name), hint="its entry point's")
    try:
        size = len(msgspec.json.encode(use.config))
        again = msgspec.json.decode(msgspec.json.encode(use.config))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise InvalidError(
            "an iterator's configuration is not JSON",
            problem=error,
            hint="give a dict of texts, numbers, lists and such dicts",
        ) from None
    if size > CONFIG_BYTES_MAX or again != use.config:
        hint = f"give JSON values with text as names, at most {CONFIG_BYTES_MAX} bytes"
        raise InvalidError("not a configuration", name=use.name, hint=hint)


def _check_age_off(age_off: AgeOff, processing: Processing, schema: Schema) -> None:
    field = schema.field(age_off.field)
    whole = _is_one_of(field.type, _WHOLE)
    if not whole and not _is_one_of(field.type, tuple(_MICROS_OF_TYPE)):
        hint = "age-off goes by a timestamp, a date, or an integer with a unit"
        raise InvalidError("not a field with a time", field=field.name, type=field.type, hint=hint)
    if whole is not (age_off.unit is not None) or age_off.unit not in (None, *UNIT_MICROS):
        hint = "give an integer field a unit: s, ms or us; leave it out for dates and timestamps"
        raise InvalidError(
            "a unit belongs to an integer field", field=field.name, type=field.type, hint=hint
        )
    if type(age_off.seconds) is not int or not 0 < age_off.seconds <= SECONDS_MAX:
        hint = f"give 1 to {SECONDS_MAX} seconds"
        raise InvalidError("not a span for age-off", seconds=age_off.seconds, hint=hint)
    if type(age_off.gone_before) not in (int, type(None)):
        hint = "leave it out"
        raise InvalidError("not a time", gone_before=age_off.gone_before, hint=hint)
    latest = processing.latest
    if processing.aggregate is not None and field.name in processing.aggregate:
        if field.nullable or processing.aggregate[field.name] != "max":
            hint = "make it required (without `?`), and give it the function max"
            raise InvalidError(
                "groups age by the time of their newest row", field=field.name, hint=hint
            )
        return
    if processing.merges_rows and field not in schema.key_fields:
        if latest is not None and latest.sequence == field.name:
            return
        also = f" or the sequence {latest.sequence!r}" if latest is not None else ""
        hint = f"age-off by a key field{also}: a merged row does not say how old its parts were"
        raise InvalidError("age-off cannot use a field that is merged", field=field.name, hint=hint)


def _check_filter(predicate: Predicate, processing: Processing, schema: Schema) -> None:
    if tests_patterns(predicate):
        hint = "compare instead: for `like 'ab%'` write `>= 'ab' and < 'ac'`"
        raise InvalidError("a table's filter cannot use `like`", hint=hint)
    if processing.latest is not None or not processing.merges_rows:
        return
    merged = sorted(fields_of(predicate) - {field.name for field in schema.key_fields})
    if merged:
        hint = "test key fields only, or filter before ingest: merged values are other values"
        raise InvalidError(
            "a filter cannot test a field that is merged", field=merged[0], hint=hint
        )


def _is_one_of(type_: Type, names: tuple[str, ...]) -> bool:
    return isinstance(type_, Primitive) and type_.name in names
