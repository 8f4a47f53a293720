"""Reads what an expression of Arrow says, as a predicate.

For each node: of which rows is it true, and of which is it false? A predicate that answers may keep
others as well, where a part of the tree is not understood. So it narrows what is read, and stands
for the expression itself only where all was understood.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidError
from lakebed.model.predicates.language import (
    VALUES_MAX,
    And,
    Compare,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    checked_predicate,
)
from lakebed.model.predicates.patterns import literal_pattern
from lakebed.model.schema import Field, Schema
from lakebed.sorted_files.format.arrow_schema import arrow_type
from lakebed.sorted_files.reading.expressions.texts import text_of
from lakebed.sorted_files.reading.expressions.trees import (
    Call,
    FieldRef,
    LiteralValue,
    Node,
    tree_of,
)
from lakebed.sorted_files.reading.expressions.values import (
    NotComparedError,
    keeps_values,
    values_of,
)

_COMPARISONS: dict[str, tuple[Comparison, Comparison]] = {
    "equal": ("=", "="),
    "not_equal": ("!=", "!="),
    "less": ("<", ">"),
    "less_equal": ("<=", ">="),
    "greater": (">", "<"),
    "greater_equal": (">=", "<="),
}
"""Comparisons of each function: with the field on the left, and on the right."""
_JOINED = {"and_kleene": True, "or_kleene": False}
"""Functions that join parts; true: all parts must hold."""
_AROUND = {"starts_with": ("", "%"), "ends_with": ("%", ""), "match_substring": ("%", "%")}
_UNSAFE = tuple(
    f"allow_{what}"
    for what in (
        *("int_overflow", "time_truncate", "time_overflow"),
        *("decimal_truncate", "float_truncate", "invalid_utf8"),
    )
)
"""Options of a cast that may change a value."""
_MATCH, _SKIP, _EMIT_NULL, _INCONCLUSIVE = range(4)
"""Treatments of nulls by `is_in`: `null_matching_behavior`."""


class ImpliedRows(NamedTuple):
    """Rows of which something holds.

    rows: True: all, as far as is known. False: none.
    is_exact: it holds of no other rows.
    """

    rows: Predicate | bool
    is_exact: bool


_UNKNOWN = ImpliedRows(rows=True, is_exact=False)


def implied_by(expression: pc.Expression, schema: Schema) -> tuple[Predicate | None, bool]:
    """Return a checked predicate that keeps every row which an expression keeps, and whether it
    keeps no others; None: nothing is known."""
    return _implied(tree_of(expression), schema)


def conjuncts_of(
    expression: pc.Expression, schema: Schema
) -> Iterator[tuple[str, Predicate | None]]:
    """Yield each part of an expression all of which must hold: as text for people, and as what it
    says, as `implied_by`."""
    match tree_of(expression):
        case Call("and_kleene") as tree:
            parts = _parts(tree)
        case tree:
            parts = [tree]
    for part in parts:
        yield text_of(part), _implied(part, schema)[0]


def _implied(node: Node, schema: Schema) -> tuple[Predicate | None, bool]:
    try:
        rows, is_exact = _Reader(schema).said(node, wanted=True)
    except RecursionError:
        return None, False
    if isinstance(rows, bool):
        key = schema.row_keys[0].name  # never null
        rows = IsNotNull(key) if rows else IsNull(key)
    try:
        return checked_predicate(rows, schema), is_exact
    except InvalidError:  # too large
        return None, False


class _Reader:
    """Reads nodes of a tree: `wanted`: where they are true; else: where they are false."""

    def __init__(self, schema: Schema) -> None:
        self._fields = {field.name: field for field in schema.fields}

    def said(self, node: Node, *, wanted: bool) -> ImpliedRows:
        try:
            return self._said(node, wanted=wanted)
        except NotComparedError:
            return _UNKNOWN

    def _said(self, node: Node, *, wanted: bool) -> ImpliedRows:
        match node:
            case LiteralValue(array) if _is_truth(array.type):
                truth = array[0].as_py()  # bounded: one value
                return ImpliedRows(truth is wanted, is_exact=True)
            case FieldRef(name) if str(self._field(node).type) == "bool":
                return ImpliedRows(Compare(name, "=", wanted), is_exact=True)
            case Call("invert", (part,)):
                return self.said(part, wanted=not wanted)
            case Call(function) if function in _JOINED:
                found = [self.said(part, wanted=wanted) for part in _parts(node)]
                return _all(found) if _JOINED[function] is wanted else _any(found)
            case Call("if_else", (test, then, other)):
                chosen = (
                    _all([self.said(test, wanted=is_true), self.said(part, wanted=wanted)])
                    for is_true, part in ((True, then), (False, other))
                )
                return _any(list(chosen))
            case Call("is_in", (column,), options):
                return _listed(self._column(column), options, wanted=wanted)
            case Call(function, (one, other)) if function in _COMPARISONS:
                return self._compared(function, one, other, wanted=wanted)
            case Call(function, (FieldRef() as column,), options):
                return self._tested(function, self._field(column), options, wanted=wanted)
            case _:
                return _UNKNOWN

    def _compared(self, function: str, one: Node, other: Node, *, wanted: bool) -> ImpliedRows:
        plain, mirrored = _COMPARISONS[function]
        literal = _literal(other)
        if literal is not None:
            field, comparison = self._column(one), plain
        elif (literal := _literal(one)) is not None:
            field, comparison = self._column(other), mirrored
        else:
            return _UNKNOWN
        if not literal[0].is_valid:
            return ImpliedRows(rows=False, is_exact=True)
        if pa.types.is_boolean(literal.type) and comparison not in ("=", "!="):
            return _UNKNOWN
        (value,) = values_of(literal, field)
        return _of_test(Compare(field.name, comparison, value), wanted=wanted)

    def _tested(
        self, function: str, field: Field, options: dict[str, Any], *, wanted: bool
    ) -> ImpliedRows:
        is_float = pa.types.is_floating(arrow_type(field.type))
        nan_is_null = _option(options, "nan_is_null")
        if function == "is_valid" or (function == "is_null" and not (is_float and nan_is_null)):
            is_there = (function == "is_valid") is wanted
            return ImpliedRows((IsNotNull if is_there else IsNull)(field.name), is_exact=True)
        pattern, escape = _option(options, "pattern"), None
        if str(field.type) != "string" or _option(options, "ignore_case") or pattern is None:
            return _UNKNOWN
        if function in _AROUND:
            before, after = _AROUND[function]
            pattern, escape = literal_pattern(pattern)
            pattern = before + pattern + after
        elif function == "match_like":
            escape = "\\"
        else:
            return _UNKNOWN
        return _of_test(Like(field.name, pattern, escape), wanted=wanted)

    def _column(self, node: Node) -> Field:
        """Return the field that a node gives the values of."""
        match node:
            case Call("cast", (FieldRef() as inner,), options):
                field = self._field(inner)
                unsafe = any(_option(options, name) for name in options if name in _UNSAFE)
                if not unsafe and keeps_values(
                    arrow_type(field.type), _given(options, "to_type").type
                ):
                    return field
                raise NotComparedError
            case FieldRef():
                return self._field(node)
            case _:
                raise NotComparedError

    def _field(self, node: FieldRef) -> Field:
        found = self._fields.get(node.name)
        if found is None:
            raise NotComparedError
        return found


def _is_truth(kind: pa.DataType) -> bool:
    return bool(pa.types.is_boolean(kind) or pa.types.is_null(kind))


def _parts(node: Call) -> list[Node]:
    """Return what a function joins, also through calls of itself: engines nest long lists."""
    found: list[Node] = []
    left: list[Node] = [node]
    while left:
        part = left.pop()
        if isinstance(part, Call) and part.function == node.function:
            left += reversed(part.arguments)
        else:
            found.append(part)
    return found


def _literal(node: Node) -> pa.Array | None:
    """Return the value of a literal, also of one that is cast, as an array of one; None: the node
    is none."""
    match node:
        case LiteralValue(array):
            return array
        case Call("cast", (inner,), options):
            given = _literal(inner)
            try:
                return None if given is None else given.cast(_given(options, "to_type").type)
            except pa.ArrowException:
                raise NotComparedError from None
        case _:
            return None


def _listed(field: Field, options: dict[str, Any], *, wanted: bool) -> ImpliedRows:
    """Return where a value is one of some, or is not."""
    given, nulls = (
        _given(options, "value_set").flatten(),
        _option(options, "null_matching_behavior"),
    )
    if nulls not in range(4):
        raise NotComparedError
    values, has_null, name = values_of(given, field), given.null_count > 0, field.name
    if len(values) > VALUES_MAX:
        between = And((Compare(name, ">=", min(values)), Compare(name, "<=", max(values))))
        null_too = ImpliedRows(IsNull(name), is_exact=False)
        return _any([ImpliedRows(between, is_exact=False), null_too]) if wanted else _UNKNOWN
    found = _of_test(In(name, tuple(values)), wanted=wanted)
    if not values:
        found = ImpliedRows(rows=False if wanted else IsNotNull(name), is_exact=True)
    if nulls == _INCONCLUSIVE and has_null and not wanted:
        return ImpliedRows(rows=False, is_exact=True)
    finds_null = nulls == _MATCH and has_null
    if nulls in (_MATCH, _SKIP) and finds_null is wanted:
        return _any([found, ImpliedRows(IsNull(name), is_exact=True)])
    return found


def _given(options: dict[str, Any], name: str) -> pa.Array:
    found = options.get(name)
    if found is None:
        raise NotComparedError
    return found


def _option(options: dict[str, Any], name: str) -> Any:  # noqa: ANN401 - of any type
    found = options.get(name)
    return None if found is None else found[0].as_py()  # bounded: one value


def _of_test(test: Predicate, *, wanted: bool) -> ImpliedRows:
    return ImpliedRows(test if wanted else Not(test), is_exact=True)


def _all(found: Iterable[ImpliedRows]) -> ImpliedRows:
    """Return where all hold."""
    return _joined(found, And, neutral=True)


def _any(found: Iterable[ImpliedRows]) -> ImpliedRows:
    """Return where any holds."""
    return _joined(found, Or, neutral=False)


def _joined(found: Iterable[ImpliedRows], kind: type[And | Or], *, neutral: bool) -> ImpliedRows:
    each = list(found)
    is_exact = all(one.is_exact for one in each)
    if any(one.rows is (not neutral) for one in each):
        return ImpliedRows(not neutral, is_exact)
    tests = [cast("Predicate", one.rows) for one in each if one.rows is not neutral]
    flat = [part for t in tests for part in (t.parts if isinstance(t, kind) else (t,))]
    if not flat:
        return ImpliedRows(neutral, is_exact)
    return ImpliedRows(flat[0] if len(flat) == 1 else kind(tuple(flat)), is_exact)
