"""Pages of a column chunk: values that lie in segments, which are Arrow arrays, become bytes.

`firsts` has the row that each segment begins with, and the number of all rows last. `values` has
addresses of numbers, or of 32-bit offsets into bytes at `bytes_`; `bits` addresses of validity, 0
where no value is null, and `skip` the place of the first row's bit there. Every page but the last
has `rows` rows. Pages are written one behind the other from the address `to` on; `ends` gets the
places where they end, `kept` how many values of each are not null.
"""

from __future__ import annotations

import numpy as np

from lakebed.kernels.compiling import CHECKED, kernel, part
from lakebed.kernels.keys import Numbers
from lakebed.kernels.memory import (
    copy_32,
    load_i8,
    load_i16,
    load_i32,
    load_i64,
    load_u8,
    load_u16,
    load_u64,
    store_32,
    store_64,
    store_u8,
    trailing_zeros,
)
from lakebed.kernels.packing import PAGE_ROOM, Levels, put_deltas, put_levels

PLAIN, DELTAS = 0, 1
"""Of numbers: PLAIN, DELTA_BINARY_PACKED. Strings are DELTA_BYTE_ARRAY."""
UNBOUNDED, SORTED, UNSORTED = 0, 1, 2
"""Whether a page's least and greatest value are told, and are its first and last."""

_WORD = 8


@part
def _is_set(bits: int, place: int) -> int:
    return (load_u8(bits + (place >> 3)) >> (place & 7)) & 1


@part
def _number(width: int, unsigned: int, at: int) -> int:
    """Return a number of so many bytes; those of four are signed: so Parquet stores them all."""
    if width == 8:
        return load_i64(at)
    if width == 4:
        return load_i32(at)
    if width == 2:
        return load_u16(at) if unsigned else load_i16(at)
    return load_u8(at) if unsigned else load_i8(at)


@part
def _load_numbers(
    width: int,
    unsigned: int,
    values: int,
    bits: int,
    skip: int,
    first: int,
    last: int,
    loaded: Numbers,
    kept: int,
    levels: Levels,
    row: int,
) -> int:
    """Append the values of a segment's rows that are not null. Returns how many are loaded."""
    if bits == 0:
        for place in range(first, last):
            loaded[kept + place - first] = _number(width, unsigned, values + width * place)
        levels[row : row + last - first] = 1
        return kept + last - first
    for place in range(first, last):
        there = _is_set(bits, skip + place)
        loaded[kept] = _number(width, unsigned, values + width * place)
        levels[row + place - first] = there
        kept += there
    return kept


@part
def _segment_of(firsts: Numbers, row: int) -> int:
    segment = 0
    while firsts[segment + 1] <= row:
        segment += 1
    return segment


@part
def _load_number_page(
    width: int,
    unsigned: int,
    values: Numbers,
    bits: Numbers,
    skip: Numbers,
    firsts: Numbers,
    row: int,
    last: int,
    loaded: Numbers,
    levels: Levels,
) -> int:
    """Load the values of some rows that are not null. Returns how many."""
    begin, count, segment = row, 0, _segment_of(firsts, row)
    while row < last:
        start = firsts[segment]
        stop = min(last, firsts[segment + 1])
        count = _load_numbers(
            width,
            unsigned,
            values[segment],
            bits[segment],
            skip[segment],
            row - start,
            stop - start,
            loaded,
            count,
            levels,
            row - begin,
        )
        row = stop
        segment += 1
    return count


@kernel
def encode_numbers(
    encoding: int,
    width: int,
    unsigned: int,
    nullable: int,
    bounded: int,
    rows: int,
    values: Numbers,
    bits: Numbers,
    skip: Numbers,
    firsts: Numbers,
    to: int,
    room: int,
    ends: Numbers,
    kept: Numbers,
    bounds: Numbers,
) -> None:
    """Write pages of numbers. bounds: gets two for each page, the least and the greatest."""
    loaded = np.empty(rows + 1, np.int64)
    levels = np.empty(rows, np.uint8)
    at = to
    for page in range(len(ends)):
        begin = page * rows
        last = min(firsts[-1], begin + rows)
        count = _load_number_page(
            width, unsigned, values, bits, skip, firsts, begin, last, loaded, levels
        )
        if nullable:
            at = put_levels(at, levels, last - begin, count)
        if encoding == DELTAS:
            at = put_deltas(at, loaded, count, width < 8)
        elif width == 8:
            for place in range(count):
                store_64(at + 8 * place, loaded[place])
            at += 8 * count
        else:
            for place in range(count):
                store_32(at + 4 * place, loaded[place])
            at += 4 * count
        if bounded != UNBOUNDED:
            least = greatest = loaded[0]
            for place in range(1, count):
                least = min(least, loaded[place])
                greatest = max(greatest, loaded[place])
            bounds[2 * page] = least
            bounds[2 * page + 1] = greatest
        ends[page] = at - to
        kept[page] = count
        if CHECKED:
            assert at - to <= room


