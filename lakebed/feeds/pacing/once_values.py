"""Values that are let in once (policy `dedupe = "window"`): which rows are the first of theirs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.model.names import ITEM_BYTES

Mask = npt.NDArray[np.bool_]
AreNew = Callable[[Sequence[bytes]], Sequence[bool]]
"""A function that returns which of some items, each given once, are not known yet."""
VALUES_MAX = 100_000
"""Records of a round: each may bring a new value, and 100,000 are an entry of two megabytes."""


def first_of_values(column: pa.Array, are_new: AreNew) -> Mask:
    """Return which rows are the first with their value. Rows without a value are kept: nothing says
    that they are the same."""
    first = np.ones(len(column), np.bool_)
    there = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    if not len(there):
        return first
    encoded = column.filter(column.is_valid()).dictionary_encode()
    codes, indices = np.unique(encoded.indices.to_numpy(), return_index=True)
    new = np.array(are_new(items_of(encoded.dictionary.take(pa.array(codes)))), np.bool_)
    first[there] = False
    first[there[indices[new]]] = True
    return first


def items_of(values: pa.Array) -> list[bytes]:
    """Return the items by which a table knows values: 16 bytes of their digest. Equal numbers are
    equal whatever width their column has: it may become wider."""
    return [
        hashlib.blake2b(value, digest_size=ITEM_BYTES).digest()
        for value in _written(values).to_pylist()  # bounded: values of a round, each once
    ]


def _written(values: pa.Array) -> pa.Array:
    kinds, type_ = pa.types, values.type
    if kinds.is_floating(type_):
        values = values.cast(pa.float64()).view(pa.int64())
    elif kinds.is_temporal(type_):
        values = values.cast(pa.int32() if type_.bit_width == 32 else pa.int64())
    if kinds.is_binary(values.type):
        return values
    return values.cast(pa.string()).cast(pa.binary())
