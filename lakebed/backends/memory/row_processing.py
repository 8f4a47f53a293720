"""Does with rows that are tuples, one by one, what `lakebed.processing` does with Arrow batches.

For the simulation, and for tests as the plain model that the other is held against. Values are
those of `row_layout`: keys are key values, times are numbers, maps are lists of pairs.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal, localcontext
from itertools import groupby
from math import inf
from typing import Any

from lakebed.errors import InvalidError, SumTooLargeError
from lakebed.model.group_ages import GroupAges, group_ages
from lakebed.model.predicates.language import (
    And,
    Compare,
    In,
    IsNotNull,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
)
from lakebed.model.predicates.literals import INTEGER_BITS, UNSIGNED_BITS, integer_range
from lakebed.model.processing import Latest, ProcessingPass, age_off_limit, fold_of
from lakebed.model.schema import Field, Schema
from lakebed.model.types import Decimal as DecimalType
from lakebed.model.types import MapOf, Primitive, Type

Row = tuple[Any, ...]
DECIMAL_DIGITS = 80
"""More than a sum of decimals has."""
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class TupleWork:
    """One pass of rows through a table's processing."""

    def __init__(self, schema: Schema, given: ProcessingPass) -> None:
        self._schema = schema
        self._given = given
        self._ages = group_ages(given, schema)
        self._indices = {field.name: index for index, field in enumerate(schema.fields)}
        if given.processing.iterator is not None:
            raise InvalidError("an iterator takes Arrow batches", hint="keep rows in Parquet")

    def selected(self, rows: Iterable[Row]) -> list[Row]:
        """Return the rows that are not left out; at ingest, as groups of one."""
        kept = [row for row in rows if self._is_kept(row)]
        aggregate = self._given.processing.aggregate
        if self._given.stage != "ingest" or aggregate is None:
            return kept
        return [self._aggregated([self._counted(row, aggregate)], aggregate) for row in kept]

    def merged(self, keyed: Iterable[tuple[bytes, Row]]) -> Iterator[tuple[bytes, Row]]:
        """Yield what becomes of rows that are sorted by their encoded keys, with these keys."""
        processing = self._given.processing
        for key, pairs in groupby(keyed, key=operator.itemgetter(0)):
            rows = [row for _, row in pairs]
            if processing.aggregate is not None and self._ages is not None:
                rows = self._aged_groups(rows, processing.aggregate, self._ages)
            elif processing.aggregate is not None:
                rows = [self._aggregated(rows, processing.aggregate)]
            elif processing.latest is not None:
                rows = self._latest(rows, processing.latest)
            yield from ((key, row) for row in rows)

    def _aged_groups(
        self, rows: list[Row], aggregate: Mapping[str, str], ages: GroupAges
    ) -> list[Row]:
        """Return what becomes of the rows of a key, where groups age."""
        index = self._indices[ages.field]
        steps: dict[int, list[Row]] = {}
        for row in rows:
            steps.setdefault(row[index] // ages.step, []).append(row)
        if not ages.is_query and not ages.is_whole:
            return [self._aggregated(steps[step], aggregate) for step in sorted(steps)]
        aged_groups: list[list[Row]] = []
        before: int | None = None
        for step in sorted(steps):
            is_apart = not ages.is_query and step > ages.last
            if before is None or step > before + 1 or is_apart:
                aged_groups.append([])
            aged_groups[-1] += steps[step]
            before = step
        if ages.is_query:
            shown = [g for g in aged_groups if max(row[index] for row in g) >= ages.limit]
            return [self._aggregated([row for g in shown for row in g], aggregate)] if shown else []
        merged = [self._aggregated(aged_group, aggregate) for aged_group in aged_groups]
        return [row for row in merged if row[index] // ages.step >= ages.oldest]

    def _is_kept(self, row: Row) -> bool:
        processing = self._given.processing
        if processing.age_off is not None and (self._ages is None or self._given.stage == "ingest"):
            limit = age_off_limit(processing.age_off, self._schema, self._given.at)
            value = self._value(row, processing.age_off.field)
            if value is not None and value < limit:
                return False
        latest = processing.latest
        is_delete = latest is not None and latest.delete and self._value(row, latest.delete)
        return bool(processing.filter is None or is_delete or self._test(processing.filter, row))

    def _test(self, predicate: Predicate, row: Row) -> bool | None:
        match predicate:
            case Compare(name, comparison, wanted):
                value = self._value(row, name)
                return None if value is None else _COMPARE[comparison](value, wanted)
            case In(name, values):
                value = self._value(row, name)
                return None if value is None else value in values
            case Like():
                raise AssertionError("a table's filter has no patterns")
            case IsNull(name):
                return self._value(row, name) is None
            case IsNotNull(name):
                return self._value(row, name) is not None
            case And(parts):
                found = {self._test(part, row) for part in parts}
                return False if False in found else None if None in found else True
            case Or(parts):
                found = {self._test(part, row) for part in parts}
                return True if True in found else None if None in found else False
            case Not(part):
                inner = self._test(part, row)
                return None if inner is None else not inner

    def _counted(self, row: Row, aggregate: Mapping[str, str]) -> Row:
        counts = {name for name, text in aggregate.items() if fold_of(text).function == "count"}
        return tuple(
            1 if field.name in counts else value
            for field, value in zip(self._schema.fields, row, strict=True)
        )

    def _aggregated(self, rows: list[Row], aggregate: Mapping[str, str]) -> Row:
        chosen: dict[str, Row] = {}
        for text in set(aggregate.values()):
            fold = fold_of(text)
            if fold.by is not None:
                names = [f.name for f in self._schema.values if aggregate[f.name] == text]
                chosen[text] = self._pick(rows, fold.by, names, first=fold.function == "first")
        found = list(rows[0])
        for field in self._schema.values:
            text, index = aggregate[field.name], self._indices[field.name]
            if text in chosen:
                found[index] = chosen[text][index]
            else:
                function = fold_of(text).function.replace("count", "sum")
                found[index] = folded([row[index] for row in rows], function, field, field.type)
        return tuple(found)

    def _pick(self, rows: list[Row], by: str, names: list[str], *, first: bool) -> Row:
        def order(row: Row) -> Any:  # noqa: ANN401 - a key to sort by
            sequence = self._value(row, by)
            return -sequence if first else sequence, [in_order(self._value(row, n)) for n in names]

        return max(rows, key=order)

    def _latest(self, rows: list[Row], latest: Latest) -> list[Row]:
        values = sorted(self._schema.values, key=lambda field: field.number)
        names = [latest.delete] if latest.delete is not None else []
        names += [f.name for f in values if f.name not in (latest.sequence, latest.delete)]
        row = self._pick(rows, latest.sequence, names, first=False)
        hidden = self._given.stage == "query" and latest.delete is not None
        return [] if hidden and self._value(row, str(latest.delete)) else [row]

    def _value(self, row: Row, name: str) -> Any:  # noqa: ANN401 - of any type
        return row[self._indices[name]]


def folded(values: list[Any], function: str, field: Field, type_: Type) -> object:
    """Return the sum, least or greatest of values that are not null; null if there are none."""
    given = [value for value in values if value is not None]
    if not given:
        return None
    if isinstance(type_, MapOf):
        lists: dict[Any, list[Any]] = {}
        for key, value in (entry for one in given for entry in one):
            lists.setdefault(key, []).append(value)
        return [(k, folded(lists[k], function, field, type_.value)) for k in sorted(lists)]
    if function != "sum":
        return (min if function == "min" else max)(given, key=in_order)
    with localcontext(prec=DECIMAL_DIGITS):
        total = sum(given)
    least, most = _limits(type_)
    if total < least or total > most:
        raise SumTooLargeError("a sum does not fit its field", field=field.name, type=type_)
    return total


def _limits(type_: Type) -> tuple[Any, Any]:
    """Return the least and the greatest sum that a type holds."""
    if isinstance(type_, DecimalType):
        most = Decimal(f"{'9' * type_.precision}e-{type_.scale}")
        return most.copy_negate(), most  # `-most` has the digits of the context
    if isinstance(type_, Primitive) and type_.name in (*INTEGER_BITS, *UNSIGNED_BITS):
        return integer_range(type_.name)
    return -inf, inf


def in_order(value: Any) -> Any:  # noqa: ANN401 - of any type
    """Return what sorts as values of one type do everywhere: null first, floats by their bits."""
    match value:
        case None:
            return (0,)
        case float():
            bits = struct.unpack(">q", struct.pack(">d", value))[0]
            return (1, bits if bits >= 0 else bits ^ ((1 << 63) - 1))
        case list() | tuple():
            return (1, [in_order(one) for one in value])
        case dict():
            return (1, [in_order(one) for one in value.values()])
        case str():
            return (1, value.encode())
        case bool() | int() | bytes() | Decimal():
            return (1, value)
        case _:
            raise AssertionError(f"no value of a row: {value!r}")
