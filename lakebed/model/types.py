"""The closed list of types (see docs/design/model.md for why it is closed), and their text form.

Text form, as in a schema file: `int64`, `decimal128(12,2)`, `timestamp[us, UTC]`, and for nested
types the JSON objects `{"list": TYPE}`, `{"map": [KEY TYPE, TYPE]}`, `{"struct": [FIELD, ...]}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from lakebed.errors import InvalidError, did_you_mean
from lakebed.model.type_names import instead_of, meant

KEY_TYPES = ("int32", "int64", "string", "binary", "date32", "timestamp[us, UTC]")
VALUE_TYPES = (
    *KEY_TYPES,
    "bool",
    "int8",
    "int16",
    "uint8",
    "uint16",
    "uint32",
    "float32",
    "float64",
    "time64[us]",
    "timestamp[us]",
)
MAP_KEY_TYPES = ("string", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
DECIMAL_PRECISION_MAX = 38
PARTS_FROM, PARTS_MAX, NUMBERED_MAX = 1_000_000_000, 256, 4_000_000
"""Numbers of elements, keys and values: from where, how many of one field, and up to which field's
number they have any. Types nest 32 levels deep, so a field has 64 of them at the most."""
NESTING_MAX = 32
"""Levels of a type: Arrow's readers end at 64, and a map has two of them."""
_WIDER = {
    "int8": ("int16", "int32", "int64"),
    "int16": ("int32", "int64"),
    "int32": ("int64",),
    "uint8": ("uint16", "uint32", "int16", "int32", "int64"),
    "uint16": ("uint32", "int32", "int64"),
    "uint32": ("int64",),
    "float32": ("float64",),
}


class Primitive(msgspec.Struct, frozen=True):
    """A type without parts.

    name: one of VALUE_TYPES.
    """

    name: str

    def __str__(self) -> str:
        return self.name


