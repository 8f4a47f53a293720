"""Thrift's compact protocol, as far as Parquet uses it: structs read and written without loss.

A struct is a `Struct`: its fields by number, each with its type, in the order in which they stood.
So unknown fields are kept, and written again as they were.
https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

BOOL = 1
"""As a field; the value is in the type: this, or one more for false."""
BYTE, I16, I32, I64, DOUBLE, BINARY, LIST = range(3, 10)
STRUCT = 12
_FALSE = 2

DEPTH_MAX = 24
"""Greatest depth of structs and lists inside each other; Parquet's are six deep."""
_VARINT_BYTES_MAX = 10
_INTEGERS = (I16, I32, I64)
_NEXT_LIST = 0x10 | LIST
_SMALL = [bytes([value]) for value in range(0x80)]


class MalformedError(ValueError):
    """Bytes that are not what Parquet's format says. Never leaves the rooms that read files: who
    knows the file's path makes it a `CorruptError`."""


class ThriftList(NamedTuple):
    """A list.

    kind: the type of its values.
    """

    kind: int
    values: list[Any]


class Struct(dict[int, tuple[int, Any]]):
    """Fields by number: type and value."""

    def find(self, field: int, kind: int) -> Any:  # noqa: ANN401  what the type says
        """Return a field's value, None if it is not there.

        Raises:
            MalformedError: it is of another type.
        """
        found = self.get(field)
        if found is None:
            return None
        if found[0] != kind:
            raise MalformedError(f"field {field} has type {found[0]}, not {kind}")
        return found[1]

    def need(self, field: int, kind: int) -> Any:  # noqa: ANN401  what the type says
        """Return a field's value.

        Raises:
            MalformedError: it is missing, or of another type.
        """
        value = self.find(field, kind)
        if value is None:
            raise MalformedError(f"field {field} is missing")
        return value

    def listed(self, field: int, kind: int) -> list[Any] | None:
        """Return the values of a list, None if it is not there.

        Raises:
            MalformedError: it is no list, or one of another type.
        """
        found: ThriftList | None = self.find(field, LIST)
        if found is None:
            return None
        if found.kind != kind and found.values:
            raise MalformedError(f"field {field} lists type {found.kind}, not {kind}")
        return found.values


def struct_of(plain: Mapping[int, Sequence[Any]]) -> Struct:
    """Return a struct that a codec has made plain: a map of pairs."""
    return Struct({field: (kind, _value_of(kind, value)) for field, (kind, value) in plain.items()})


def _value_of(kind: int, plain: Any) -> Any:  # noqa: ANN401  what the type says
    if kind == STRUCT:
        return struct_of(plain)
    if kind == LIST:
        element, values = plain
        return ThriftList(element, [_value_of(element, value) for value in values])
    return plain


