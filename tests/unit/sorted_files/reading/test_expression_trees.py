"""Which forms of Arrow's expressions are understood, with the Arrow that is installed."""

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakebed import field, schema_of
from lakebed.model.predicates.language import (
    And,
    IsNotNull,
    IsNull,
    Like,
    Or,
    Predicate,
    checked_predicate,
)
from lakebed.query.conditions import condition_of
from lakebed.sorted_files.reading.expressions import trees
from lakebed.sorted_files.reading.expressions.implied import implied_by
from lakebed.sorted_files.reading.expressions.trees import (
    Call,
    FieldRef,
    LiteralValue,
    Unknown,
    tree_of,
)
from lakebed.sorted_files.reading.row_tests import ExpressionTest

SCHEMA = schema_of(
    row_keys={"id": "string", "n": "int64"},
    values={
        "x": "float64?",
        "single": "float32?",
        "flag": "bool?",
        "day": "date32?",
        "at": "timestamp[us, UTC]?",
        "price": "decimal128(9,2)?",
        "s": {"struct": [{"name": "id", "type": "string"}]},
        "na me": "int64?",
    },
)
id_, n_, x_ = pc.field("id"), pc.field("n"), pc.field("x")
f = field
NAN = math.nan
NO_BOOL = pa.scalar(None, pa.bool_())


def engine_in(column: pc.Expression, values: list[Any]) -> pc.Expression:
    """`in` as DuckDB sends it."""
    return pc.if_else(column.is_valid(), column.isin(values), NO_BOOL)


WHOLE: list[tuple[pc.Expression, Predicate]] = [
    (id_ == "x", f("id") == "x"),
    (pc.scalar("x") == id_, f("id") == "x"),
    (pc.scalar("x") < id_, f("id") > "x"),
    ((id_ >= "a") & (id_ <= "c"), f("id").between("a", "c")),
    (id_.isin(["a", "b"]), f("id").is_in(["a", "b"])),
    (engine_in(id_, ["a", "b"]), And((IsNotNull("id"), f("id").is_in(["a", "b"])))),
    (
        (id_ == "a") | (id_ == "b") | (n_ == 3),
        Or((f("id") == "a", f("id") == "b", f("n") == 3)),
    ),
    (~(n_ < 5), ~(f("n") < 5)),
    (~((n_ < 5) & (x_ > 1)), ~(f("n") < 5) | ~(f("x") > 1)),
    (n_ == pc.scalar(5).cast("int32"), f("n") == 5),
    (n_ == 5.0, f("n") == 5),
    (id_ == pa.scalar("x", pa.string_view()), f("id") == "x"),
    (id_ == pa.scalar("x", pa.large_string()), f("id") == "x"),
    (id_.cast(pa.large_string()) == "x", f("id") == "x"),
    (n_.cast("int32") == 5, f("n") == 5),
    (x_ < 0.5, f("x") < 0.5),
    (pc.field("single") >= 0.5, f("single") >= 0.5),
    (pc.field("single") == pa.scalar(0.1, pa.float32()), f("single") == 0.10000000149011612),
    (x_.is_valid(), IsNotNull("x")),
    (n_.is_null(nan_is_null=True), IsNull("n")),
    (~x_.is_null(), IsNotNull("x")),
    (pc.field("s").is_null(), IsNull("s")),
    (pc.field("flag"), f("flag") == True),  # noqa: E712 - makes a test
    (~pc.field("flag"), f("flag") == False),  # noqa: E712 - the same
    (pc.field("day") == pa.scalar(3, pa.int32()).cast(pa.date32()), f("day") == 3),
    (pc.field("at") > pa.scalar(5_000, pa.timestamp("ns", "UTC")), f("at") > 5),
    (pc.field("price") == pa.scalar("4.5").cast(pa.decimal128(3, 1)), f("price") == "4.5"),
    (pc.starts_with(id_, "a%"), Like("id", "a\\%%", "\\")),
    (pc.match_like(id_, "ab%"), Like("id", "ab%", "\\")),
    (pc.ends_with(id_, "ab"), Like("id", "%ab")),
    (pc.field("na me") == 1, f("na me") == 1),
    (id_ == pa.scalar(None, pa.string()), IsNull("id")),
    (n_.isin(pa.array([], pa.int64())), IsNull("id")),
    (pc.scalar(value=True), IsNotNull("id")),
]


