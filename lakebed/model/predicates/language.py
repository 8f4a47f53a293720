"""Predicates: a closed language of tests on the fields of a row. Nothing is ever evaluated.

Three forms: Python (`field("fare") >= 4`), JSON (`{"test": "compare", "field": "fare", "is": ">=",
"value": 4}`) and text (`fare >= 4`, in `text.py`). None of them knows a schema: `checked_predicate`
holds a predicate against one, and turns its values into those that are compared.

Nulls are SQL's: a comparison with a null is neither true nor false, `and`, `or` and `not` go by
three values, and a row is kept when the whole is true.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar
from typing import Literal as OneOf

import msgspec

from lakebed.errors import InvalidError
from lakebed.model.predicates.literals import literal_of, literal_text
from lakebed.model.predicates.patterns import ANY, literal_pattern, pattern_of
from lakebed.model.schema import Field, Schema
from lakebed.model.types import Primitive

DEPTH_MAX = 32
TESTS_MAX = 1_000
VALUES_MAX = 10_000
"""Most values of one `in`."""

Comparison = OneOf["=", "!=", "<", "<=", ">", ">="]
EQUALITIES = ("=", "!=")


class _Test(msgspec.Struct, frozen=True, tag_field="test", forbid_unknown_fields=True):
    """A test that `&`, `|` and `~` join."""

    def __and__(self, other: Predicate) -> And:
        return And((self, other))  # type: ignore[arg-type]  # self is one of Predicate's classes

    def __or__(self, other: Predicate) -> Or:
        return Or((self, other))  # type: ignore[arg-type]  # the same

    def __invert__(self) -> Not:
        return Not(self)  # type: ignore[arg-type]  # the same

    def __bool__(self) -> bool:
        hint = "join tests with &, | and ~, in brackets: `and`, `or` and `not` are Python's own"
        raise InvalidError("a predicate is neither true nor false", hint=hint)


class Compare(_Test, frozen=True, tag="compare", rename={"comparison": "is"}):
    """A field's value is before, after or equal to a literal."""

    field: str
    comparison: Comparison
    value: object


class In(_Test, frozen=True, tag="in"):
    """A field's value is one of some literals."""

    field: str
    values: tuple[Any, ...]


class Like(_Test, frozen=True, tag="like", omit_defaults=True):
    """A text has a pattern of SQL.

    escape: a character that makes the next one of the pattern stand for itself.
    """

    field: str
    pattern: str
    escape: str | None = None


class IsNull(_Test, frozen=True, tag="null"):
    """A field has no value."""

    field: str


class IsNotNull(_Test, frozen=True, tag="not null"):
    """A field has a value."""

    field: str


class And(_Test, frozen=True, tag="and"):
    """All parts are true."""

    parts: tuple[Predicate, ...]


class Or(_Test, frozen=True, tag="or"):
    """Some part is true."""

    parts: tuple[Predicate, ...]


class Not(_Test, frozen=True, tag="not"):
    """The part is false."""

    part: Predicate


Predicate = Compare | In | Like | IsNull | IsNotNull | And | Or | Not


class FieldTests:
    """Tests of one field: `FieldTests("fare") >= 4`."""

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # `==` makes a test

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, value: object) -> Compare:  # type: ignore[override]  # makes a test
        return Compare(self.name, "=", value)

    def __ne__(self, value: object) -> Compare:  # type: ignore[override]  # makes a test
        return Compare(self.name, "!=", value)

    def __lt__(self, value: object) -> Compare:
        return Compare(self.name, "<", value)

    def __le__(self, value: object) -> Compare:
        return Compare(self.name, "<=", value)

    def __gt__(self, value: object) -> Compare:
        return Compare(self.name, ">", value)

    def __ge__(self, value: object) -> Compare:
        return Compare(self.name, ">=", value)

    def is_in(self, values: Iterable[object]) -> In:
        """Return a predicate: the value is one of these."""
        return In(self.name, tuple(values))

    def between(self, least: object, most: object) -> And:
        """Return a predicate: the value is one of these two, or lies between them."""
        return And((Compare(self.name, ">=", least), Compare(self.name, "<=", most)))

    def like(self, pattern: str, escape: str | None = None) -> Like:
        """Return a predicate: the text matches a pattern of SQL, in which `%` is any text, `_` one
        character. escape: makes the next character of the pattern stand for itself."""
        return Like(self.name, pattern, escape)

    def starts_with(self, prefix: str) -> Like:
        """Return a predicate: the text begins with another one."""
        if not isinstance(prefix, str):
            raise InvalidError(
                "a prefix is not a text",
                field=self.name,
                got=type(prefix).__name__,
                hint="give a str",
            )
        pattern, escape = literal_pattern(prefix)
        return Like(self.name, pattern + ANY, escape)

    def is_null(self) -> IsNull:
        """Return a predicate: there is no value."""
        return IsNull(self.name)

    def is_not_null(self) -> IsNotNull:
        """Return a predicate: there is a value."""
        return IsNotNull(self.name)


