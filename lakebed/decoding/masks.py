"""Checks and casts of whole columns that say which values are wrong, instead of raising."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidError, UnavailableError
from lakebed.model.keys import KEY_BYTES_MAX, TERMINATOR
from lakebed.model.schema import Field

Mask = npt.NDArray[np.bool_]
Cast = Callable[[pa.Array], pa.Array]
DIGITS_MAX = 76
"""Most digits of a decimal of 256 bits."""
REFUSALS = (pa.ArrowException, InvalidError, UnicodeDecodeError, OverflowError)
"""Errors that a cast raises when a value does not fit."""

INTEGER = "^-?[0-9]+$"
_DECIMAL = r"^[+-]?([0-9]{1,38}\.?[0-9]{0,38}|\.[0-9]{1,38})$"
_KEY_WIDTHS = {"int32": 4, "date32": 4, "int64": 8, "timestamp[us, UTC]": 8}


def cast_or_null(column: pa.Array, cast: Cast, type_: pa.DataType) -> tuple[pa.Array, Mask]:
    """Return a column after a cast, and which of its values the cast refuses: they are null.

    A column that is refused is halved until the wrong values stand alone.
    """
    wrong = np.zeros(len(column), np.bool_)
    parts = list(_cast_parts(column, cast, type_, wrong))
    return (parts[0] if len(parts) == 1 else pa.concat_arrays(parts)), wrong


def _cast_parts(
    column: pa.Array, cast: Cast, type_: pa.DataType, wrong: Mask
) -> Sequence[pa.Array]:
    try:
        return [cast(column)]
    except REFUSALS as error:
        raise_if_memory(error)
    if len(column) == 1:
        wrong[0] = True
        return [pa.nulls(1, type_)]
    half = len(column) // 2
    halves = [pa.concat_arrays([column.slice(0, half)]), pa.concat_arrays([column.slice(half)])]
    return [
        *_cast_parts(copied(halves[0]), cast, type_, wrong[:half]),
        *_cast_parts(copied(halves[1]), cast, type_, wrong[half:]),
    ]


def copied(column: pa.Array) -> pa.Array:
    """Return a column that begins at its buffers' beginning."""
    return column.take(pa.array(np.arange(len(column)))) if column.offset else column


def raise_if_memory(error: BaseException) -> None:
    """Raise UnavailableError if an error says nothing of values: memory is short."""
    if isinstance(error, (MemoryError, pa.ArrowCapacityError)):
        raise UnavailableError(
            "not enough memory to decode records", hint="make `memory_bytes` smaller"
        ) from error


def wide_decimal(scale: int) -> pa.DataType:
    """Return the decimal as which numbers are read that become decimals of a table, or integers.

    Arrow parses a number of up to as many digits as a decimal has, and then appends zeros up to its
    scale without a look at what overflows. With so few digits nothing does. Of which precision the
    number is, only a cast finds out.
    """
    return pa.decimal256(DIGITS_MAX - scale, scale)


def decimals_of(texts: pa.Array, scale: int) -> pa.Array:
    """Return decimals of 256 bits that texts write.

    Raises:
        pa.ArrowInvalid: a text is none of up to 38 digits before and 38 behind the point.
    """
    is_decimal = pc.match_substring_regex(texts, _DECIMAL)
    if not pc.all(is_decimal, min_count=0).as_py():  # bounded: one flag; of nulls alone it is true
        raise pa.ArrowInvalid("not a decimal")
    return texts.cast(pa.decimal256(DIGITS_MAX, scale))


def integers_of(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return integers that texts write in decimal digits. Arrow itself reads `0xf`, too.

    Raises:
        pa.ArrowInvalid: a text is none, or out of the type's range.
    """
    if not pc.all(pc.match_substring_regex(texts, INTEGER), min_count=0).as_py():  # bounded: a flag
        raise pa.ArrowInvalid("not an integer")
    return texts.cast(type_)


def bools(mask: pa.Array) -> Mask:
    """Return Arrow's bools as numpy's. A null is false."""
    filled = mask.fill_null(False) if mask.null_count else mask
    found: Mask = filled.to_numpy(zero_copy_only=False)
    return found


def not_utf8(texts: pa.Array) -> Mask:
    """Return which of some bytes are no UTF-8. A null is none of them."""
    _, wrong = cast_or_null(texts, lambda part: part.cast(pa.string()), pa.string())
    return wrong


def keys_too_long(rows: pa.RecordBatch, fields: Sequence[Field]) -> Mask:
    """Return which rows have a key whose encoding is longer than tables take."""
    fixed = sum(_KEY_WIDTHS.get(str(field.type), len(TERMINATOR)) for field in fields)
    lengths = np.full(len(rows), fixed, np.int64)
    for field in fields:
        if str(field.type) not in _KEY_WIDTHS:
            column = rows.column(field.name).cast(pa.binary())
            zeros = pc.count_substring(column, b"\x00")  # each of them is escaped by another byte
            for counts in (pc.binary_length(column), zeros):
                lengths += counts.fill_null(0).to_numpy(zero_copy_only=False)
    found: Mask = lengths > KEY_BYTES_MAX
    return found