@pytest.mark.parametrize(("expression", "wanted"), WHOLE, ids=lambda one: str(one)[:60])
def test_forms_that_are_understood_whole(expression: pc.Expression, wanted: Predicate) -> None:
    assert implied_by(expression, SCHEMA) == (checked_predicate(wanted, SCHEMA), True)


IN_PART: list[tuple[pc.Expression, Predicate]] = [
    ((id_ == "x") & (n_ + 1 == 4), f("id") == "x"),
    (~((id_ != "x") | (n_ + 1 == 4)), ~(f("id") != "x")),
    ((id_ == "x") & (pc.field("s", "id") == "y"), f("id") == "x"),
    (pc.if_else(n_ + 1 == 4, id_ == "x", id_ == "y"), (f("id") == "x") | (f("id") == "y")),
    (n_.isin(list(range(-1, 10_000))), f("n").between(-1, 9_999) | IsNull("n")),
]


@pytest.mark.parametrize(("expression", "wanted"), IN_PART, ids=lambda one: str(one)[:60])
def test_forms_that_are_understood_in_part(expression: pc.Expression, wanted: Predicate) -> None:
    found, _ = implied_by(expression, SCHEMA)
    assert found == checked_predicate(wanted, SCHEMA)


NOTHING = [
    (id_ == "x") | (n_ + 1 == 4),
    n_ + 1 == 4,
    n_ == x_,
    n_ < 2.5,
    x_ == NAN,
    pc.field("single") == 0.1,
    id_ == pa.scalar(b"x"),
    pc.field("s", "id") == "y",
    pc.field("at") == pa.scalar(5, pa.timestamp("ns", "UTC")),
    x_.is_null(nan_is_null=True),
    pc.starts_with(id_, "a", ignore_case=True),
    n_.cast("float64") == 5.0,
    pc.field("nothing") == 5,
]


@pytest.mark.parametrize("expression", NOTHING, ids=lambda one: str(one)[:60])
def test_forms_of_which_nothing_is_known(expression: pc.Expression) -> None:
    assert implied_by(expression, SCHEMA) == (IsNotNull("id"), False)


def test_the_tree_is_that_of_the_expression() -> None:
    match tree_of((id_ == "x") & n_.isin([1, 2])):
        case Call(
            "and_kleene",
            (
                Call("equal", (FieldRef("id"), LiteralValue(literal)), {}),
                Call("is_in", (FieldRef("n"),), options),
            ),
            {},
        ):
            assert literal.to_pylist() == ["x"]
            assert options["value_set"].to_pylist() == [[1, 2]]
        case other:
            pytest.fail(f"another tree: {other}")
    assert tree_of(pc.field(0) == 1) == Unknown()


def test_a_form_that_arrow_does_not_promise_narrows_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for items in (
        [],
        [("call", "equal")],
        [("call", "equal"), ("end", "less")],
        [("call", "equal"), ("field_ref", "id"), ("literal", "7"), ("end", "equal")],
        [("call", "equal"), ("literal", "x"), ("end", "equal")],
        [("literal", "0"), ("literal", "0")],
        [("node", "id")],
        [("call", "invert")] * 5_000,
    ):
        monkeypatch.setattr(trees, "_listed_metadata", lambda _, items=items: items)
        assert tree_of(id_ == "x") == Unknown()
        condition = condition_of(SCHEMA, where=id_ == "x")
        assert condition.reach is None
        assert isinstance(condition.where, ExpressionTest)


def test_an_expression_that_is_deep_or_wide_is_still_one() -> None:
    deep, wide = id_ == "x", id_ == "x"
    for _ in range(500):
        deep = ~~deep
    for number in range(900):
        wide = wide | (n_ == number)
    assert implied_by(deep, SCHEMA) == (None, False)
    found, is_exact = implied_by(wide, SCHEMA)
    assert is_exact
    assert found is not None
    assert condition_of(SCHEMA, where=wide).reach is not None