@part
def _load_strings(
    values: int,
    bytes_: int,
    bits: int,
    skip: int,
    first: int,
    last: int,
    starts: Numbers,
    lengths: Numbers,
    kept: int,
    levels: Levels,
    row: int,
) -> int:
    """Append addresses and lengths of a segment's strings that are not null. Returns how many."""
    start = load_i32(values + 4 * first)
    for place in range(first, last):
        end = load_i32(values + 4 * place + 4)
        starts[kept] = bytes_ + start
        lengths[kept] = end - start
        if CHECKED:
            assert 0 <= start <= end
        start = end
        there = 1 if bits == 0 else _is_set(bits, skip + place)
        levels[row + place - first] = there
        kept += there
    return kept


@part
def load_string_page(
    values: Numbers,
    bytes_: Numbers,
    bits: Numbers,
    skip: Numbers,
    firsts: Numbers,
    row: int,
    last: int,
    starts: Numbers,
    lengths: Numbers,
    levels: Levels,
) -> int:
    """Load where the strings of some rows are that are not null. Returns how many."""
    begin, count, segment = row, 0, _segment_of(firsts, row)
    while row < last:
        start = firsts[segment]
        stop = min(last, firsts[segment + 1])
        count = _load_strings(
            values[segment],
            bytes_[segment],
            bits[segment],
            skip[segment],
            row - start,
            stop - start,
            starts,
            lengths,
            count,
            levels,
            row - begin,
        )
        row = stop
        segment += 1
    return count


@part
def shared_bytes(a: int, b: int, both: int) -> int:
    """Return how many first bytes two strings share, of `both` at most."""
    place = 0
    while place + _WORD <= both:
        differ = load_u64(a + place) ^ load_u64(b + place)
        if differ:
            return place + (trailing_zeros(differ) >> 3)
        place += _WORD
    while place < both and load_u8(a + place) == load_u8(b + place):
        place += 1
    return place


@part
def is_below(a: int, a_length: int, b: int, b_length: int) -> bool:
    both = min(a_length, b_length)
    shared = shared_bytes(a, b, both)
    if shared == both:
        return a_length < b_length
    return load_u8(a + shared) < load_u8(b + shared)


@part
def copy_bytes(to: int, source: int, size: int) -> None:
    """Copy exactly so many bytes."""
    if size >= 32:
        place = 0
        while place + 32 <= size:
            copy_32(to + place, source + place)
            place += 32
        copy_32(to + size - 32, source + size - 32)
    elif size >= 8:
        place = 0
        while place + 8 <= size:
            store_64(to + place, load_i64(source + place))
            place += 8
        store_64(to + size - 8, load_i64(source + size - 8))
    elif size >= 4:
        store_32(to, load_i32(source))
        store_32(to + size - 4, load_i32(source + size - 4))
    else:
        for place in range(size):
            store_u8(to + place, load_u8(source + place))


@part
def _put_prefixed(to: int, starts: Numbers, lengths: Numbers, count: int, prefixes: Numbers) -> int:
    """Write what each string shares with the one before, and the rest. Changes both lists."""
    before = before_length = 0
    for place in range(count):
        start, length = starts[place], lengths[place]
        shared = shared_bytes(before, start, min(before_length, length))
        prefixes[place] = shared
        starts[place] = start + shared
        lengths[place] = length - shared
        before, before_length = start, length
    to = put_deltas(to, prefixes, count, True)
    to = put_deltas(to, lengths, count, True)
    for place in range(count):
        copy_bytes(to, starts[place], lengths[place])
        to += lengths[place]
    return to


@part
def _bound_strings(
    bounded: int, starts: Numbers, lengths: Numbers, count: int, bounds: Numbers, page: int
) -> None:
    least = 0
    greatest = count - 1
    if bounded == UNSORTED:
        greatest = 0
        for place in range(1, count):
            start, length = starts[place], lengths[place]
            if is_below(start, length, starts[least], lengths[least]):
                least = place
            elif is_below(starts[greatest], lengths[greatest], start, length):
                greatest = place
    bounds[4 * page] = starts[least]
    bounds[4 * page + 1] = lengths[least]
    bounds[4 * page + 2] = starts[greatest]
    bounds[4 * page + 3] = lengths[greatest]


@kernel
def encode_strings(
    nullable: int,
    bounded: int,
    rows: int,
    values: Numbers,
    bytes_: Numbers,
    bits: Numbers,
    skip: Numbers,
    firsts: Numbers,
    to: int,
    room: int,
    ends: Numbers,
    kept: Numbers,
    sizes: Numbers,
    bounds: Numbers,
) -> None:
    """Write pages of strings. sizes: gets the bytes of each page's strings. bounds: gets address
    and length of each page's least string, and of its greatest."""
    starts = np.empty(rows + 1, np.int64)
    lengths = np.empty(rows + 1, np.int64)
    prefixes = np.empty(rows + 1, np.int64)
    levels = np.empty(rows, np.uint8)
    at = to
    for page in range(len(ends)):
        begin = page * rows
        last = min(firsts[-1], begin + rows)
        count = load_string_page(
            values, bytes_, bits, skip, firsts, begin, last, starts, lengths, levels
        )
        size = 0
        for place in range(count):
            size += lengths[place]
        sizes[page] = size
        if bounded != UNBOUNDED:
            _bound_strings(bounded, starts, lengths, count, bounds, page)
        if CHECKED:
            assert at - to + size + 2 * (9 * count + PAGE_ROOM) <= room
        if nullable:
            at = put_levels(at, levels, last - begin, count)
        at = _put_prefixed(at, starts, lengths, count, prefixes)
        ends[page] = at - to
        kept[page] = count
