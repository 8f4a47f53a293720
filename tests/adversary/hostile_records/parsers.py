"""Each format once more, as plainly as can be: the row of a payload, or why there is none.

A parser is right when it is simple. It knows one table: id, name, size, flag. Where a library is
more lenient than its format, the parser says `UNSURE`: then the record may be a row or none.
"""

from __future__ import annotations

import csv
import struct
from collections.abc import Callable
from typing import Any, Final

from lakebed.model.schema import schema_of
from tests.dsl.json_reference import BadError, wanted

SCHEMA = schema_of(
    row_keys={"id": "int64"},
    values={"name": "string?", "size": "float64?", "flag": "bool?"},
)
NAMES: Final = ("id", "name", "size", "flag")
UNSURE: Final = object()
BAD: Final = object()
Parser = Callable[[bytes], object]
"""Returns a row as a dict, BAD or UNSURE."""
_DEPTH_MAX: Final = 60
"""Deeper values are read by some libraries, and not by others."""


class BrokenError(Exception):
    """The payload is none of its format."""


class UnsureError(Exception):
    """Libraries differ."""


class Bytes:
    """Bytes that are read from their begin."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise BrokenError
        self.at += size
        return self.data[self.at - size : self.at]

    def byte(self) -> int:
        return self.take(1)[0]

    @property
    def is_done(self) -> bool:
        return self.at == len(self.data)


def outcome(parse: Callable[[bytes], dict[str, object]], payload: bytes) -> object:
    """Return what a parser makes of a payload."""
    try:
        return row_of(parse(payload))
    except BrokenError:
        return BAD
    except UnsureError:
        return UNSURE


def row_of(found: dict[str, Any]) -> dict[str, object]:
    """Return a row of values, each of which must be of its column's type."""
    row = {name: found.get(name) for name in NAMES}
    size = row["size"]
    if type(size) is int:
        row["size"] = size = float(size)
    is_fit = (
        type(row["id"]) is int
        and -(1 << 63) <= row["id"] < 1 << 63
        and isinstance(row["name"], str | None)
        and isinstance(size, float | None)
        and isinstance(row["flag"], bool | None)
    )
    if not is_fit:
        raise BrokenError
    return row


def json_row(payload: bytes) -> object:
    """Return what Python's own parser of JSON reads."""
    try:
        found = wanted(payload)
    except BadError:
        return BAD
    except RecursionError:
        return UNSURE
    return {name: found[name] for name in NAMES}


def text_row(payload: bytes) -> object:
    """Return what Python's `csv` reads of a line."""
    return outcome(_line, payload)


def _line(payload: bytes) -> dict[str, object]:
    line = payload.removesuffix(b"\n")
    if line != payload:
        line = line.removesuffix(b"\r")
    if b"\n" in line or b"\r" in line or b"\0" in line:
        raise BrokenError
    try:
        lines = list(csv.reader([line.decode()]))
        list(csv.reader([line.decode()], strict=True))
    except csv.Error as error:
        if "unexpected end" in str(error):
            raise BrokenError from None
    except ValueError:
        raise BrokenError from None
    fields = lines[0] if lines else [""]
    if len(fields) != len(NAMES):
        raise BrokenError
    found: dict[str, object] = dict(zip(NAMES, fields, strict=True))
    found = {name: None if value == "" else value for name, value in found.items()}
    if b'"' in line:
        raise UnsureError  # a quote within a field: Arrow and `csv` are of two minds about some
    for name, read in (("id", _integer), ("size", _float), ("flag", _flag)):
        if found[name] is not None:
            found[name] = read(str(found[name]))
    return found


