"""Columns as JSON text, whole columns at a time: no row becomes a Python object.

Integers beyond 2^53 and decimals become strings, because readers of JSON take numbers as float64.
Binary becomes base64, times become ISO 8601, and a float that is not finite becomes a string.
"""

from __future__ import annotations

import base64

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

EXACT_IN_FLOAT64 = 1 << 53
_CONTROLS = [chr(code) for code in range(32)]
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def json_lines(batch: pa.RecordBatch) -> pa.Buffer:
    """Return the rows as bytes: one JSON object and a newline each. Bounded batches only."""
    if not batch.num_rows:
        return pa.py_buffer(b"")
    parts: list[object] = []
    for index, name in enumerate(batch.schema.names):
        opening = "{" if index == 0 else ","
        parts += [f"{opening}{quoted_name(name)}:", json_texts(batch.column(index))]
    lines = pc.binary_join_element_wise(*parts, "}\n", "")
    return _bytes_of(lines)


def json_texts(column: pa.Array) -> pa.Array:
    """Return each value as JSON text; nulls as `null`."""
    texts = _texts(column)
    if column.null_count:
        texts = pc.if_else(column.is_valid(), texts, "null")
    return texts


def plain_texts(column: pa.Array) -> pa.Array:
    """Return each value as text without quotes; nulls stay null. Nested values as JSON."""
    kinds = pa.types
    if kinds.is_nested(column.type):
        texts = json_texts(column)
    elif kinds.is_binary(column.type):
        texts = base64_texts(column)
    elif kinds.is_timestamp(column.type):
        texts = _iso_times(column)
    elif kinds.is_string(column.type):
        return column
    else:
        texts = column.cast(pa.string())
    return pc.if_else(column.is_valid(), texts, None) if column.null_count else texts


def quoted_name(text: str) -> str:
    """Return a Python text as JSON."""
    return str(_quoted(pa.array([text]))[0].as_py())  # bounded: one name


def base64_texts(column: pa.Array) -> pa.Array:
    """Return binary as base64, encoded in one call: each value padded to whole groups of three."""
    column = pc.fill_null(column, b"")
    _, offsets, stored = column.buffers()
    starts = np.frombuffer(offsets, np.int32, len(column) + 1, column.offset * 4).astype(np.int64)
    raw = np.frombuffer(stored if stored is not None else b"", np.uint8)[starts[0] : starts[-1]]
    starts = starts - starts[0]
    lengths = np.diff(starts)
    triples = -(-lengths // 3)
    new_starts = np.concatenate([[0], np.cumsum(triples)])
    padded = np.zeros(int(new_starts[-1]) * 3, np.uint8)
    padded[np.arange(len(raw)) + np.repeat(new_starts[:-1] * 3 - starts[:-1], lengths)] = raw
    letters = np.frombuffer(bytearray(base64.b64encode(padded.tobytes())), np.uint8)
    ends = new_starts[1:] * 4
    missing = triples * 3 - lengths
    letters[ends[missing >= 1] - 1] = ord("=")
    letters[ends[missing == 2] - 2] = ord("=")
    new_offsets = pa.py_buffer((new_starts * 4).astype(np.int32).tobytes())
    return pa.StringArray.from_buffers(len(column), new_offsets, pa.py_buffer(letters.tobytes()))


def _texts(column: pa.Array) -> pa.Array:
    kinds, type_ = pa.types, column.type
    if kinds.is_string(type_):
        return _quoted(pc.fill_null(column, ""))
    if kinds.is_list(type_) or kinds.is_map(type_):
        return _joined(column)
    if kinds.is_struct(type_):
        return _object(column)
    if kinds.is_binary(type_):
        return _in_quotes(base64_texts(column))
    if kinds.is_timestamp(type_):
        return _in_quotes(_iso_times(column))
    if kinds.is_floating(type_):
        return _floats(column)
    texts = column.cast(pa.string())
    if kinds.is_int64(type_):
        beyond = pc.or_(pc.greater(column, EXACT_IN_FLOAT64), pc.less(column, -EXACT_IN_FLOAT64))
        return pc.if_else(beyond, _in_quotes(texts), texts)
    if kinds.is_decimal(type_) or kinds.is_temporal(type_):
        return _in_quotes(texts)
    return texts


def _floats(column: pa.Array) -> pa.Array:
    texts = column.cast(pa.string())
    above = pc.if_else(pc.greater(column, 0), '"Infinity"', '"-Infinity"')
    odd = pc.if_else(pc.is_nan(column), '"NaN"', above)
    return pc.if_else(pc.is_finite(column), texts, odd)


def _iso_times(column: pa.Array) -> pa.Array:
    """Text without a look at the machine's time zones: stored times are in UTC or have no zone."""
    texts = pc.replace_substring(
        column.cast(pa.timestamp("us")).cast(pa.string()), " ", "T", max_replacements=1
    )
    texts = pc.replace_substring(texts, ".000000", "")
    return pc.binary_join_element_wise(texts, "Z", "") if column.type.tz else texts


def _joined(column: pa.Array) -> pa.Array:
    """Return a list as `[a,b]`, a map as `{"k":v}`: the texts of all elements, joined per row."""
    is_map = pa.types.is_map(column.type)
    offsets = column.offsets
    first, last = (offsets[index].as_py() for index in (0, -1))  # bounded: two ends
    if is_map:
        keys = column.keys.slice(first, last - first)
        is_text = pa.types.is_string(keys.type)
        names = json_texts(keys) if is_text else _in_quotes(keys.cast(pa.string()))
        values = json_texts(column.items.slice(first, last - first))
        elements = pc.binary_join_element_wise(names, values, ":")
    else:
        elements = json_texts(column.values.slice(first, last - first))
    lists = pa.ListArray.from_arrays(pc.subtract(offsets, first).cast(pa.int32()), elements)
    opening, closing = "{}" if is_map else "[]"
    return pc.binary_join_element_wise(opening, pc.binary_join(lists, ","), closing, "")


def _object(column: pa.Array) -> pa.Array:
    parts: list[object] = []
    for index, (member, values) in enumerate(zip(column.type, column.flatten(), strict=True)):
        opening = "{" if index == 0 else ","
        parts += [f"{opening}{quoted_name(member.name)}:", json_texts(values)]
    return pc.binary_join_element_wise(*parts, "}", "")


def _quoted(texts: pa.Array) -> pa.Array:
    texts = pc.replace_substring(texts, "\\", "\\\\")
    texts = pc.replace_substring(texts, '"', '\\"')
    if pc.any(pc.match_substring_regex(texts, "[[:cntrl:]]")).as_py():  # bounded: one value
        for control in _CONTROLS:
            texts = pc.replace_substring(
                texts, control, _SHORT.get(control, f"\\u{ord(control):04x}")
            )
    return _in_quotes(texts)


def _in_quotes(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', texts, '"', "")


def _bytes_of(texts: pa.Array) -> pa.Buffer:
    """Return the bytes of all texts, one after another, without copying them."""
    _, offsets, stored = texts.buffers()
    starts = np.frombuffer(offsets, np.int32, len(texts) + 1, texts.offset * 4)
    return stored.slice(int(starts[0]), int(starts[-1] - starts[0]))
