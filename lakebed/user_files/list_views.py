"""List views as lists. Arrow's own cast of views makes offsets that lead outside of the values, and
a program that reads them dies; so nothing casts a view before it was rebuilt here."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidError

ArrayT = TypeVar("ArrayT", pa.Array, pa.ChunkedArray)

ELEMENTS_MAX = 2**31 - 1
"""Most elements of all lists of an array together: offsets are 32 bits wide. Views may name one
value often."""


def has_list_view(type_: pa.DataType) -> bool:
    """Return whether values of a type are, or hold, views of lists."""
    kinds = pa.types
    if kinds.is_list_view(type_) or kinds.is_large_list_view(type_):
        return True
    if kinds.is_dictionary(type_):
        return has_list_view(type_.value_type)
    return any(has_list_view(type_.field(index).type) for index in range(type_.num_fields))


def without_list_views(column: ArrayT) -> ArrayT:
    """Return the same values, lists instead of views at every depth. column: validated in full.

    Raises:
        InvalidError: the views name more elements than a list can hold.
    """
    if not has_list_view(column.type):
        return column
    if isinstance(column, pa.ChunkedArray):
        chunks = [_rebuilt(chunk) for chunk in column.chunks]
        return pa.chunked_array(chunks or [_rebuilt(pa.array([], column.type))])
    return _rebuilt(column)


def _rebuilt(array: pa.Array) -> pa.Array:
    kinds, type_ = pa.types, array.type
    if not has_list_view(type_):
        return array
    if kinds.is_struct(type_):
        members = [_rebuilt(member) for member in array.flatten()]
        fields = [type_.field(n).with_type(m.type) for n, m in enumerate(members)]
        return pa.StructArray.from_arrays(members, fields=fields, mask=array.is_null())
    if kinds.is_map(type_):
        offsets = pa.array(array.offsets.to_numpy(), pa.int32())  # a mask needs them unsliced
        values = _rebuilt(array.items)
        return pa.MapArray.from_arrays(offsets, array.keys, values, mask=array.is_null())
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy()
    offsets = np.zeros(len(array) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if offsets[-1] > ELEMENTS_MAX:
        hint = "give smaller batches"
        raise InvalidError("views name too many elements", elements=offsets[-1], hint=hint)
    starts = pa.array(offsets.astype(np.int32))
    return pa.ListArray.from_arrays(starts, _rebuilt(array.flatten()), mask=array.is_null())