def field(name: str) -> FieldTests:
    """Return what makes tests: `(lakebed.field("fare") >= 4) & lakebed.field("note").is_null()`."""
    if not isinstance(name, str):
        raise InvalidError("a field has a name", got=ascii(name)[:80], hint="give it as text")
    return FieldTests(name)


def checked_predicate(predicate: Predicate, schema: Schema) -> Predicate:
    """Return the predicate with literals in the form in which values are compared.

    Raises:
        InvalidError: an unknown field, a literal of another type, too deep, too many tests.
    """
    left = [TESTS_MAX]
    return _checked(predicate, schema, DEPTH_MAX, left)


def predicate_from_json(value: object) -> Predicate:
    """Return the predicate that JSON values describe. Raises: InvalidError."""
    try:
        found: Predicate = msgspec.convert(value, Predicate)
        return found
    except (msgspec.ValidationError, RecursionError) as error:
        hint = 'for instance {"test": "compare", "field": "fare", "is": ">=", "value": 4}'
        raise InvalidError("not a predicate", problem=error, hint=hint) from None


def predicate_json(predicate: Predicate, schema: Schema) -> dict[str, Any]:
    """Return a checked predicate as JSON values, as `predicate_from_json` reads them."""
    match predicate:
        case Compare(name, comparison, value):
            found = literal_text(schema.field(name), value)  # type: ignore[arg-type]  # is checked
            return {"test": "compare", "field": name, "is": comparison, "value": found}
        case In(name, values):
            of = schema.field(name)
            return {"test": "in", "field": name, "values": [literal_text(of, v) for v in values]}
        case Like(name, pattern, escape):
            shown = {"test": "like", "field": name, "pattern": pattern}
            return shown if escape is None else shown | {"escape": escape}
        case And(parts) | Or(parts):
            kind = "and" if isinstance(predicate, And) else "or"
            return {"test": kind, "parts": [predicate_json(part, schema) for part in parts]}
        case Not(part):
            return {"test": "not", "part": predicate_json(part, schema)}
        case IsNull(name):
            return {"test": "null", "field": name}
        case IsNotNull(name):
            return {"test": "not null", "field": name}


def fields_of(predicate: Predicate) -> frozenset[str]:
    """Return the names of the fields that are tested."""
    return frozenset(_fields(predicate))


def tests_patterns(predicate: Predicate) -> bool:
    """Return whether some test is `like`, which older releases cannot read."""
    match predicate:
        case And(parts) | Or(parts):
            return any(map(tests_patterns, parts))
        case Not(part):
            return tests_patterns(part)
        case _:
            return isinstance(predicate, Like)


def _fields(predicate: Predicate) -> Iterator[str]:
    match predicate:
        case And(parts) | Or(parts):
            for part in parts:
                yield from _fields(part)
        case Not(part):
            yield from _fields(part)
        case _:
            yield predicate.field


def _checked(predicate: object, schema: Schema, depth: int, left: list[int]) -> Predicate:
    left[0] -= 1
    if depth <= 0 or left[0] < 0:
        raise InvalidError(
            "a predicate is too large", depth_max=DEPTH_MAX, tests_max=TESTS_MAX, hint="use `in`"
        )
    match predicate:
        case Compare(name, comparison, value):
            found = schema.field(name)
            literal = literal_of(found, value)
            if found.type == Primitive("bool") and comparison not in EQUALITIES:
                hint = f"use {' or '.join(EQUALITIES)}"
                raise InvalidError("true and false have no order", field=name, hint=hint)
            return Compare(name, comparison, literal)
        case In(name, values):
            found = schema.field(name)
            if not 0 < len(values) <= VALUES_MAX:
                hint = f"give 1 to {VALUES_MAX} values"
                raise InvalidError("not a list for `in`", field=name, got=len(values), hint=hint)
            return In(name, tuple(literal_of(found, value) for value in values))
        case Like(name, pattern, escape):
            _check_pattern(schema.field(name), pattern, escape)
            return predicate
        case IsNull(name) | IsNotNull(name):
            schema.field(name)
            return predicate
        case And(parts) | Or(parts):
            if not parts:
                raise InvalidError("`and` and `or` join at least one test", hint="leave it out")
            return type(predicate)(tuple(_checked(p, schema, depth - 1, left) for p in parts))
        case Not(part):
            return Not(_checked(part, schema, depth - 1, left))
        case _:
            hint = 'for instance lakebed.field("fare") >= 4'
            raise InvalidError("not a predicate", got=type(predicate).__name__, hint=hint)


def _check_pattern(field: Field, pattern: object, escape: object) -> None:
    if field.type != Primitive("string"):
        hint = "only text has patterns: compare it with values, or use `between`"
        raise InvalidError("not a field for `like`", field=field.name, type=field.type, hint=hint)
    if not isinstance(pattern, str) or not isinstance(escape, str | None):
        got = ascii(escape if isinstance(pattern, str) else pattern)[:80]
        hint = "give text, in quotes: 'ab%'"
        raise InvalidError("not a pattern", field=field.name, got=got, hint=hint)
    literal_of(field, pattern)
    pattern_of(pattern, escape)
