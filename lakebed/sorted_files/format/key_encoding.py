"""Encoded keys of Arrow rows: the bytes of `lakebed.model.keys`, for whole columns at once."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.feed_errors import InvalidKeyError
from lakebed.model.keys import (
    ESCAPED,
    KEY_BYTES_MAX,
    TERMINATOR,
    KeyValue,
    decode_field,
    field_end,
)
from lakebed.model.ranges import KeyRange
from lakebed.model.schema import Field
from lakebed.sorted_files.format.arrow_schema import arrow_type

_WIDTHS = {"int32": 4, "date32": 4, "int64": 8, "timestamp[us, UTC]": 8}


def integers(column: pa.Array) -> npt.NDArray[np.signedinteger]:
    """Return the numbers of an int, date or timestamp column without nulls, without a copy."""
    width = column.type.bit_width // 8
    kind = np.dtype(np.int32 if width == 4 else np.int64)
    if not len(column):
        return np.empty(0, kind)
    data = column.buffers()[1]
    return np.frombuffer(data, kind, len(column), column.offset * width)


NEAR_ROWS = 8
"""Rows within which the end of a region is looked for row by row."""
_SEARCHES_MANY = hasattr(pc, "search_sorted")  # pyarrow 26 has it, 23 to 25 do not


def encode_keys(batch: pa.RecordBatch, fields: Sequence[Field]) -> pa.BinaryArray:
    """Return the encoded key of every row, made of these fields. Columns hold no nulls."""
    parts: list[object] = []
    for field in fields:
        column = batch.column(field.name)
        if str(field.type) in _WIDTHS:
            parts.append(_encode_integers(column))
        else:
            parts += [_escaped(column), pa.scalar(TERMINATOR, pa.binary())]
    if len(parts) == 1:
        return parts[0]
    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.binary()))


def encode_row(batch: pa.RecordBatch, fields: Sequence[Field], row: int) -> bytes:
    """Return the encoded key of one row. row: may be negative, as in a sequence."""
    index = row % len(batch)
    return b"".join([_encoded_values(batch.column(f.name), f)(index) for f in fields])


def _encoded_values(column: pa.Array, field: Field) -> Callable[[int], bytes]:
    """Return what encodes a column's value at an index. It reads Arrow's buffers: a tenth of the
    time that Arrow takes to make a Python value."""
    data = column.buffers()
    start = column.offset
    width = _WIDTHS.get(str(field.type))
    if width is not None:
        numbers = memoryview(data[1]).cast("i" if width == 4 else "q")
        bias = 1 << (8 * width - 1)
        return lambda row: (numbers[start + row] + bias).to_bytes(width, "big")
    ends = memoryview(data[1]).cast("i")
    text = memoryview(data[2] or b"")

    def encoded(row: int) -> bytes:
        raw = bytes(text[ends[start + row] : ends[start + row + 1]])
        return raw.replace(b"\x00", ESCAPED) + TERMINATOR

    return encoded


def value_at(column: pa.Array, row: int) -> KeyValue:
    """Return one key value of a column."""
    cell = column[row]
    if pa.types.is_temporal(column.type):
        number: int = cell.value
        return number
    value: KeyValue = cell.as_py()  # bounded: one value
    return value


def check_keys(batch: pa.RecordBatch, fields: Sequence[Field]) -> None:
    """Refuse keys that no file may hold.

    Raises:
        InvalidKeyError: a key is null, or longer than 1,024 encoded bytes.
    """
    length = 0
    strings = []
    for field in fields:
        column = batch.column(field.name)
        if column.null_count:
            raise InvalidKeyError(
                "a key is null",
                field=field.name,
                rows=column.null_count,
                hint="leave these rows out, or make the field a value",
            )
        width = _WIDTHS.get(str(field.type))
        if width is None:
            strings.append(pc.binary_length(_escaped(column)))
            length += len(TERMINATOR)
        else:
            length += width
    if not strings or not len(batch):
        return
    lengths = strings[0]
    for more in strings[1:]:
        lengths = pc.add(lengths, more)
    longest = length + pc.max(lengths).as_py()  # bounded: one value
    if longest > KEY_BYTES_MAX:
        raise InvalidKeyError(
            "a key is too long",
            fields=", ".join(f.name for f in fields),
            bytes=longest,
            max=KEY_BYTES_MAX,
            hint="use a shorter key, such as a digest, and keep the long text as a value",
        )


def search(
    batch: pa.RecordBatch, fields: Sequence[Field], point: bytes, *, after: bool = False
) -> int:
    """Return how many rows of a sorted batch have an encoded key below `point`; `after`: or at it.

    point: any bytes, also cut ones; compared with the key that these fields make.
    """
    if not len(batch):
        return 0
    find = bisect.bisect_right if after else bisect.bisect_left
    return find(_Keys(batch, fields), point)


class _Keys:
    """The encoded keys of a batch, each made when it is asked for. of: returns a row's."""

    def __init__(self, batch: pa.RecordBatch, fields: Sequence[Field]) -> None:
        self._rows = len(batch)
        values = [_encoded_values(batch.column(f.name), f) for f in fields]
        self.of = values[0] if len(values) == 1 else lambda row: b"".join([v(row) for v in values])

    def __getitem__(self, row: int) -> bytes:
        return self.of(row)

    def __len__(self) -> int:
        return self._rows


