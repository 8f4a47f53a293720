"""Strategies: schemas, rows and conditions, and the plain filter that tells what is right."""

import datetime
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from lakebed.model.keys import encode_key, key_value, least_key
from lakebed.model.predicates import language as tests_of
from lakebed.model.predicates.language import Predicate, checked_predicate
from lakebed.model.ranges import EVERYTHING, Range
from lakebed.model.schema import Schema, schema_of
from lakebed.model.types import ListOf, MapOf, StructOf, type_of, widens
from lakebed.processing.predicate_masks import mask_of
from lakebed.sorted_files.format.arrow_schema import arrow_schema

Row = dict[str, Any]
LONG = "p" * 24
"""As long as the bounds that the state keeps of a key: what follows is cut off there."""

_DAY = datetime.date(2013, 1, 1)
_TIME = datetime.datetime(2013, 1, 1, tzinfo=datetime.UTC)
_TEXTS = ["", "\x00", "\x00\x00", "a", "a\x00", "ab", "b", "\xe9", "\U0001f600", LONG, LONG + "a"]
_DOMAINS: dict[str, list[Any]] = {
    "int32": [-(2**31), -257, -1, 0, 1, 255, 256, 2**31 - 1],
    "int64": [-(2**63), -(2**32), -1, 0, 1, 255, 256, 2**63 - 1],
    "string": [*_TEXTS, LONG + "b"],
    "binary": [*(t.encode() for t in _TEXTS), b"\xff", b"\xff" * 30, b"\xff\x00"],
    "date32": [_DAY + datetime.timedelta(days=d) for d in (-40_000, -1, 0, 1, 30_000)],
    "timestamp[us, UTC]": [
        _TIME + datetime.timedelta(microseconds=n) for n in (-(10**16), -1, 0, 1, 10**15)
    ],
}
_VALUES: dict[str, tuple[object, st.SearchStrategy[Any]]] = {
    "number": ("int64?", st.none() | st.integers(-(2**63), 2**63 - 1)),
    "real": ("float64?", st.none() | st.floats()),
    "small": ("int8?", st.none() | st.integers(-(2**7), 2**7 - 1)),
    "single": ("float32?", st.none() | st.floats(width=32)),
    "price": ("decimal128(5,2)?", st.none() | st.decimals(-999, 999, places=2)),
    "text": ("string?", st.none() | st.sampled_from(_TEXTS)),
    "list": ({"list": "int32"}, st.lists(st.none() | st.integers(-9, 9), max_size=3)),
    "map": (
        {"map": ["string", "int64"]},
        st.dictionaries(st.sampled_from("abc"), st.integers(0, 9), max_size=2).map(
            lambda d: list(d.items())
        ),
    ),
    "struct": (
        {"struct": [{"name": "x", "type": "bool"}, {"name": "y", "type": {"list": "string"}}]},
        st.fixed_dictionaries(
            {
                "x": st.none() | st.booleans(),
                "y": st.none() | st.lists(st.sampled_from(["", "z"]), max_size=2),
            }
        ),
    ),
}

_WIDE: dict[str, st.SearchStrategy[Any]] = {
    "int16": st.none() | st.integers(-(2**15), 2**15 - 1),
    "int32": st.none() | st.integers(-(2**31), 2**31 - 1),
    "int64": _VALUES["number"][1],
    "float64": _VALUES["real"][1],
    "decimal128(9,4)": st.none() | st.decimals(-99_999, 99_999, places=4),
}
_BY_TYPE = _WIDE | {
    str(field.type): strategy
    for kind, strategy in _VALUES.values()
    for field in schema_of(row_keys={"k": "int32"}, values={"v": kind}).values
}


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    kinds = st.lists(st.sampled_from(sorted(_DOMAINS)), min_size=1, max_size=3)
    row_keys = {f"k{place}": kind for place, kind in enumerate(draw(kinds))}
    sort_kinds = st.lists(st.sampled_from(sorted(_DOMAINS)), max_size=2)
    sort_keys = {f"s{place}": kind for place, kind in enumerate(draw(sort_kinds))}
    names = draw(st.lists(st.sampled_from(sorted(_VALUES)), unique=True, max_size=3))
    return schema_of(
        row_keys=row_keys, sort_keys=sort_keys, values={name: _VALUES[name][0] for name in names}
    )


def key_values(schema: Schema, field: str) -> list[Any]:
    return _DOMAINS[str(schema.field(field).type)]


def rows(schema: Schema, *, rows_max: int = 40) -> st.SearchStrategy[list[Row]]:
    columns = {f.name: st.sampled_from(key_values(schema, f.name)) for f in schema.key_fields}
    columns |= {
        f.name: values if f.nullable else values.filter(lambda value: value is not None)
        for f in schema.values
        for values in [_BY_TYPE[str(f.type)]]
    }
    return st.lists(st.fixed_dictionaries(columns), min_size=1, max_size=rows_max)


def arrow(schema: Schema, given: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(given), schema=arrow_schema(schema))


