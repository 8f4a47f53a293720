"""Reads what registries put in front of a record: the id of its schema."""

from __future__ import annotations

import struct
import zlib
from typing import Final, Literal
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.decoding.decoder import Verdicts
from lakebed.decoding.python_values import BadRecordError
from lakebed.model.feeds.verdicts import Verdict
from lakebed.ports.schema_registry import SchemaId

FrameOf = Literal["registry", "glue"]

INFLATED_BYTES_MAX: Final = 64 << 20
"""Most bytes of a record that was compressed, once it is inflated."""
_CONFLUENT: Final = struct.Struct(">bI")
_GLUE_BYTES: Final = 18
_GLUE_VERSION, _GLUE_PLAIN, _GLUE_ZLIB = 3, 0, 5
_PLAIN_MARKS: Final = {"registry": b"\x00", "glue": b"\x03\x00"}
_FRAME_BYTES: Final = {"registry": _CONFLUENT.size, "glue": _GLUE_BYTES}
_INDEXES_MAX: Final = 32


def frame_of(payload: bytes, framing: FrameOf) -> tuple[SchemaId, bytes]:
    """Return the id of a record's schema, and the record. Raises: BadRecordError."""
    if framing == "registry":
        if len(payload) < _CONFLUENT.size or payload[0] != 0:
            raise BadRecordError(Verdict.UNPARSABLE, "no zero byte and id of a schema in front")
        return int(_CONFLUENT.unpack_from(payload)[1]), payload[_CONFLUENT.size :]
    if len(payload) < _GLUE_BYTES or payload[0] != _GLUE_VERSION:
        raise BadRecordError(Verdict.UNPARSABLE, "no byte 3 and id of Glue's in front")
    rest = payload[_GLUE_BYTES:]
    if payload[1] == _GLUE_ZLIB:
        rest = inflated(rest, zlib.MAX_WBITS)
    elif payload[1] != _GLUE_PLAIN:
        raise BadRecordError(Verdict.UNPARSABLE, "an unknown compression of Glue's")
    return UUID(bytes=payload[2:_GLUE_BYTES]), rest


def inflated(data: bytes, bits: int) -> bytes:
    """Return what zlib made small. bits: of its window. Raises: BadRecordError."""
    inflater = zlib.decompressobj(bits)
    try:
        found = inflater.decompress(data, INFLATED_BYTES_MAX)
    except zlib.error:
        raise BadRecordError(Verdict.UNPARSABLE, "what is compressed is damaged") from None
    if inflater.unconsumed_tail:
        raise BadRecordError(Verdict.TOO_LARGE, f"more than {INFLATED_BYTES_MAX:,} bytes inside")
    is_checked = bits > 0  # what is raw has no end that all writers agree on
    if is_checked and (not inflater.eof or inflater.unused_data):
        raise BadRecordError(Verdict.UNPARSABLE, "what is compressed is cut off, or has more")
    return found


def unframed(payloads: pa.BinaryArray, framing: FrameOf, verdicts: Verdicts) -> pa.BinaryArray:
    """Return records without what stands in front of them; of those that have none, what they are.
    Such get a verdict; records without a value stay so."""
    offsets = np.frombuffer(payloads.buffers()[1], np.int32)
    offsets = offsets[payloads.offset : payloads.offset + len(payloads) + 1]
    data = np.frombuffer(payloads.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    starts, lengths = offsets[:-1] - offsets[0], np.diff(offsets)
    mark, size = _PLAIN_MARKS[framing], _FRAME_BYTES[framing]
    is_plain = (lengths >= size) & payloads.is_valid().to_numpy(zero_copy_only=False)
    for index, byte in enumerate(mark):
        is_plain[is_plain] = data[starts[is_plain] + index] == byte
    kept = np.ones(len(data), np.bool_)
    kept[(starts[is_plain, None] + np.arange(size)).ravel()] = False
    ends = np.cumsum(lengths - is_plain * size, dtype=np.int32)
    cut = pa.Array.from_buffers(
        payloads.type,
        len(payloads),
        [
            None,
            pa.py_buffer(np.concatenate([np.zeros(1, np.int32), ends])),
            pa.py_buffer(data[kept]),
        ],
    )
    if payloads.null_count:
        cut = pc.if_else(payloads.is_valid(), cut, None)
    odd = np.flatnonzero(~is_plain & (lengths > 0))
    if not len(odd):
        return cut
    values = cut.to_pylist()  # bounded: a block, which has bad or compressed records
    for index in odd.tolist():
        if values[index] is None:
            continue
        try:
            values[index] = frame_of(values[index], framing)[1]
        except BadRecordError as error:
            verdicts.mark(index, error.verdict, error.detail)
    return pa.array(values, payloads.type)


def message_indexes(data: bytes) -> tuple[tuple[int, ...], bytes]:
    """Return which message of its file a Protobuf record is, as Confluent's registries say it, and
    the record. Raises: BadRecordError."""
    count, at = _zigzag(data, 0)
    if count == 0:  # short for the first one
        return (0,), data[at:]
    if not 0 < count <= _INDEXES_MAX:
        raise BadRecordError(Verdict.UNPARSABLE, "no indexes of a message in front")
    indexes = []
    for _ in range(count):
        index, at = _zigzag(data, at)
        indexes.append(index)
    return tuple(indexes), data[at:]


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 35, 7):
        if at >= len(data):
            break
        number |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return (number >> 1) ^ -(number & 1), at
    raise BadRecordError(Verdict.UNPARSABLE, "no indexes of a message in front")
