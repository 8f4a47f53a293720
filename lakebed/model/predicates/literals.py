"""Literals: one value of a field, as people, JSON and Python give it, in the one form in which it
is compared.

A literal is a bool, an int (dates: days, times of day and timestamps: microseconds, of timestamps
since 1970), a float, a str, bytes or a Decimal. Dates and times may be given as ISO text, binary as
hex digits, decimals as text.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable
from decimal import Context, InvalidOperation
from decimal import Decimal as PythonDecimal

from lakebed.errors import InvalidError
from lakebed.model.schema import Field
from lakebed.model.types import Decimal, Primitive

Literal = bool | int | float | str | bytes | PythonDecimal

INTEGER_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
UNSIGNED_BITS = {"uint8": 8, "uint16": 16, "uint32": 32}
FLOATS = ("float32", "float64")
_EPOCH_DAY = datetime.date(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_DAY_MICROS = 86_400_000_000
_DIGITS = Context(prec=80)
"""More than a decimal has: what does not fit is found, not rounded."""
_OUT_OF_TYPE = (ValueError, OverflowError, InvalidOperation)


def literal_of(field: Field, value: object) -> Literal:
    """Return `value` in the form in which values of the field are compared.

    Raises:
        InvalidError: null, a value of another type, or one that the type cannot hold.
    """
    if value is None:
        hint = f"write `{field.name} is null` or `{field.name} is not null`"
        raise InvalidError("nothing compares with null", field=field.name, hint=hint)
    if isinstance(field.type, Decimal):
        return _decimal(field, field.type, value)
    if not isinstance(field.type, Primitive):
        hint = f"such a field can only be tested with `{field.name} is null`, `is not null`"
        raise InvalidError("not a type that compares", field=field.name, type=field.type, hint=hint)
    name = field.type.name
    if name in INTEGER_BITS or name in UNSIGNED_BITS:
        return _integer(field, value, *integer_range(name))
    if name in FLOATS:
        return _float(field, value)
    return _OTHERS[name](field, value)


def literal_text(field: Field, value: Literal) -> str | int | float | bool:
    """Return a literal as JSON has it; `literal_of` reads it."""
    name = str(field.type)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, PythonDecimal):
        return str(value)
    if isinstance(value, int) and name in _SPANS:
        return _span_text(name, value)
    return value


def integer_range(name: str) -> tuple[int, int]:
    """Return the least and the largest value of an integer type."""
    if name in UNSIGNED_BITS:
        return 0, (1 << UNSIGNED_BITS[name]) - 1
    half = 1 << (INTEGER_BITS[name] - 1)
    return -half, half - 1


def _wrong(field: Field, value: object, hint: str) -> InvalidError:
    return InvalidError(
        "not a value of the field",
        field=field.name,
        type=field.type,
        got=ascii(value)[:80],
        hint=hint,
    )


def _integer(field: Field, value: object, least: int, most: int) -> int:
    if type(value) is not int:
        raise _wrong(field, value, "give an integer")
    if not least <= value <= most:
        raise _wrong(field, value, f"give {least} to {most}")
    return value


def _float(field: Field, value: object) -> float:
    if type(value) not in (int, float):
        raise _wrong(field, value, "give a number")
    try:
        number = float(value)  # type: ignore[arg-type]  # an int or a float, as was asked above
    except OverflowError:
        number = math.nan
    if math.isnan(number):
        raise _wrong(field, value, "give a number that a float64 can hold; nothing equals NaN")
    return number


def _bool(field: Field, value: object) -> bool:
    if type(value) is not bool:
        raise _wrong(field, value, "give true or false")
    return value


def _string(field: Field, value: object) -> str:
    if not isinstance(value, str):
        raise _wrong(field, value, "give text, in quotes")
    if any("\ud800" <= c <= "\udfff" for c in value):
        raise _wrong(field, value, "a lone surrogate is not UTF-8")
    return value


def _binary(field: Field, value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str) and re.fullmatch(r"([0-9a-fA-F]{2})*", value):
        return bytes.fromhex(value)
    raise _wrong(field, value, "give bytes, or hex digits in quotes")


def _date(field: Field, value: object) -> int:
    try:
        given = datetime.date.fromisoformat(value) if isinstance(value, str) else value
    except _OUT_OF_TYPE:
        given = None
    if isinstance(given, datetime.date) and not isinstance(given, datetime.datetime):
        return (given - _EPOCH_DAY).days
    if isinstance(value, str):
        raise _wrong(field, value, "write '2013-01-31'")
    return _integer(field, value, *integer_range("int32"))


def _timestamp(field: Field, value: object) -> int:
    in_utc = str(field.type) == "timestamp[us, UTC]"
    write = "write '2013-01-31T05:00:00Z'" if in_utc else "write '2013-01-31T05:00:00'"
    try:
        given = datetime.datetime.fromisoformat(value) if isinstance(value, str) else value
    except _OUT_OF_TYPE:
        given = None
    if isinstance(given, datetime.datetime):
        if (given.tzinfo is not None) is not in_utc:
            raise _wrong(field, value, f"{write}, {'with' if in_utc else 'without'} an offset")
        epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC if in_utc else None)
        return (given - epoch) // _MICROSECOND
    if isinstance(value, str):
        raise _wrong(field, value, write)
    return _integer(field, value, *integer_range("int64"))


def _time(field: Field, value: object) -> int:
    try:
        given = datetime.time.fromisoformat(value) if isinstance(value, str) else value
    except _OUT_OF_TYPE:
        given = None
    if isinstance(given, datetime.time) and given.tzinfo is None:
        seconds = (given.hour * 60 + given.minute) * 60 + given.second
        return seconds * 1_000_000 + given.microsecond
    if not isinstance(value, int):
        raise _wrong(field, value, "write '05:00:00'")
    return _integer(field, value, 0, _DAY_MICROS - 1)


def _decimal(field: Field, type_: Decimal, value: object) -> PythonDecimal:
    hint = f"write a number with up to {type_.scale} digits after the point"
    if type(value) not in (int, float, str, PythonDecimal):
        raise _wrong(field, value, hint)
    try:
        # By its text: a float that was written as 4.5 means 4.5.
        given = PythonDecimal(str(value))
        last = PythonDecimal(1).scaleb(-type_.scale)
        exact = given.is_finite() and given == given.quantize(last, context=_DIGITS)
    except _OUT_OF_TYPE:
        raise _wrong(field, value, hint) from None
    if not exact or given.adjusted() >= type_.precision - type_.scale:
        raise _wrong(field, value, hint)
    return given


_OTHERS: dict[str, Callable[[Field, object], Literal]] = {
    "bool": _bool,
    "string": _string,
    "binary": _binary,
    "date32": _date,
    "timestamp[us, UTC]": _timestamp,
    "timestamp[us]": _timestamp,
    "time64[us]": _time,
}
_SPANS = ("date32", "time64[us]", "timestamp[us]", "timestamp[us, UTC]")


def _span_text(name: str, value: int) -> str | int:
    """Return days or microseconds as ISO text, as they are where Python's calendar ends."""
    try:
        if name == "date32":
            return (_EPOCH_DAY + datetime.timedelta(days=value)).isoformat()
        moment = datetime.datetime(1970, 1, 1) + _MICROSECOND * value  # noqa: DTZ001 - naive types
    except OverflowError:
        return value
    if name == "time64[us]":
        return moment.time().isoformat()
    return moment.isoformat() + ("Z" if name == "timestamp[us, UTC]" else "")
