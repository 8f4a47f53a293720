"""Strategies: tables with processing, rows for them, and the plain model that tells what is right.

Rows are tuples of the values that are compared: times are numbers. The model looks at all rows at
once; what is tested sees them in parts, in any order.
"""

import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import strategies as st

from lakebed import AgeOff, Latest, Processing, field, schema_of
from lakebed.backends.memory.row_layout import RowLayout
from lakebed.backends.memory.row_processing import Row, TupleWork
from lakebed.model.names import Micros
from lakebed.model.predicates.language import Predicate
from lakebed.model.processing import ProcessingPass, checked_processing
from lakebed.model.schema import Schema
from lakebed.sorted_files.format.arrow_schema import arrow_schema

DAY = 86_400
TIMES = [DAY * 1_000_000 * day for day in range(6)]
_STRINGS = st.sampled_from(["", "\x00", "a", "ab", "b", "\xe9"])
_SMALL = st.integers(-5, 5)
_EXACT = st.sampled_from([-1.5, 0.0, 0.25, 4.0, 1e9])
_MAPS = st.lists(st.tuples(st.sampled_from("cab"), st.none() | _SMALL), max_size=3)
_LISTS = st.lists(st.none() | _SMALL, max_size=2)
_STRUCTS = st.tuples(st.none() | _SMALL, st.none() | _STRINGS).map(
    lambda pair: {"x": pair[0], "y": pair[1]}
)
_SUMMED = ["sum", "min", "max"]
_VALUES: dict[str, tuple[object, st.SearchStrategy[Any], list[str]]] = {
    "number": ("int64?", st.none() | _SMALL, _SUMMED),
    "tiny": ("uint8", st.integers(0, 3), _SUMMED),
    "real": ("float64?", st.none() | _EXACT, _SUMMED),
    "single": ("float32?", st.none() | _EXACT, _SUMMED),
    "price": (
        "decimal128(38,2)?",
        st.none() | st.sampled_from([Decimal("-1.05"), Decimal("0.10"), Decimal("7" * 33)]),
        _SUMMED,
    ),
    "text": ("string?", st.none() | _STRINGS, ["min", "max"]),
    "raw": ("binary", _STRINGS.map(str.encode), ["min", "max"]),
    "flag": ("bool?", st.none() | st.booleans(), ["min", "max"]),
    "map": ({"map": ["string", "int64"]}, _MAPS, _SUMMED),
    "list": ({"list": "int32"}, _LISTS, []),
    "pair": (
        {"struct": [{"name": "x", "type": "int8"}, {"name": "y", "type": "string"}]},
        _STRUCTS,
        [],
    ),
    "rows": ("int64", st.just(0), ["count"]),
}


class Made(NamedTuple):
    """A table to be, and what its rows are like."""

    schema: Schema
    processing: Processing
    rows: st.SearchStrategy[Row]


@st.composite
def tables(draw: st.DrawFn) -> Made:
    kind = draw(st.sampled_from(["filters", "aggregate", "latest", "deletes"]))
    keys = {"id": draw(st.sampled_from(["int64", "string"])), "at": "timestamp[us, UTC]"}
    names = draw(st.lists(st.sampled_from(sorted(_VALUES)), unique=True, max_size=5))
    values = {name: _VALUES[name][0] for name in names}
    types: dict[str, st.SearchStrategy[Any]] = {n: _VALUES[n][1] for n in names}
    values |= {"early": "int32", "late": "date32", "gone": "bool?"}
    types |= {
        "id": st.integers(0, 3) if keys["id"] == "int64" else st.sampled_from(["a", "b", "b\x00"]),
        "at": st.sampled_from(TIMES),
        "early": st.integers(-2, 2),
        "late": st.integers(0, 5),
        "gone": st.none() | st.booleans(),
    }
    row_keys, sort_keys = keys, {}
    if draw(st.booleans()):
        row_keys, sort_keys = {"id": keys["id"]}, {"at": keys["at"]}
    schema = schema_of(row_keys=row_keys, sort_keys=sort_keys, values=values)
    processing = draw(_processings(kind, names))
    columns = [types[f.name] for f in schema.fields]
    return Made(schema, checked_processing(processing, schema), st.tuples(*columns))


@st.composite
def _processings(draw: st.DrawFn, kind: str, names: Sequence[str]) -> Processing:
    filters: list[Predicate] = [field("at") != TIMES[1]]
    if kind != "aggregate":
        filters += [(field("early") > -2) | field("gone").is_null()]
    filter_ = draw(st.none() | st.sampled_from(filters))
    ages = [AgeOff("at", 2 * DAY)]
    ages += [AgeOff("late", 2 * DAY)] if kind != "aggregate" else []
    age_off = draw(st.none() | st.sampled_from(ages))
    if kind == "filters":
        return Processing(filter=draw(st.sampled_from(filters)), age_off=age_off)
    if kind == "latest":
        return Processing(filter=filter_, age_off=age_off, latest=Latest("late"))
    if kind == "deletes":
        return Processing(filter=filter_, age_off=age_off, latest=Latest("late", delete="gone"))
    ordered = ["first by early", "last by late"]
    functions = {n: draw(st.sampled_from([*_VALUES[n][2], *ordered])) for n in names}
    functions |= {"early": "min", "late": "max", "gone": draw(st.sampled_from(["max", *ordered]))}
    return Processing(filter=filter_, age_off=age_off, aggregate=functions)


def expected(made: Made, rows: Sequence[Row], at: int) -> list[Row]:
    """Return what a query gives at an instant, by the plain model, from all rows at once."""
    layout = RowLayout(made.schema)
    taken = TupleWork(made.schema, ProcessingPass(made.processing, Micros(at), "ingest"))
    keyed = sorted(
        ((layout.key(row), row) for row in taken.selected(rows)), key=lambda pair: pair[0]
    )
    asked = TupleWork(made.schema, ProcessingPass(made.processing, Micros(at), "query"))
    return [row for _, row in asked.merged(keyed)]


def to_arrow(schema: Schema, rows: Sequence[Row]) -> pa.RecordBatch:
    columns = []
    for place, column in enumerate(arrow_schema(schema)):
        values = [row[place] for row in rows]
        plain = _plain(column.type)
        columns.append(
            pa.array(values, plain).view(column.type) if plain else _array(values, column)
        )
    return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(schema))


def to_rows(batches: Sequence[pa.RecordBatch]) -> list[Row]:
    found: list[Row] = []
    for batch in batches:
        columns = [c.view(_plain(c.type)) if _plain(c.type) else c for c in batch.columns]
        found += zip(*(column.to_pylist() for column in columns), strict=True)
    return found


def bag(rows: Sequence[Row]) -> list[str]:
    """Return rows as a multiset that can be compared."""
    return sorted(repr([_shown(value) for value in row]) for row in rows)


def _shown(value: Any) -> Any:  # noqa: ANN401  of any type
    if isinstance(value, dict):
        return sorted(value.items())
    if isinstance(value, float):
        return struct.pack(">d", value + 0.0)  # -0.0 is 0.0
    return value.as_integer_ratio() if isinstance(value, Decimal) else value


def _array(values: list[Any], column: pa.Field) -> pa.Array:
    return pa.array(values, column.type)


def _plain(type_: pa.DataType) -> pa.DataType | None:
    if not pa.types.is_temporal(type_):
        return None
    return pa.int32() if type_.bit_width == 32 else pa.int64()