@st.composite
def field_changes(draw: st.DrawFn, schema: Schema) -> dict[str, Any]:
    """Return arguments of `Table.change_fields` that are allowed; perhaps none."""
    some = draw(st.lists(st.sampled_from(schema.fields), unique=True, max_size=2))
    taken = {field.name for field in schema.fields}
    names = [name for name in (*_VALUES, "a", "b", "k0", "K9", "s0") if name not in taken]
    new = iter(draw(st.permutations(names)))
    changes: dict[str, Any] = {"add": {}, "rename": {}, "drop": [], "widen": {}}
    for field in some:
        wider = [name for name in _WIDE if widens(field.type, type_of(name))]
        match draw(st.sampled_from(["rename", "drop", "widen"])):
            case "drop" if field in schema.values:
                changes["drop"].append(field.name)
            case "widen" if field in schema.values and wider:
                changes["widen"][field.name] = draw(st.sampled_from(wider))
            case _:
                changes["rename"][field.name] = next(new)
    if draw(st.booleans()):
        freed = [*changes["drop"], *changes["rename"]]
        name = draw(st.sampled_from([next(new), *freed]))
        changes["add"][name] = draw(st.sampled_from([kind for kind, _ in _VALUES.values()]))
    return {what: asked for what, asked in changes.items() if asked}


def with_changes(given: Sequence[Row], changes: Mapping[str, Any]) -> list[Row]:
    """Return the rows as they are after these changes of fields."""
    renamed, dropped = changes.get("rename", {}), changes.get("drop", ())
    kept = [
        {renamed.get(name, name): value for name, value in row.items() if name not in dropped}
        for row in given
    ]
    return [row | dict.fromkeys(changes.get("add", ())) for row in kept]


@st.composite
def split_points(draw: st.DrawFn, schema: Schema) -> list[Any]:
    values = key_values(schema, schema.row_keys[0].name)
    chosen = draw(st.sets(st.sampled_from(range(len(values))), max_size=3))
    field = schema.row_keys[0]
    points = {
        encode_key([field], [key_value(field, values[place])]): values[place] for place in chosen
    }
    least = least_key(schema.row_keys, EVERYTHING.min)
    return [points[encoded] for encoded in sorted(points) if encoded > least]


@st.composite
def ranges(draw: st.DrawFn, schema: Schema) -> dict[str, Range]:
    """Return ranges of some row key fields; the ends of each are in order."""
    found = {}
    for field in schema.row_keys:
        if draw(st.booleans()):
            ends = st.none() | st.sampled_from(key_values(schema, field.name))
            least, most = draw(ends), draw(ends)
            if least is not None and most is not None and most < least:
                least, most = most, least
            found[field.name] = Range(least, most, draw(st.booleans()), draw(st.booleans()))
    return found


@st.composite
def keys(draw: st.DrawFn, schema: Schema) -> tuple[Any, ...]:
    """Return an exact key, or the first values of one."""
    count = draw(st.integers(1, len(schema.row_keys)))
    fields = schema.row_keys[:count]
    return tuple(draw(st.sampled_from(key_values(schema, f.name))) for f in fields)


@st.composite
def predicates(draw: st.DrawFn, schema: Schema, given: Sequence[Row]) -> Predicate:
    """Return a predicate on any fields, with values that rows have, or nearly have."""
    tests = []
    for _ in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from([f.name for f in schema.fields]))
        on = tests_of.field(name)
        there = {repr(row[name]): row[name] for row in given if row[name] is not None}
        there.pop("nan", None)
        values = list(there.values())
        if values and not isinstance(schema.field(name).type, ListOf | MapOf | StructOf):
            value = draw(st.sampled_from(values))
            kinds = [on == value, on != value, on < value, on <= value, on > value, on >= value]
            kinds.append(on.is_in([value, draw(st.sampled_from(values))]))
            tests.append(draw(st.sampled_from([*kinds, on.is_null(), on.is_not_null()])))
        else:
            tests.append(draw(st.sampled_from([on.is_null(), on.is_not_null()])))
    found: Predicate = tests[0]
    for test in tests[1:]:
        found = found & test if draw(st.booleans()) else found | test
    return ~found if draw(st.booleans()) else found


def kept_rows(schema: Schema, given: Sequence[Row], where: Predicate) -> list[Row]:
    """Return the rows that a predicate keeps, tested row by row outside of any file."""
    if not given:
        return []
    (batch,) = arrow(schema, given).combine_chunks().to_batches()
    mask = mask_of(batch, checked_predicate(where, schema)).to_pylist()
    return [row for row, is_kept in zip(given, mask, strict=True) if is_kept]


def in_ranges(row: Row, wanted: Mapping[str, Range]) -> bool:
    return all(_inside(row[name], range_) for name, range_ in wanted.items())


def has_key(schema: Schema, row: Row, key: tuple[Any, ...]) -> bool:
    return all(row[f.name] == value for f, value in zip(schema.row_keys, key, strict=False))


def _inside(value: Any, r: Range) -> bool:  # noqa: ANN401  a key value of any type
    if r.min is not None and (value < r.min or (value == r.min and not r.min_inclusive)):
        return False
    return r.max is None or value < r.max or (value == r.max and r.max_inclusive)


def sort_key(schema: Schema, row: Row) -> bytes:
    fields = schema.key_fields
    return encode_key(fields, [key_value(f, row[f.name]) for f in fields])


def bag(found: Sequence[Row]) -> list[str]:
    """Return rows as a multiset that can be compared; NaN is NaN."""
    return sorted(repr([(name, _shown(row[name])) for name in sorted(row)]) for row in found)


def _shown(value: Any) -> Any:  # noqa: ANN401  a value of any type
    """UTC has several names, members of a struct several orders, a widened decimal more noughts."""
    if isinstance(value, dict):
        return sorted(value.items())
    if isinstance(value, Decimal):
        return value.normalize()
    return value.isoformat() if isinstance(value, datetime.datetime) else value