class Decimal(msgspec.Struct, frozen=True):
    """Decimal with `precision` digits, `scale` of them after the point."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal128({self.precision},{self.scale})"


class ListOf(msgspec.Struct, frozen=True):
    """A list; elements may be null."""

    element: Type

    def __str__(self) -> str:
        return f"list<{self.element}>"


class MapOf(msgspec.Struct, frozen=True):
    """A map from a string or integer; values may be null."""

    key: Primitive
    value: Type

    def __str__(self) -> str:
        return f"map<{self.key}, {self.value}>"


class StructMember(msgspec.Struct, frozen=True):
    """A member of a struct; may be null.

    number: never changes, unique in the table.
    """

    name: str
    type: Type
    number: int


class StructOf(msgspec.Struct, frozen=True):
    """Named members."""

    members: tuple[StructMember, ...]

    def __str__(self) -> str:
        return f"struct<{', '.join(f'{m.name}: {m.type}' for m in self.members)}>"


Type = Primitive | Decimal | ListOf | MapOf | StructOf

_DECIMAL = re.compile(r"decimal128\(\s*(\d+)\s*,\s*(\d+)\s*\)")


def type_of(text: object, *, next_number: list[int] | None = None) -> Type:
    """Return the type that a schema file names. next_number: one cell that counts struct members.

    Raises:
        InvalidError: there is no such type; the hint says what is allowed.
    """
    try:
        return _type_of(text, next_number if next_number is not None else [1])
    except RecursionError:
        raise _too_deep() from None


def _type_of(text: object, numbers: list[int]) -> Type:
    match text:
        case str():
            return _type_named(text)
        case {"list": element, **rest} if not rest:
            return ListOf(_type_of(element, numbers))
        case {"map": [str(key), value], **rest} if not rest:
            if key not in MAP_KEY_TYPES:
                hint = f"keys of a map are one of {', '.join(MAP_KEY_TYPES)}"
                raise InvalidError("not a type for the keys of a map", type=key, hint=hint)
            return MapOf(Primitive(key), _type_of(value, numbers))
        case {"struct": [_, *_] as members, **rest} if not rest:
            return StructOf(tuple(_member_of(member, numbers) for member in members))
        case _:
            raise InvalidError(
                "not a type",
                type=text,
                hint='use a name, {"list": T}, {"map": [K, T]} or {"struct": [{"name", "type"}]}',
            )


def check_nesting(type_: Type) -> None:
    """Raise InvalidError for a new type with more than NESTING_MAX levels: no rows could come in.

    Types that are stored already are not held to it: a table that has one can still be dropped.
    """
    if (levels := _levels(type_)) > NESTING_MAX:
        raise _too_deep(levels=levels)


def _levels(type_: Type) -> int:
    match type_:
        case ListOf(element):
            return 1 + _levels(element)
        case MapOf(_, value):
            return 2 + _levels(value)
        case StructOf(members):
            return 1 + max(_levels(member.type) for member in members)
        case _:
            return 0


def _too_deep(**facts: object) -> InvalidError:
    hint = f"{NESTING_MAX} levels are allowed, a map counts twice; keep what is inside as JSON text"
    return InvalidError("a type is nested too deep", hint=hint, **facts)


def type_json(type_: Type, *, numbered: bool = True) -> object:
    """Return the text form of a type, as `type_of` reads it. numbered: with the numbers of struct
    members, which differ from table to table."""

    def member(one: StructMember) -> dict[str, object]:
        form: dict[str, object] = {"name": one.name, "type": type_json(one.type, numbered=numbered)}
        return form | ({"number": one.number} if numbered else {})

    match type_:
        case ListOf(element):
            return {"list": type_json(element, numbered=numbered)}
        case MapOf(key, value):
            return {"map": [key.name, type_json(value, numbered=numbered)]}
        case StructOf(members):
            return {"struct": [member(one) for one in members]}
        case _:
            return str(type_)


def members_within(type_: Type) -> tuple[StructMember, ...]:
    """Return all struct members inside a type, nested ones too."""
    match type_:
        case ListOf(element):
            return members_within(element)
        case MapOf(_, value):
            return members_within(value)
        case StructOf(members):
            return members + tuple(n for m in members for n in members_within(m.type))
        case _:
            return ()


def part_numbers(number: int) -> Iterator[int]:
    """Yield the numbers of the elements, keys and values inside a field or member: from outside to
    inside, a key before its value. What lies in a struct has its member's number instead of this.

    They follow from the number, so that schemas that were stored without them have them, too; and
    they never change, because the type inside of a field never does. None beyond what fits into
    the 31 bits that Parquet and Iceberg have.
    """
    if 1 <= number <= NUMBERED_MAX:
        first = PARTS_FROM + number * PARTS_MAX
        yield from range(first, first + PARTS_MAX)


def widens(old: Type, new: Type) -> bool:
    """Return whether every value of a type is one of the other, wider type too."""
    match old, new:
        case Primitive(name), Primitive(wider):
            return wider in _WIDER.get(name, ())
        case Decimal(precision, scale), Decimal(wider_precision, wider_scale):
            whole, wider_whole = precision - scale, wider_precision - wider_scale
            return old != new and whole <= wider_whole and scale <= wider_scale
        case _:
            return False


def wider_types(old: Type) -> str:
    """Return what a type can be widened to, for a hint."""
    if isinstance(old, Decimal):
        return "a decimal with more digits, before and after the point no fewer"
    wider = _WIDER.get(old.name) if isinstance(old, Primitive) else None
    return f"it can become {' or '.join(wider)}" if wider else "this type has no wider one"


def _type_named(name: str) -> Type:
    text = meant(name)
    found = _DECIMAL.fullmatch(text)
    if found:
        precision, scale = int(found[1]), int(found[2])
        if not 1 <= precision <= DECIMAL_PRECISION_MAX or scale > precision:
            hint = f"precision is 1 to {DECIMAL_PRECISION_MAX}, scale 0 to precision"
            raise InvalidError("not a decimal type", type=text, hint=hint)
        return Decimal(precision, scale)
    if text in VALUE_TYPES:
        return Primitive(text)
    hint = instead_of(text) or did_you_mean(text, VALUE_TYPES, what="type")
    if not hint.startswith(("use", "give", "did")):
        hint = "`lakebed explain types` lists all of them"
    raise InvalidError("no such type", type=name, hint=hint)


def _member_of(member: object, numbers: list[int]) -> StructMember:
    match member:
        case {"name": str(name), "type": inner, **rest} if set(rest) <= {"number"} and name:
            number = rest.get("number", numbers[0])
            if not isinstance(number, int) or number < 1:
                raise InvalidError(
                    "a member's number is not a positive integer",
                    number=number,
                    hint="give an integer from 1 on, or leave `number` out",
                )
            numbers[0] = max(numbers[0], number + 1)
            return StructMember(name, _type_of(inner, numbers), number)
        case _:
            raise InvalidError(
                "not a member of a struct", member=member, hint='use {"name": NAME, "type": TYPE}'
            )
