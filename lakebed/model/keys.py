"""One byte encoding of keys, whose memcmp order is the order everywhere.

int32, date32               4 bytes, big endian, sign flipped
int64, timestamp            8 bytes, big endian, sign flipped
string (UTF-8), binary      each 0x00 as 0x00 0xFF, then the terminator 0x00 0x00

Fields stand one after another. Each field's encoding is free of prefixes, so the encoding of the
first field alone, as in a split point, compares with whole keys as its value compares with theirs.

A key value in Python is an int (dates: days, timestamps: microseconds, both since 1970), a str or
bytes.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence

from lakebed.errors import InvalidError
from lakebed.model.schema import Field
from lakebed.model.types import Primitive

KEY_BYTES_MAX = 1024
"""Most bytes of an encoded key. A key above 4 KiB makes pyarrow drop the statistics and the index
of a column chunk."""

TERMINATOR = b"\x00\x00"
ESCAPED = b"\x00\xff"
_WIDTH = {"int32": 4, "date32": 4, "int64": 8, "timestamp[us, UTC]": 8}
_EPOCH_DAY = datetime.date(1970, 1, 1)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

KeyValue = int | str | bytes


def key_value(field: Field, value: object) -> KeyValue:
    """Return `value` as a key value of the field: dates and times become numbers.

    Raises:
        InvalidError: wrong type, or out of the type's range.
    """
    name = str(field.type)
    match name, value:
        case ("int32" | "int64" | "date32" | "timestamp[us, UTC]", int()) if type(value) is int:
            bits = 8 * _WIDTH[name]
            if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
                least, most = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
                hint = f"give {least} to {most}, or leave an end open"
                raise InvalidError("key value out of range", field=field.name, hint=hint)
            return value
        case "string", str():
            if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
                hint = "mend the text, or keep such keys as binary"
                raise InvalidError("a lone surrogate is not UTF-8", field=field.name, hint=hint)
            return value
        case "binary", bytes():
            return value
        case "timestamp[us, UTC]", datetime.datetime():
            if value.tzinfo is None:
                hint = "give it an offset, for instance tzinfo=datetime.UTC"
                raise InvalidError("a time without an offset", field=field.name, hint=hint)
            return (value - _EPOCH) // datetime.timedelta(microseconds=1)
        case "date32", datetime.date() if not isinstance(value, datetime.datetime):
            return (value - _EPOCH_DAY).days
        case _:
            raise InvalidError(
                "wrong type for a key value",
                field=field.name,
                wanted=name,
                got=type(value).__name__,
                hint="null is never a key" if value is None else f"give a value of type {name}",
            )


def key_value_from_text(field: Field, text: str) -> KeyValue:
    """Return the key value that a person typed: ISO dates and times, binary as hex digits.

    Raises:
        InvalidError: the text is not a value of the field's type.
    """
    name = str(field.type)
    try:
        match name:
            case "string":
                return key_value(field, text)
            case "binary":
                return bytes.fromhex(text)
            case "date32":
                return key_value(field, datetime.date.fromisoformat(text))
            case "timestamp[us, UTC]":
                return key_value(field, datetime.datetime.fromisoformat(text))
            case _:
                return key_value(field, int(text))
    except ValueError:
        hint = {"binary": "write hex digits", "date32": "write 2013-01-31"}.get(name)
        hint = hint or ("write 2013-01-31T05:00:00Z" if "time" in name else "write an integer")
        raise InvalidError(
            "not a key value", field=field.name, type=name, text=text, hint=hint
        ) from None


def key_value_text(field: Field, value: KeyValue) -> str:
    """Return a key value as people read it, the inverse of `key_value_from_text`."""
    match str(field.type), value:
        case "binary", bytes():
            return value.hex()
        case "date32", int():
            try:
                return (_EPOCH_DAY + datetime.timedelta(days=value)).isoformat()
            except OverflowError:
                return f"day {value}"
        case "timestamp[us, UTC]", int():
            try:
                moment = _EPOCH + datetime.timedelta(microseconds=value)
            except OverflowError:
                return f"microsecond {value}"
            return moment.isoformat().replace("+00:00", "Z")
        case _:
            return str(value)


def encode_field(type_: object, value: KeyValue) -> bytes:
    """Return the encoding of one key value. type_: the field's type."""
    if isinstance(value, int):
        width = _WIDTH[str(type_)]
        return (value + (1 << (8 * width - 1))).to_bytes(width, "big")
    raw = value.encode() if isinstance(value, str) else value
    return raw.replace(b"\x00", ESCAPED) + TERMINATOR


