"""Ids of records that have no key: made of where a record is from, so that they are the same
whenever, wherever and however often it is read."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa

ID_BYTES = 16
SPLIT_BYTES = 8
"""Bytes of an id that are a digest of feed and source split. The others are the position, so the
ids of a source split rise as its records do."""


def auto_keys(feed: str, source_split: str, positions: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return the id of each record: 16 bytes, or 32 hexadecimal digits where the column is text.

    feed: what stands for the feed: its name, and what its positions count in, if they count.
    source_split: with its incarnation.
    positions: of records, int64.
    """
    count = len(positions)
    ids = np.empty((count, ID_BYTES), np.uint8)
    ids[:, :SPLIT_BYTES] = np.frombuffer(_digest(feed, source_split), np.uint8)
    numbers = positions.to_numpy(zero_copy_only=False).astype(">i8")
    ids[:, SPLIT_BYTES:] = numbers.view(np.uint8).reshape(count, 8)
    raw, size = ids.tobytes(), ID_BYTES
    if pa.types.is_string(type_):
        raw, size = raw.hex().encode(), 2 * ID_BYTES
    ends = np.arange(0, (count + 1) * size, size, dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(raw)]
    return pa.Array.from_buffers(type_, count, buffers)


def _digest(feed: str, source_split: str) -> bytes:
    digest = hashlib.blake2b(digest_size=SPLIT_BYTES, person=b"lakebed auto key")
    for part in (feed.encode(), source_split.encode()):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()
