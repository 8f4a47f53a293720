"""Messages of librdkafka become Arrow columns. Each is touched by C functions only."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lakebed.decoding.raw_records import HEADERS, raw_records

if TYPE_CHECKING:
    from confluent_kafka import Message

FIRST_MILLIS = -62_135_596_800_000
LAST_MILLIS = 253_402_300_799_999
"""The last millisecond of the year 9999. A producer may write any number for a time; a number
beyond the years 1 to 9999 is no time."""


class Gathered(msgspec.Struct, frozen=True):
    """Records of a topic partition, one after the other.

    sizes: bytes of the records up to and with each one.
    epochs: of the leader that had each one; -1: the broker does not say.
    """

    batch: pa.RecordBatch
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    epochs: NDArray[np.int32]

    def behind(self, index: int) -> Gathered:
        """Return the records from one of them on."""
        taken = self.sizes[index - 1] if index else np.int64(0)
        return Gathered(
            self.batch.slice(index),
            self.offsets[index:],
            self.sizes[index:] - taken,
            self.epochs[index:],
        )


def gathered(messages: Sequence[Message], type_: type[Message]) -> Gathered:
    """Return messages without errors as records. type_: of the messages."""
    fields: Any = type_  # its methods, called by `map`, cost a third of a loop in Python
    count = len(messages)
    offsets = np.fromiter(map(fields.offset, messages), np.int64, count)
    value = pa.array(list(map(fields.value, messages)), pa.binary())
    key = pa.array(list(map(fields.key, messages)), pa.binary())
    headers = _headers(list(map(fields.headers, messages)))
    sizes = np.cumsum(_lengths(value) + _lengths(key) + _header_lengths(headers, count))
    times = chain.from_iterable(map(fields.timestamp, messages))
    batch = raw_records(
        value=value,
        key=key,
        headers=headers,
        time=_times(np.fromiter(times, np.int64, 2 * count).reshape(count, 2)),
        position=pa.array(offsets),
    )
    epochs = list(map(fields.leader_epoch, messages))
    if None in epochs:
        epochs = [-1 if epoch is None else epoch for epoch in epochs]
    return Gathered(batch, offsets, sizes, np.array(epochs, np.int32))


def _times(given: NDArray[np.int64]) -> pa.Array:
    """Return times. given: of each record the kind of its time, 0 for none, and milliseconds."""
    kinds, millis = given[:, 0], given[:, 1]
    absent = (kinds == 0) | (millis < FIRST_MILLIS) | (millis > LAST_MILLIS)
    micros = np.where(absent, 0, millis) * 1_000
    return pa.array(micros, pa.int64(), mask=absent).cast(pa.timestamp("us", tz="UTC"))


def _headers(headers: list[Any]) -> pa.Array | None:
    return None if headers.count(None) == len(headers) else pa.array(headers, HEADERS)


def _lengths(column: pa.Array) -> NDArray[np.int64]:
    lengths = pc.fill_null(pc.binary_length(column), 0)
    return np.asarray(lengths.to_numpy(zero_copy_only=False), np.int64)


def _header_lengths(headers: pa.Array | None, count: int) -> NDArray[np.int64]:
    if headers is None:
        return np.zeros(count, np.int64)
    each = _lengths(headers.keys) + _lengths(headers.items)
    running = np.concatenate([np.zeros(1, np.int64), np.cumsum(each)])
    bounds = headers.offsets.to_numpy()
    lengths: NDArray[np.int64] = running[bounds[1:]] - running[bounds[:-1]]
    return lengths
