"""JSON as Python's own parser reads it: the row of a payload, or of which class its fault is."""

import json
import math
import re
from decimal import Decimal
from typing import Any, NoReturn

from lakebed.model.schema import schema_of

SCHEMA = schema_of(
    row_keys={"id": "int64"},
    values={
        "name": "string?",
        "size": "float64?",
        "flag": "bool?",
        "small": "int8?",
    },
)
_INTEGER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
ALLOWED = {
    "unreadable": {"unparsable", "not-one-object", "not-utf8", "out-of-range"},
    "duplicate": {"duplicate-field"},
    "type": {"type-mismatch", "out-of-range", "missing-field", "null-in-required"},
}
"""Codes by what Python finds first. A record with several faults is bad for one of them."""


class BadError(Exception):
    pass


def refuse(_: str) -> NoReturn:
    raise BadError("unreadable")


class Number(str):
    __slots__ = ()


def number(text: str) -> Number:
    mantissa, _, exponent = text.lower().partition("e")
    if exponent and int(exponent) > 308 + len(mantissa.partition(".")[2]):
        raise BadError("unreadable")
    return Number(text)


def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {"": pairs}


DECODER = json.JSONDecoder(
    object_pairs_hook=members, parse_int=number, parse_float=number, parse_constant=refuse
)


def wanted(payload: bytes) -> dict[str, Any]:
    """Return a payload's row as Python reads it. Raises BadError, with a class of codes."""
    try:
        found = DECODER.decode(payload.decode())
        json.dumps(found, ensure_ascii=False).encode()  # lone surrogates
    except (ValueError, UnicodeError):
        raise BadError("unreadable") from None
    if not isinstance(found, dict):
        raise BadError("unreadable")
    names = [name for name, _ in found[""]]
    if any(names.count(field.name) > 1 for field in SCHEMA.fields):
        raise BadError("duplicate")
    values = dict(found[""])
    row = {field.name: value_of(field.name, values.get(field.name)) for field in SCHEMA.fields}
    if row["id"] is None:
        raise BadError("type")
    return row


def value_of(name: str, value: object) -> object:
    if value is None:
        return None
    match name:
        case "name" if type(value) is str:
            return value
        case "flag" if isinstance(value, bool):
            return value
        case "size" if isinstance(value, Number) and math.isfinite(float(value)):
            return float(value)
        case "id" | "small" if isinstance(value, str) and _INTEGER.fullmatch(value):
            exact = integer(value)
            bits = 63 if name == "id" else 7
            if exact is not None and -(1 << bits) <= exact < 1 << bits:
                return exact
    raise BadError("type")


def integer(text: str) -> int | None:
    exact = Decimal(text)
    _, digits, exponent = exact.as_tuple()
    assert isinstance(exponent, int)
    if len(digits) + max(exponent, 0) > 76:
        return None
    return int(exact) if exact == exact.to_integral_value() else None