def search_many(
    batch: pa.RecordBatch, fields: Sequence[Field], points: Sequence[bytes]
) -> list[int]:
    """Return for each of the ascending points how many rows of a sorted batch lie below it."""
    first = fields[0]
    values = _values_of(first, points) if len(points) > 1 else None
    if values is None or not _SEARCHES_MANY:
        return [search(batch, fields, point) for point in points]
    found = pc.search_sorted(batch.column(first.name), values, side="left")
    below: list[int] = found.to_pylist()  # bounded: one number per point
    return below


def slice_key_range(
    batch: pa.RecordBatch, fields: Sequence[Field], key_range: KeyRange
) -> pa.RecordBatch:
    """Return the rows of a sorted batch whose keys lie in a region."""
    start, end = rows_in(batch, fields, key_range)
    return batch if end - start == len(batch) else batch.slice(start, end - start)


def rows_in(batch: pa.RecordBatch, fields: Sequence[Field], key_range: KeyRange) -> tuple[int, int]:
    """Return from which to below which row of a sorted batch keys lie in a region."""
    rows = len(batch)
    if not rows:
        return 0, 0
    key, indices = _Keys(batch, fields).of, range(rows)
    start = bisect.bisect_left(indices, key_range.min, key=key) if key(0) < key_range.min else 0
    if start == rows or key_range.max is None or key(rows - 1) < key_range.max:
        return start, rows
    step = 1
    while step <= NEAR_ROWS and start + step <= rows:  # of one key there are few
        if key(start + step - 1) >= key_range.max:
            end = start + step
            return start, bisect.bisect_left(indices, key_range.max, start, end, key=key)
        step *= 2
    return start, bisect.bisect_left(indices, key_range.max, start, key=key)


def values_between(field: Field, column: pa.Array, r: KeyRange) -> pa.Array:
    """Return which values have an encoding in the range. Its ends are encodings of the field."""
    kind = arrow_type(field.type)
    mask = None
    if r.min:
        least = pa.scalar(decode_field(field.type, r.min), kind)
        mask = pc.greater_equal(column, least)
    if r.max is not None:
        below = pc.less(column, pa.scalar(decode_field(field.type, r.max), kind))
        mask = below if mask is None else pc.and_(mask, below)
    return pa.array(np.ones(len(column), bool)) if mask is None else mask


def _values_of(field: Field, points: Sequence[bytes]) -> pa.Array | None:
    """Return points as values of the field; None if one is not exactly the encoding of a value."""
    try:
        if any(field_end(field.type, point, 0) != len(point) for point in points):
            return None
        return pa.array([decode_field(field.type, p) for p in points], arrow_type(field.type))
    except ValueError:  # cut inside a string's terminator, or inside a character
        return None


def _encode_integers(column: pa.Array) -> pa.Array:
    numbers = integers(column)
    width = numbers.dtype.itemsize
    unsigned = numbers.view(f"u{width}") ^ (1 << (8 * width - 1))
    data = unsigned.astype(f">u{width}")
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(width), len(column), [None, pa.py_buffer(data)]
    )
    return fixed.cast(pa.binary())


def _escaped(column: pa.Array) -> pa.Array:
    raw = column.cast(pa.binary())
    if not _holds_zero(raw):
        return raw
    return pc.replace_substring(raw, pattern=b"\x00", replacement=b"\x00\xff")


def _holds_zero(column: pa.Array) -> bool:
    if not len(column) or column.buffers()[2] is None:
        return False
    offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4)
    data = np.frombuffer(column.buffers()[2], np.uint8)
    return bool((data[offsets[0] : offsets[-1]] == 0).any())