def _integer(text: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        raise UnsureError if text.strip().lstrip("+-").isdigit() else BrokenError
    return int(text)


def _float(text: str) -> float:
    if set(text) <= set("0123456789.-e") and text[:1] in set("0123456789-"):
        try:
            return float(text)
        except ValueError:
            raise BrokenError from None
    raise UnsureError


def _flag(text: str) -> bool:
    if text in {"true", "false"}:
        return text == "true"
    raise UnsureError


def msgpack_row(payload: bytes) -> object:
    """Return what stands in one map of MessagePack."""
    return outcome(_msgpack, payload)


def _msgpack(payload: bytes) -> dict[str, object]:
    data = Bytes(payload)
    size = _map_size(data)
    found: dict[str, object] = {}
    names = set()
    for _ in range(size):
        name = _msgpack_value(data, 1)
        if not isinstance(name, str) or name in names:
            raise BrokenError
        names.add(name)
        if name in NAMES:
            found[name] = _msgpack_value(data, 1)
        else:
            _msgpack_value(data, 1, is_read=False)
    if not data.is_done:
        raise BrokenError
    return found


def _map_size(data: Bytes) -> int:
    head = data.byte()
    if 0x80 <= head <= 0x8F:
        return head & 0x0F
    if head in {0xDE, 0xDF}:
        return int.from_bytes(data.take(2 if head == 0xDE else 4))
    raise BrokenError


def _msgpack_value(data: Bytes, depth: int, *, is_read: bool = True) -> object:
    if depth > _DEPTH_MAX:
        raise UnsureError
    head = data.byte()
    if head < 0x80:
        return head
    if head >= 0xE0:
        return head - 0x100
    if head < 0x90 or head in {0xDE, 0xDF}:
        data.at -= 1
        for _ in range(_map_size(data)):
            _msgpack_value(data, depth + 1, is_read=is_read)
            _msgpack_value(data, depth + 1, is_read=is_read)
        return ()
    if head < 0xA0 or head in {0xDC, 0xDD}:
        size = head & 0x0F if head < 0xA0 else int.from_bytes(data.take(2 << (head - 0xDC)))
        for _ in range(size):
            _msgpack_value(data, depth + 1, is_read=is_read)
        return []
    if head < 0xC0:
        return _text(data.take(head & 0x1F), is_read=is_read)
    return _msgpack_scalar(data, head, is_read=is_read)


def _msgpack_scalar(data: Bytes, head: int, *, is_read: bool) -> object:
    match head:
        case 0xC0:
            return None
        case 0xC2 | 0xC3:
            return head == 0xC3
        case 0xC4 | 0xC5 | 0xC6:
            return data.take(int.from_bytes(data.take(1 << (head - 0xC4))))
        case 0xC7 | 0xC8 | 0xC9:
            data.take(int.from_bytes(data.take(1 << (head - 0xC7))) + 1)
            return ()
        case 0xCA | 0xCB:
            return struct.unpack(
                ">f" if head == 0xCA else ">d", data.take(4 if head == 0xCA else 8)
            )[0]
        case 0xCC | 0xCD | 0xCE | 0xCF:
            return int.from_bytes(data.take(1 << (head - 0xCC)))
        case 0xD0 | 0xD1 | 0xD2 | 0xD3:
            return int.from_bytes(data.take(1 << (head - 0xD0)), signed=True)
        case 0xD4 | 0xD5 | 0xD6 | 0xD7 | 0xD8:
            data.take((1 << (head - 0xD4)) + 1)
            return ()
        case 0xD9 | 0xDA | 0xDB:
            return _text(data.take(int.from_bytes(data.take(1 << (head - 0xD9)))), is_read=is_read)
    raise BrokenError


def _text(data: bytes, *, is_read: bool = True) -> str:
    if not is_read:
        return ""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise BrokenError from None


def avro_row(payload: bytes) -> object:
    """Return what stands in a datum of the schema in `forms.py`."""
    return outcome(_avro, payload)


def _avro(payload: bytes) -> dict[str, object]:
    data = Bytes(payload)
    found: dict[str, object] = {"id": _zigzag(data)}
    match _zigzag(data):
        case 0 | -2:  # a negative branch counts from the end: fastavro is that lenient
            found["name"] = None
        case 1 | -1:
            found["name"] = _text(data.take(_zigzag(data)))
        case _:
            raise BrokenError
    found["size"] = struct.unpack("<d", data.take(8))[0]
    found["flag"] = data.byte() != 0
    while count := _zigzag(data):
        if count < 0:
            _zigzag(data)
        if abs(count) > len(payload):
            raise UnsureError if count == -(1 << 63) else BrokenError
        for _ in range(abs(count)):
            _text(data.take(_zigzag(data)))
    if not data.is_done:
        raise BrokenError
    return found


def _zigzag(data: Bytes) -> int:
    number = _varint(data)
    return (number >> 1) ^ -(number & 1)


def _varint(data: Bytes) -> int:
    number = shift = 0
    while True:
        byte = data.byte()
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if shift > 70 or number >> 64:
        raise UnsureError  # more than 64 bits: some libraries cut them off
    return number


def protobuf_row(payload: bytes) -> object:
    """Return what stands in a message of the descriptors in `forms.py`."""
    return outcome(_protobuf, payload)


def _protobuf(payload: bytes) -> dict[str, object]:
    data = Bytes(payload)
    found: dict[str, object] = {}
    while not data.is_done:
        _field(data, found, 0, 0)
    return found


def _field(data: Bytes, found: dict[str, object], depth: int, group: int) -> bool:
    """Read a field. Returns whether it ends the group that it is in."""
    if depth > _DEPTH_MAX:
        raise UnsureError
    begin = data.at
    tag = _varint(data)
    number, wire = tag >> 3, tag & 7
    if data.at - begin > 5 or tag >> 32 or (begin + 1 < data.at and data.data[data.at - 1] == 0):
        raise UnsureError
    if number == 0 or number >= 1 << 29:
        raise UnsureError if depth else BrokenError  # within what is skipped it is not looked at
    if wire == 4:
        if number != group:
            raise BrokenError
        return True
    value = _wire_value(data, wire, number, depth)
    if depth == 0:
        _set(found, number, wire, value)
    return False


def _wire_value(data: Bytes, wire: int, number: int, depth: int) -> object:
    match wire:
        case 0:
            return _varint_of_message(data)
        case 1:
            return struct.unpack("<d", data.take(8))[0]
        case 2:
            return data.take(_varint(data))
        case 3:
            while not _field(data, {}, depth + 1, number):
                pass
            return None
        case 5:
            return data.take(4)
    raise BrokenError


def _varint_of_message(data: Bytes) -> int:
    begin = data.at
    number = _varint(data)
    if data.at - begin > 10:
        raise UnsureError
    return number


def _set(
    found: dict[str, object],
    number: int,
    wire: int,
    value: Any,  # noqa: ANN401 - by its wire type
) -> None:
    match number, wire:
        case 1, 0:
            found["id"] = value - (1 << 64) if value >> 63 else value
        case 2, 2:
            found["name"] = _text(value)
        case 3, 1:
            found["size"] = value
        case 4, 0:
            found["flag"] = value != 0


def framed(parse: Parser) -> Parser:
    """Return a parser of records behind a zero byte and an id."""
    return lambda payload: parse(payload[5:]) if payload[:1] == b"\0" and payload[4:] else BAD
