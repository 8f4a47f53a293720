"""A sum of hashes of rows, which does not depend on their order: equal rows have equal sums.

Vectorised: no row becomes a Python object. For comparing what should be equal, not against forgers.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.uint64]

_NULL = np.uint64(0x9AE16A3B2F90404F)
_ODD = np.uint64(0x9E3779B97F4A7C15)
_WIDTHS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


class RowSum:
    """Adds up rows of batches of the same columns."""

    def __init__(self) -> None:
        self.rows = 0
        self._sum = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch."""
        self.rows += len(batch)
        self._sum += int(_combined([row_hashes(column) for column in batch.columns]).sum())

    @property
    def value(self) -> tuple[int, int]:
        """Return the number of rows, and the sum of their hashes modulo 2^64."""
        return self.rows, self._sum & (2**64 - 1)


def row_hashes(column: pa.Array) -> Hashes:
    """Return 64 bits for each value of a column, null too. Equal values have equal ones."""
    if not len(column):
        return np.zeros(0, np.uint64)
    hashes = _mixed(_of_values(column))
    if column.null_count:
        hashes[column.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return hashes


def _of_values(column: pa.Array) -> Hashes:
    type_ = column.type
    if pa.types.is_boolean(type_):
        return _of_values(column.cast(pa.uint8()))
    if pa.types.is_decimal(type_):
        words = np.frombuffer(column.buffers()[1], np.uint64)[2 * column.offset :]
        pairs = words[: 2 * len(column)].reshape(-1, 2)
        return _combined([pairs[:, 0].copy(), pairs[:, 1].copy()])
    if pa.types.is_primitive(type_):
        width = _WIDTHS[type_.bit_width // 8]
        values = np.frombuffer(column.buffers()[1], width)[column.offset :][: len(column)]
        return values.astype(np.uint64)
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        return _of_bytes(column)
    if pa.types.is_struct(type_):
        parts = [row_hashes(part) for part in column.flatten()]
        return _combined(parts) if parts else np.zeros(len(column), np.uint64)
    is_map = pa.types.is_map(type_)
    entries = [column.keys, column.items] if is_map else [column.values]
    offsets = column.offsets.to_numpy()
    inside = [part[int(offsets[0]) : int(offsets[-1])] for part in entries]
    return _of_runs(offsets - offsets[0], _combined([row_hashes(part) for part in inside]))


def _of_bytes(column: pa.Array) -> Hashes:
    _, ends, data = column.buffers()
    offsets = np.frombuffer(ends, np.int32)[column.offset :][: len(column) + 1].astype(np.int64)
    raw = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return _of_runs(offsets - offsets[0], _byte_hashes()[raw[offsets[0] : offsets[-1]]])


def _of_runs(offsets: npt.NDArray[np.integer], values: Hashes) -> Hashes:
    """Return hashes of runs of values, which depend on their order. offsets: where each begins, and
    where the last one ends."""
    starts, lengths = offsets[:-1], np.diff(offsets)
    found: Hashes = lengths.astype(np.uint64) * _ODD
    if not len(values):
        return found
    index = np.arange(len(values)) - np.repeat(starts, lengths)
    weighed = _mixed(values ^ _mixed((index + 1).astype(np.uint64)))
    filled = np.flatnonzero(lengths)
    found[filled] += np.add.reduceat(weighed, starts[filled])
    return found


def _combined(columns: list[Hashes]) -> Hashes:
    """Return one hash for each row, which depends on which column says what."""
    found = np.zeros(len(columns[0]), np.uint64)
    for hashes in columns:
        found = _mixed(found * _ODD + hashes)
    return found


def _mixed(values: Hashes) -> Hashes:
    """Return values whose bits all depend on all bits of those given: the end of MurmurHash3."""
    found: Hashes = values ^ (values >> np.uint64(33))
    found = found * np.uint64(0xFF51AFD7ED558CCD)
    found ^= found >> np.uint64(33)
    found = found * np.uint64(0xC4CEB9FE1A85EC53)
    found ^= found >> np.uint64(33)
    return found


@lru_cache(maxsize=1)
def _byte_hashes() -> Hashes:
    return _mixed(np.arange(1, 257, dtype=np.uint64))