class Reader:
    """Reads one thing after the other. Every loop takes bytes, and they end: no wrong byte makes
    it run for ever, or makes a list longer than the bytes that are left."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data = data
        self.at = at

    def struct(self) -> Struct:
        """Return a struct.

        Raises:
            MalformedError: the bytes are none.
        """
        try:
            return self._struct(0)
        except (IndexError, struct.error) as error:
            raise MalformedError("bytes end inside a struct") from error

    def field(self, last: int) -> tuple[int, int]:
        """Return number and type of the next field; type 0: the struct ends. last: the field
        before.

        Raises:
            MalformedError: the bytes are none.
        """
        try:
            return self._field(last)
        except IndexError as error:
            raise MalformedError("bytes end inside a struct") from error

    def value(self, kind: int) -> Any:  # noqa: ANN401  what the type says
        """Return a value.

        Raises:
            MalformedError: the bytes are none.
        """
        try:
            return self._value(kind, 0)
        except (IndexError, struct.error) as error:
            raise MalformedError("bytes end inside a value") from error

    def list_head(self) -> tuple[int, int]:
        """Return the type of a list's values and how many there are.

        Raises:
            MalformedError: the bytes are none, or there are more than bytes are left.
        """
        try:
            return self._list_head()
        except IndexError as error:
            raise MalformedError("bytes end at a list") from error

    def skip(self, kind: int) -> None:
        """Pass over a value.

        Raises:
            MalformedError: the bytes are none.
        """
        try:
            self._skip(kind, 0)
        except IndexError as error:
            raise MalformedError("bytes end inside a value") from error
        if self.at > len(self._data):
            raise MalformedError("bytes end inside a value")

    def _varint(self) -> int:
        data, at = self._data, self.at
        byte = data[at]
        at += 1
        value = byte & 0x7F
        shift = 7
        while byte & 0x80:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if shift > 7 * _VARINT_BYTES_MAX or value >> 64:
                raise MalformedError("an integer of more than 64 bits")
        self.at = at
        return value

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _field(self, last: int) -> tuple[int, int]:
        head = self._data[self.at]
        self.at += 1
        kind = head & 15
        if kind == 0:
            return last, 0
        step = head >> 4
        return last + step if step else self._integer(), kind

    def _struct(self, depth: int) -> Struct:
        if depth > DEPTH_MAX:
            raise MalformedError("structs too deep inside each other")
        found = Struct()
        data, number = self._data, 0
        while True:  # most heads and numbers are one byte: they are read here
            head = data[self.at]
            self.at += 1
            kind, step = head & 15, head >> 4
            if not kind:
                return found
            number = number + step if step else self._integer()
            if number in found:
                raise MalformedError(f"field {number} comes twice")
            if kind in _INTEGERS:
                byte = data[self.at]
                if byte < 0x80:
                    self.at += 1
                    found[number] = (kind, (byte >> 1) ^ -(byte & 1))
                else:
                    found[number] = (kind, self._integer())
            elif kind <= _FALSE:
                found[number] = (BOOL, kind == BOOL)
            else:
                found[number] = (kind, self._value(kind, depth + 1))

    def _value(self, kind: int, depth: int) -> Any:  # noqa: ANN401  what the type says
        if kind in _INTEGERS:
            return self._integer()
        if kind == BINARY:
            size = self._varint()
            start = self.at
            if size > len(self._data) - start:
                raise MalformedError("a string reaches behind the bytes")
            self.at = start + size
            return bytes(self._data[start : self.at])
        if kind == STRUCT:
            return self._struct(depth)
        if kind == LIST:
            return self._list(depth)
        if kind == BYTE:
            self.at += 1
            return self._data[self.at - 1]
        if kind == DOUBLE:
            (value,) = struct.unpack_from("<d", self._data, self.at)
            self.at += 8
            return value
        raise MalformedError(f"unknown type {kind}")

    def _list_head(self) -> tuple[int, int]:
        head = self._data[self.at]
        self.at += 1
        count = head >> 4
        if count == 15:
            count = self._varint()
        if count > len(self._data) - self.at:
            raise MalformedError("a list is longer than the bytes")
        kind = head & 15
        return (BOOL if kind == _FALSE else kind), count

    def _list(self, depth: int) -> ThriftList:
        if depth > DEPTH_MAX:
            raise MalformedError("lists too deep inside each other")
        kind, count = self._list_head()
        if kind == BOOL:
            return ThriftList(kind, [self._truth() for _ in range(count)])
        return ThriftList(kind, [self._value(kind, depth + 1) for _ in range(count)])

    def _truth(self) -> bool:
        byte = self._data[self.at]
        self.at += 1
        if byte > _FALSE:
            raise MalformedError("neither true nor false")
        return byte == BOOL

    def _skip_struct(self, depth: int) -> None:
        data = self._data
        while kind := (head := data[self.at]) & 15:
            self.at += 1
            if not head >> 4:
                self._integer()
            if kind > _FALSE:
                self._skip(kind, depth + 1)
        self.at += 1

    def _skip(self, kind: int, depth: int) -> None:
        if depth > DEPTH_MAX:
            raise MalformedError("structs too deep inside each other")
        if kind in _INTEGERS:
            data, at = self._data, self.at
            while data[at] & 0x80:
                at += 1
            self.at = at + 1
        elif kind == BINARY:
            size = self._varint()
            self.at += size
        elif kind == STRUCT:
            self._skip_struct(depth)
        elif kind == LIST:
            kind, count = self._list_head()
            for _ in range(count):
                self._skip(kind, depth + 1)
        elif kind in (BYTE, BOOL):
            self.at += 1
        elif kind == DOUBLE:
            self.at += 8
        else:
            raise MalformedError(f"unknown type {kind}")


def encode_struct(fields: Struct) -> bytes:
    """Return a struct's bytes, fields in the order given."""
    out = bytearray()
    _put_struct(out, fields)
    return bytes(out)


def varint(value: int) -> bytes:
    """Return a number, not negative, seven bits a byte."""
    if value < 0x80:
        return _SMALL[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 0x200000:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    if 0x10000000 <= value < 0x800000000:
        return bytes(
            (
                value & 0x7F | 0x80,
                value >> 7 & 0x7F | 0x80,
                value >> 14 & 0x7F | 0x80,
                value >> 21 & 0x7F | 0x80,
                value >> 28,
            )
        )
    out = bytearray()
    _put_varint(out, value)
    return bytes(out)


def zigzag(value: int) -> bytes:
    """Return an integer of up to 64 bits as structs hold it."""
    return varint((value << 1) ^ (value >> 63))


def list_head(count: int, kind: int) -> bytes:
    """Return the head of a field, the next in its struct, that is a list of so many values."""
    if count < 15:
        return bytes([_NEXT_LIST, count << 4 | kind])
    return bytes([_NEXT_LIST, 0xF0 | kind]) + varint(count)


def _put_varint(out: bytearray, value: int) -> None:
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _put_integer(out: bytearray, value: int) -> None:
    _put_varint(out, (value << 1) ^ (value >> 63))


def _put_struct(out: bytearray, fields: Struct) -> None:
    last = 0
    for number, (kind, value) in fields.items():
        head = kind if kind != BOOL or value else _FALSE
        if 0 < number - last < 16:
            out.append((number - last) << 4 | head)
        else:
            out.append(head)
            _put_integer(out, number)
        last = number
        if kind != BOOL:
            _put_value(out, kind, value)
    out.append(0)


def _put_value(out: bytearray, kind: int, value: Any) -> None:  # noqa: ANN401  what the type says
    if kind in _INTEGERS:
        _put_integer(out, value)
    elif kind == BINARY:
        _put_varint(out, len(value))
        out += value
    elif kind == STRUCT:
        _put_struct(out, value)
    elif kind == LIST:
        _put_list(out, value)
    elif kind == BYTE:
        out.append(value)
    elif kind == DOUBLE:
        out += struct.pack("<d", value)
    else:
        raise AssertionError(f"type {kind} is not written")


def _put_list(out: bytearray, found: ThriftList) -> None:
    count = len(found.values)
    if count < 15:
        out.append(count << 4 | found.kind)
    else:
        out.append(0xF0 | found.kind)
        _put_varint(out, count)
    if found.kind == BOOL:
        out += bytes(BOOL if value else _FALSE for value in found.values)
    else:
        for value in found.values:
            _put_value(out, found.kind, value)
