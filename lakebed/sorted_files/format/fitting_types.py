"""Decides which types of Arrow become another without losing a value."""

from __future__ import annotations

import pyarrow as pa

from lakebed.sorted_files.format.arrow_schema import is_list

_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}


def fits(got: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether values of a type can become another without loss, at least where they are
    exact.

    Times of a finer unit fit when no value has a remainder, which only the values show.
    """
    kinds = pa.types
    if got == wanted:
        return True
    if kinds.is_dictionary(got):
        return not kinds.is_nested(wanted) and fits(got.value_type, wanted)
    if kinds.is_string(wanted):
        return bool(kinds.is_large_string(got) or kinds.is_string_view(got))
    if kinds.is_binary(wanted):
        return bool(
            kinds.is_large_binary(got)
            or kinds.is_binary_view(got)
            or kinds.is_fixed_size_binary(got)
        )
    if kinds.is_timestamp(wanted):
        if kinds.is_date(got):  # its midnight, where no zone must be known for that
            return wanted.tz is None
        return bool(kinds.is_timestamp(got) and (got.tz is None) == (wanted.tz is None))
    if kinds.is_nested(wanted):
        return _nested_fits(got, wanted)
    return _number_fits(got, wanted)


def _number_fits(got: pa.DataType, wanted: pa.DataType) -> bool:
    kinds = pa.types
    if kinds.is_integer(wanted) and kinds.is_integer(got):
        if kinds.is_signed_integer(wanted):
            signed = kinds.is_signed_integer(got)
            return bool(got.bit_width + (0 if signed else 1) <= wanted.bit_width)
        return bool(kinds.is_unsigned_integer(got) and got.bit_width <= wanted.bit_width)
    if kinds.is_float64(wanted):
        return bool(kinds.is_float32(got))
    if kinds.is_decimal(wanted):
        whole = wanted.precision - wanted.scale
        if kinds.is_integer(got):
            return bool(_INTEGER_DIGITS[got.bit_width] <= whole)
        return bool(
            kinds.is_decimal(got)
            and got.scale <= wanted.scale
            and got.precision - got.scale <= whole
        )
    if kinds.is_date32(wanted):
        return bool(kinds.is_date64(got))
    return bool(kinds.is_time64(wanted) and kinds.is_time(got))


def _nested_fits(got: pa.DataType, wanted: pa.DataType) -> bool:
    kinds = pa.types
    if kinds.is_map(wanted):
        return bool(
            kinds.is_map(got)
            and fits(got.key_type, wanted.key_type)
            and fits(got.item_type, wanted.item_type)
        )
    if kinds.is_struct(wanted):
        members = {member.name: member.type for member in wanted}
        return bool(
            kinds.is_struct(got)
            and len({member.name for member in got}) == got.num_fields
            and all(m.name in members and fits(m.type, members[m.name]) for m in got)
        )
    return is_list(got) and fits(got.value_type, wanted.value_type)
