"""JSON payloads as one text for Arrow, with each record's ordinal written into its object.

A count of rows that fits proves nothing: a payload may hold two objects, and the next one none. So
each object gets a member of its own with the record's number. Its name is a control character,
which JSON can spell as one escape only; one is taken that no payload holds. So nothing but what we
wrote can be that member, and rows whose ordinals are 0, 1, 2, ... are exactly the payloads.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_CODES: Final = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0010", "0011", "0012")
"""Hexadecimal codes without letters: `\\u001f` could be written with a capital."""
NAMES: Final = tuple(chr(int(code, 16)) for code in _CODES)
"""Names that the member may have."""
_SPACES: Final = b" \t\n\r"
_IS_SPACE: Final = np.isin(np.arange(256), list(_SPACES))
_STEPS = 16
"""Most spaces that are passed over for all payloads at once; more of them one payload at a time."""

Indices = npt.NDArray[np.int64]


def after_spaces(data: bytes, starts: Indices, ends: Indices) -> Indices:
    """Return the offset of the first byte that is no space, from each start on, or the end."""
    bytes_ = np.frombuffer(data, np.uint8)
    found = starts.copy()
    pending = np.flatnonzero(found < ends)
    for _ in range(_STEPS):
        pending = pending[_IS_SPACE[bytes_[found[pending]]]]
        if not len(pending):
            return found
        found[pending] += 1
        pending = pending[found[pending] < ends[pending]]
    for index in pending.tolist():  # bounded: payloads with many spaces
        part = data[found[index] : ends[index]]
        found[index] += len(part) - len(part.lstrip(_SPACES))
    return found


def bounds_of(payloads: pa.BinaryArray) -> tuple[Indices, Indices, bytes]:
    """Return where payloads begin and end in their bytes, and these. There are no nulls."""
    _, offsets, data = payloads.buffers()
    ends = np.frombuffer(offsets, np.int32, len(payloads) + 1, payloads.offset * 4).astype(np.int64)
    begin, end = int(ends[0]), int(ends[-1])
    raw = b"" if data is None else data.slice(begin, end - begin).to_pybytes()
    return ends[:-1] - begin, ends[1:] - begin, raw


def opens_object(payloads: pa.BinaryArray) -> npt.NDArray[np.bool_]:
    """Return whether the first byte of each payload that is no space is a brace."""
    starts, ends, data = bounds_of(payloads)
    first = after_spaces(data, starts, ends)
    padded = np.frombuffer(data + b" ", np.uint8)
    found: npt.NDArray[np.bool_] = (first < ends) & (padded[first] == ord("{"))
    return found


def free_name(data: bytes, wanted: Container[str]) -> str | None:
    """Return the four digits of a control character that no payload spells, if there is one.

    wanted: names of fields, which are not free.
    """
    for code in _CODES:
        if b"\\u" + code.encode() not in data and name_of(code) not in wanted:
            return code
    return None


def with_ordinals(payloads: pa.BinaryArray, code: str) -> pa.Buffer:
    """Return payloads as one text, a line feed after each. All of them open an object.

    The member comes first: the old brace becomes a space behind it, so no byte moves.
    """
    starts, ends, data = bounds_of(payloads)
    braces = after_spaces(data, starts, ends)
    inner = after_spaces(data, braces + 1, ends)
    bytes_ = np.frombuffer(bytearray(data + b" "), np.uint8)
    is_empty = (inner < ends) & (bytes_[inner] == ord("}"))
    bytes_[braces] = ord(" ")
    offsets = np.append(starts, ends[-1:]).astype(np.int32)
    blanked = pa.BinaryArray.from_buffers(
        pa.binary(), len(payloads), [None, pa.py_buffer(offsets), pa.py_buffer(bytes_)]
    )
    ordinals = pa.array(np.arange(len(payloads))).cast(pa.string()).cast(pa.binary())
    comma = pc.if_else(pa.array(is_empty), b"", b",") if is_empty.any() else b","
    head = b'{"\\u' + code.encode() + b'":'
    text = pc.binary_join_element_wise(head, ordinals, comma, blanked, b"\n", b"")
    _, ends_, joined = text.buffers()
    size = int(np.frombuffer(ends_, np.int32, len(text) + 1)[-1])
    return joined.slice(0, size)


def name_of(code: str) -> str:
    """Return the name that the digits spell."""
    return chr(int(code, 16))


def are_all(ordinals: pa.Array, records: int) -> bool:
    """Return whether ordinals are 0, 1, 2, ...: each row is one payload, and each payload one
    row."""
    if len(ordinals) != records or ordinals.null_count:
        return False
    return bool((ordinals.to_numpy() == np.arange(records)).all())


def chosen(payloads: pa.BinaryArray, indices: Sequence[int] | Indices) -> pa.BinaryArray:
    """Return some payloads, in order."""
    return payloads.take(pa.array(indices, pa.int64()))
