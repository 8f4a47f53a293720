"""Predicates keep the rows that DuckDB keeps when it reads the same text as SQL."""

import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakebed import field, predicate_from_json, predicate_from_text, schema_of
from lakebed.model.predicates.language import checked_predicate, predicate_json
from lakebed.processing.predicate_masks import kept, mask_of
from lakebed.sorted_files.format.arrow_schema import arrow_schema

SCHEMA = schema_of(
    row_keys={"id": "int64"},
    values={
        "small": "int8?",
        "real": "float64?",
        "text": "string?",
        "flag": "bool?",
        "day": "date32?",
        "at": "timestamp[us, UTC]?",
        "hour": "time64[us]?",
        "price": "decimal128(38,2)?",
        "or": "string?",
    },
)
_TEXTS = ["", "a", "a'b", "\xe9", "or"]
_DOMAINS: dict[str, list[Any]] = {
    "small": [-128, -1, 0, 1, 127],
    "real": [-1.5, -0.0, 0.0, 0.25, 1e300, float("inf")],
    "text": _TEXTS,
    "flag": [True, False],
    "day": [date(2013, 1, 1) + timedelta(days=n) for n in (-99_999, 0, 1)],
    "at": [datetime(2013, 1, 1, tzinfo=UTC) + timedelta(microseconds=n) for n in (-1, 0, 10**15)],
    "hour": [time(0), time(5, 0, 0, 1)],
    "price": [Decimal("-0.01"), Decimal("4.50"), Decimal("1" + 35 * "0")],
    "or": _TEXTS,
}
_COLUMNS = {n: st.none() | st.sampled_from(v) for n, v in _DOMAINS.items()}
ROWS = st.lists(st.fixed_dictionaries(_COLUMNS), max_size=12)


def _literal(value: Any) -> str:  # noqa: ANN401  of any type
    if isinstance(value, bool | int | float):
        return "1e999" if value == float("inf") else repr(value).lower()
    text = str(value).replace("'", "''")
    return f"'{text}'"


@st.composite
def _tests(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(sorted(_DOMAINS)))
    shown = f'"{name}"' if name in ("or", "at") else name
    values = st.sampled_from(_DOMAINS[name]).map(_literal)
    signs = ["=", "!=", "<>"] if name == "flag" else ["=", "==", "!=", "<", "<=", ">", ">="]
    patterns = st.text(st.sampled_from("a\xe9%_'r!\\"), max_size=4).map(_literal)
    kinds = ["compare", "in", "null", "between"] + ["like"] * (name in ("text", "or"))
    match draw(st.sampled_from(kinds)):
        case "between" if name != "flag":
            sign = draw(st.sampled_from(["between", "NOT BETWEEN"]))
            return f"{shown} {sign} {draw(values)} and {draw(values)}"
        case "like":
            sign = draw(st.sampled_from(["like", "NOT Like"]))
            pattern = draw(patterns)
            escapes = "!" in pattern and not pattern.replace("!!", "").endswith("!'")
            return f"{shown} {sign} {pattern}{' escape ' + repr('!') if escapes else ''}"
        case "compare":
            return f"{shown} {draw(st.sampled_from(signs))} {draw(values)}"
        case "in":
            some = ", ".join(draw(st.lists(values, min_size=1, max_size=3)))
            return f"{shown} {draw(st.sampled_from(['in', 'NOT IN']))} ({some})"
        case _:
            return f"{shown} {draw(st.sampled_from(['is null', 'Is Not Null']))}"


TEXTS = st.recursive(
    _tests(),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(" and ".join),
        st.lists(inner, min_size=2, max_size=3).map(" OR ".join),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"not ({text})"),
    ),
    max_leaves=6,
)


def _batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    numbered = [row | {"id": place} for place, row in enumerate(rows)]
    return pa.RecordBatch.from_pylist(numbered, schema=arrow_schema(SCHEMA))


@given(text=TEXTS, rows=ROWS, skip=st.integers(0, 3))
def test_a_predicate_keeps_what_sql_keeps(text: str, rows: list[dict[str, Any]], skip: int) -> None:
    batch = _batch(rows).slice(skip)
    predicate = checked_predicate(predicate_from_text(text), SCHEMA)
    table = pa.Table.from_batches([batch])
    connection = duckdb.connect()
    connection.register("given_rows", table)
    query = f"SELECT id FROM given_rows WHERE {text.replace('1e999', 'CAST(1e999 AS DOUBLE)')}"
    wanted = sorted(row[0] for row in connection.execute(query).fetchall())
    connection.close()
    assert kept(batch, predicate).column("id").to_pylist() == wanted


@given(text=TEXTS, rows=ROWS)
def test_text_json_and_the_checked_form_mean_the_same(
    text: str, rows: list[dict[str, Any]]
) -> None:
    batch = _batch(rows)
    predicate = checked_predicate(predicate_from_text(text), SCHEMA)
    as_json = json.loads(json.dumps(predicate_json(predicate, SCHEMA)))
    again = checked_predicate(predicate_from_json(as_json), SCHEMA)
    assert again == predicate
    assert mask_of(batch, again).equals(mask_of(batch, predicate))


@given(rows=ROWS)
def test_python_builds_the_same_as_text(rows: list[dict[str, Any]]) -> None:
    built = (field("small") >= 0) & ~(field("text") == "a") | field("day").is_in(
        [date(2013, 1, 1), 15_707]
    )
    built = built & field("real").between(-1, 2) | field("text").like("_%") & ~field(
        "or"
    ).starts_with("a'")
    text = (
        "(small >= 0 and not text = 'a' or day in ('2013-01-01', date '2013-01-02'))"
        " and real between -1 and 2 or text like '_%' and \"or\" NOT LIKE 'a''%'"
    )
    built, typed = (checked_predicate(p, SCHEMA) for p in (built, predicate_from_text(text)))
    batch = _batch(rows)
    assert kept(batch, built).equals(kept(batch, typed))