def encode_key(fields: Sequence[Field], values: Sequence[KeyValue]) -> bytes:
    """Return the encoding of the first `len(values)` fields of a key."""
    if len(values) > len(fields):
        raise AssertionError("more values than key fields")
    return b"".join(encode_field(f.type, v) for f, v in zip(fields, values, strict=False))


def field_end(type_: object, key: bytes, start: int) -> int:
    """Return where the field that begins at `start` of an encoded key ends."""
    width = _WIDTH.get(str(type_))
    if width is not None:
        return start + width
    at = key.index(b"\x00", start)
    while key[at : at + 2] != TERMINATOR:
        at = key.index(b"\x00", at + 2)
    return at + 2


def split_key(fields: Sequence[Field], key: bytes) -> Iterator[bytes]:
    """Yield the encoding of each field of an encoded key that holds these fields."""
    start = 0
    for field in fields:
        end = field_end(field.type, key, start)
        yield key[start:end]
        start = end


def decode_field(type_: object, encoded: bytes) -> KeyValue:
    """Return the key value of a field's encoding."""
    name = type_.name if isinstance(type_, Primitive) else str(type_)
    width = _WIDTH.get(name)
    if width is not None:
        return int.from_bytes(encoded, "big") - (1 << (8 * width - 1))
    raw = encoded[:-2].replace(ESCAPED, b"\x00")
    return raw.decode() if name == "string" else raw


def decode_key(fields: Sequence[Field], key: bytes) -> tuple[KeyValue, ...]:
    """Return the values of an encoded key that holds these fields."""
    encoded = split_key(fields, key)
    return tuple(decode_field(f.type, part) for f, part in zip(fields, encoded, strict=True))


def prefix_values(fields: Sequence[Field], key: bytes) -> tuple[KeyValue, ...]:
    """Return the values of as many leading fields as `key` is the encoding of.

    Raises:
        ValueError: it is none: it ends inside a field, or after the last one.
    """
    values: list[KeyValue] = []
    start = 0
    for field in fields:
        if start == len(key):
            break
        end = field_end(field.type, key, start)
        if end > len(key):
            raise ValueError("it ends inside a field")
        values.append(decode_field(field.type, key[start:end]))
        start = end
    if start < len(key):
        raise ValueError("it goes on after the last field")
    return tuple(values)


def least_key(fields: Sequence[Field], prefix: bytes) -> bytes:
    """Return the smallest whole key that does not lie below the encoding of its first fields.

    Raises:
        ValueError: the prefix ends inside a field.
    """
    start = 0
    for index, field in enumerate(fields):
        if start == len(prefix):
            widths = (_WIDTH.get(str(f.type)) for f in fields[index:])
            return prefix + b"".join(TERMINATOR if w is None else bytes(w) for w in widths)
        start = field_end(field.type, prefix, start)
    return prefix


def successor(type_: object, value: KeyValue) -> KeyValue | None:
    """Return the smallest key value above `value`, or None for the largest integer."""
    if isinstance(value, int):
        last = (1 << (8 * _WIDTH[str(type_)] - 1)) - 1
        return value + 1 if value < last else None
    return value + "\x00" if isinstance(value, str) else value + b"\x00"


def above_prefix(prefix: bytes) -> bytes | None:
    """Return the smallest bytes above everything that begins with `prefix`; None: there are
    none."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None
