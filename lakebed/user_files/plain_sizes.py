"""Computes how large values become as plain columns, before they are cast: a dictionary of one long
text is small, and its rows are not."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidError
from lakebed.sorted_files.format.arrow_schema import is_list

PIECE_BYTES = 32 << 20
"""Most bytes of rows that are cast together, as plain columns, unless one row alone is larger."""
VALUE_BYTES_MAX = 64 << 20
"""Most bytes of one value: a text, or a list with all that is in it."""

Sizes = npt.NDArray[np.int64]


def pieces(
    batch: pa.RecordBatch,
    names: Container[str],
    *,
    row: int = 0,
    check: Callable[..., None] = lambda *_, **__: None,
) -> Iterator[pa.RecordBatch]:
    """Yield a batch in slices that stay small as plain columns; mostly there is one, the batch.

    names: of the columns that are wanted.
    row: how many rows the source gave before.
    check: is called with a column and `field=` its name before the column is read.

    Raises:
        InvalidError: a value is larger than 64 MiB; it names the column and the row.
    """
    total = np.zeros(len(batch), np.int64)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name not in names or not len(batch):
            continue
        if _may_expand(column.type) or (
            not _has_fixed_width(column.type) and column.get_total_buffer_size() > VALUE_BYTES_MAX
        ):
            check(column, field=name)
            sizes = plain_bytes(column)
            _check(name, sizes, row)
            total += sizes
    ends = np.cumsum(total)
    start, before = 0, 0
    while start < len(batch) and ends[-1] - before > PIECE_BYTES:
        end = max(start + 1, int(np.searchsorted(ends, before + PIECE_BYTES, side="right")))
        yield batch.slice(start, end - start)
        start, before = end, int(ends[end - 1])
    if start < len(batch) or not len(batch):
        yield batch.slice(start) if start else batch


def plain_bytes(array: pa.Array) -> Sizes:
    """Return the bytes of each value as a plain column has them, about: without null bits."""
    kinds, kind = pa.types, array.type
    if kinds.is_dictionary(kind):
        lengths = plain_bytes(array.dictionary)
        if not len(lengths):
            return np.zeros(len(array), np.int64)
        indices = array.indices.fill_null(0).to_numpy(zero_copy_only=False)
        known = array.indices.is_valid().to_numpy(zero_copy_only=False)
        # A wrong index is reported when it is cast.
        return np.where(known, np.take(lengths, indices, mode="clip"), 0)
    if kinds.is_string_view(kind) or kinds.is_binary_view(kind):
        views = np.frombuffer(array.buffers()[1], np.int32).reshape(-1, 4)
        lengths = views[array.offset : array.offset + len(array), 0].astype(np.int64)
        return np.where(array.is_valid().to_numpy(zero_copy_only=False), lengths, 0)
    if _is_text(kind):
        found = pc.binary_length(array).fill_null(0).to_numpy(zero_copy_only=False)
        return np.asarray(found, np.int64)
    if kinds.is_struct(kind):
        members = (plain_bytes(array.field(index)) for index in range(kind.num_fields))
        return sum(members, np.zeros(len(array), np.int64))
    if is_list(kind) or kinds.is_map(kind):
        return _of_lists(array)
    width = 0 if kinds.is_null(kind) else -(-kind.bit_width // 8)
    return np.full(len(array), width, np.int64)


def _of_lists(array: pa.Array) -> Sizes:
    """Return the bytes of lists: what lies between their ends."""
    kinds, kind = pa.types, array.type
    if kinds.is_fixed_size_list(kind):
        begins = (np.arange(len(array), dtype=np.int64) + array.offset) * kind.list_size
        ends = begins + kind.list_size
    elif kinds.is_list_view(kind) or kinds.is_large_list_view(kind):
        begins = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
        ends = begins + array.sizes.to_numpy(zero_copy_only=False)
    else:
        offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
        begins, ends = offsets[:-1], offsets[1:]
    if not len(begins):
        return np.zeros(0, np.int64)
    first = int(begins.min())
    items = plain_bytes(array.values.slice(first, max(0, int(ends.max()) - first)))
    below = np.concatenate([[0], np.cumsum(items)])
    return np.asarray(
        np.take(below, ends - first, mode="clip") - np.take(below, begins - first, mode="clip")
    )


def _check(name: str, sizes: Sizes, row: int) -> None:
    index = int(sizes.argmax())
    if sizes[index] > VALUE_BYTES_MAX:
        raise InvalidError(
            "a value is too large",
            field=name,
            row=row + index,
            bytes=int(sizes[index]),
            max=VALUE_BYTES_MAX,
            hint="keep large values in files of their own, and their addresses in the table",
        )


def _may_expand(kind: pa.DataType) -> bool:
    """Return whether values may share bytes that plain columns repeat."""
    kinds = pa.types
    return (
        kinds.is_dictionary(kind)
        or kinds.is_string_view(kind)
        or kinds.is_binary_view(kind)
        or kinds.is_list_view(kind)
        or kinds.is_large_list_view(kind)
        or any(_may_expand(kind.field(index).type) for index in range(kind.num_fields))
    )


def _has_fixed_width(kind: pa.DataType) -> bool:
    return not kind.num_fields and not _is_text(kind)


def _is_text(kind: pa.DataType) -> bool:
    kinds = pa.types
    return bool(
        kinds.is_string(kind)
        or kinds.is_large_string(kind)
        or kinds.is_binary(kind)
        or kinds.is_large_binary(kind)
    )
