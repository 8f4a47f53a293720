"""Strategies: statements of SQL over a table, with values that its rows have, or nearly have."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from lakebed.model.schema import Field, Schema
from lakebed.model.types import ListOf, MapOf, StructOf
from tests.properties.tables import Row, key_values

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "is distinct from", "is not distinct from")


class Statement(NamedTuple):
    """text: over a table that is called `t`. is_ordered: equal answers have their rows in one
    order."""

    text: str
    parameters: list[Any]
    is_ordered: bool = False


@st.composite
def statements(draw: st.DrawFn, schema: Schema, rows: Sequence[Row]) -> Statement:
    """Return a SELECT that has one answer, but for the order of rows where it says so."""
    where, parameters = draw(_wheres(schema, rows))
    plain = [field for field in schema.fields if not is_nested(field)]
    match draw(st.sampled_from(["rows", "first", "groups", "all in one", "distinct", "pairs"])):
        case "rows":
            some = draw(st.lists(st.sampled_from(schema.fields), unique=True, min_size=1))
            return Statement(f"select {_names(some)} from t{where}", parameters)
        case "first":
            some = draw(st.lists(st.sampled_from(plain), unique=True, min_size=1))
            down = draw(st.sampled_from(["", " desc nulls last"]))
            order = ", ".join(f'"{field.name}"{down}' for field in some)
            limit = f"limit {draw(st.integers(0, 12))} offset {draw(st.integers(0, 3))}"
            text = f"select {_names(some)} from t{where} order by {order} {limit}"
            return Statement(text, parameters, is_ordered=True)
        case "groups":
            by = draw(st.lists(st.sampled_from(plain), unique=True, min_size=1, max_size=2))
            having = draw(st.sampled_from(["", " having count(*) > 1"]))
            made = f"{_names(by)}, {draw(_aggregates(schema))}"
            text = f"select {made} from t{where} group by {_names(by)}{having}"
            return Statement(text, parameters)
        case "all in one":
            return Statement(f"select {draw(_aggregates(schema))} from t{where}", parameters)
        case "distinct":
            some = draw(st.lists(st.sampled_from(plain), unique=True, min_size=1, max_size=2))
            return Statement(f"select distinct {_names(some)} from t{where}", parameters)
        case _:
            key = schema.row_keys[0].name
            inner = f'select "{key}" from t{where}'
            text = f'select count(*) from t join ({inner}) u on t."{key}" = u."{key}"'
            return Statement(text, parameters)


def is_nested(field: Field) -> bool:
    return isinstance(field.type, ListOf | MapOf | StructOf)


def _names(fields: Sequence[Field]) -> str:
    return ", ".join(f'"{field.name}"' for field in fields)


@st.composite
def _aggregates(draw: st.DrawFn, schema: Schema) -> str:
    """Return some of which each has one value, in whatever order rows come."""
    found = ["count(*)"]
    for field in draw(st.lists(st.sampled_from(schema.fields), unique=True, max_size=3)):
        name, kind = f'"{field.name}"', str(field.type)
        found.append(f"count({name})")
        if not is_nested(field):
            found += [f"min({name})", f"max({name})", f"count(distinct {name})"]
        if kind.startswith(("int", "decimal")):
            found.append(f"sum({name})")
    return ", ".join(found)


@st.composite
def _wheres(draw: st.DrawFn, schema: Schema, rows: Sequence[Row]) -> tuple[str, list[Any]]:
    count = draw(st.integers(0, 3))
    if not count:
        return "", []
    text, parameters = draw(_tests(schema, rows))
    for _ in range(count - 1):
        other, more = draw(_tests(schema, rows))
        text = f"{text} {draw(st.sampled_from(['and', 'and', 'or']))} {other}"
        parameters += more
    return f" where {text}", parameters


@st.composite
def _tests(draw: st.DrawFn, schema: Schema, rows: Sequence[Row]) -> tuple[str, list[Any]]:
    field = draw(st.sampled_from([*schema.row_keys, *schema.fields]))
    name, values = f'"{field.name}"', _values(schema, field, rows)
    if not values or draw(st.integers(0, 6)) == 0:
        return f"{name} is {draw(st.sampled_from(['', 'not ']))}null", []
    one, other = draw(st.sampled_from(values)), draw(st.sampled_from(values))
    no = draw(st.sampled_from(["", "", "not "]))
    match draw(st.sampled_from(["compare", "compare", "in", "between", "like"])):
        case "in":
            return f"{no}{name} in (?, ?)", [one, other]
        case "between":
            return f"{no}{name} between ? and ?", [one, other]
        case "like" if str(field.type) == "string":
            return f"{no}{name} like ?", [one[:1].replace("%", "") + "%"]
        case _:
            return f"{no}({name} {draw(st.sampled_from(_COMPARISONS))} ?)", [one]


def _values(schema: Schema, field: Field, rows: Sequence[Row]) -> list[Any]:
    if field in schema.key_fields:
        return key_values(schema, field.name)
    found = [] if is_nested(field) else [row[field.name] for row in rows]
    return list({repr(value): value for value in found if value is not None}.values())[:8]
