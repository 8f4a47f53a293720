"""Pages of a column chunk of strings: DELTA_BYTE_ARRAY. Arguments as in `encoding`."""

from __future__ import annotations

import numpy as np

from lakebed.kernels.encoding import (
    UNBOUNDED,
    UNSORTED,
    ColumnSegments,
    Payloads,
    is_set,
    segment_of,
)
from lakebed.kernels.keys import Numbers
from lakebed.kernels.packing import PAGE_ROOM, Levels, put_deltas, put_levels, put_zeros
from lakebed.kernels.toolchain.compiling import CHECKED, kernel, part
from lakebed.kernels.toolchain.memory import (
    copy_32,
    load_i32,
    load_i64,
    load_u8,
    load_u64,
    store_32,
    store_64,
    store_u8,
    trailing_zeros,
)

_WORD = 8


@part
def _load_strings(
    offsets: int,
    bytes_: int,
    bits: int,
    skip: int,
    starts: Numbers,
    lengths: Numbers,
    levels: Levels,
) -> int:
    """Load addresses and lengths of those of some strings of a segment that are not null; return
    how many.

    offsets: the address of the first one's. skip: the index of its bit. levels: one for each.
    """
    kept = 0
    start = load_i32(offsets)
    for row in range(len(levels)):
        end = load_i32(offsets + 4 * row + 4)
        starts[kept] = bytes_ + start
        lengths[kept] = end - start
        if CHECKED:
            assert 0 <= start <= end
        start = end
        there = 1 if bits == 0 else is_set(bits, skip + row)
        levels[row] = there
        kept += there
    return kept


@part
def load_string_page(
    segments: ColumnSegments, row: int, last: int, starts: Numbers, lengths: Numbers, levels: Levels
) -> int:
    """Load where the strings of some rows are that are not null. Returns how many."""
    firsts = segments.firsts
    begin, count, segment = row, 0, segment_of(firsts, row)
    while row < last:
        first = row - firsts[segment]
        stop = min(last, firsts[segment + 1])
        count += _load_strings(
            segments.values[segment] + 4 * first,
            segments.bytes_[segment],
            segments.bits[segment],
            segments.skip[segment] + first,
            starts[count:],
            lengths[count:],
            levels[row - begin : stop - begin],
        )
        row = stop
        segment += 1
    return count


@part
def shared_bytes(a: int, b: int, both: int) -> int:
    """Return how many first bytes two strings share, of `both` at most."""
    offset = 0
    while offset + _WORD <= both:
        differ = load_u64(a + offset) ^ load_u64(b + offset)
        if differ:
            return offset + (trailing_zeros(differ) >> 3)
        offset += _WORD
    while offset < both and load_u8(a + offset) == load_u8(b + offset):
        offset += 1
    return offset


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
        offset = 0
        while offset + 32 <= size:
            copy_32(to + offset, source + offset)
            offset += 32
        copy_32(to + size - 32, source + size - 32)
    elif size >= 8:
        offset = 0
        while offset + 8 <= size:
            store_64(to + offset, load_i64(source + offset))
            offset += 8
        store_64(to + size - 8, load_i64(source + size - 8))
    elif size >= 4:
        store_32(to, load_i32(source))
        store_32(to + size - 4, load_i32(source + size - 4))
    else:
        for offset in range(size):
            store_u8(to + offset, load_u8(source + offset))


@part
def _share_beginnings(starts: Numbers, lengths: Numbers, count: int, shared: Numbers) -> int:
    """Write how many bytes each string shares with the one before; return how many all do."""
    before = before_length = all_ = 0
    for index in range(count):
        start, length = starts[index], lengths[index]
        shared[index] = shared_bytes(before, start, min(before_length, length))
        all_ += shared[index]
        before, before_length = start, length
    return all_


@part
def _put_prefixed(to: int, starts: Numbers, lengths: Numbers, count: int, prefixes: Numbers) -> int:
    """Write what each string shares with the one before, and the rest. Changes all lists.

    Where they share less than a byte each, they are said to share nothing: to tell what they do
    takes more, and the rest is then copied, and read, all at once.
    """
    if _share_beginnings(starts, lengths, count, prefixes) < count:
        to = put_zeros(to, count)
        to = put_deltas(to, lengths, count, True)
        return _put_bytes(to, starts, lengths, count)
    to = put_deltas(to, prefixes, count, True)
    for index in range(count):
        lengths[index] -= prefixes[index]
    to = put_deltas(to, lengths, count, True)
    for index in range(count):
        copy_bytes(to, starts[index] + prefixes[index], lengths[index])
        to += lengths[index]
    return to


@part
def _put_bytes(to: int, starts: Numbers, lengths: Numbers, count: int) -> int:
    """Copy strings, those together that lie one behind the other."""
    index = 0
    while index < count:
        start = starts[index]
        end = start + lengths[index]
        index += 1
        while index < count and starts[index] == end:
            end += lengths[index]
            index += 1
        copy_bytes(to, start, end - start)
        to += end - start
    return to


@part
def _bound_strings(
    bounded: int, starts: Numbers, lengths: Numbers, count: int, bounds: Numbers, page: int
) -> None:
    least = 0
    greatest = count - 1
    if bounded == UNSORTED:
        greatest = 0
        for index in range(1, count):
            start, length = starts[index], lengths[index]
            if is_below(start, length, starts[least], lengths[least]):
                least = index
            elif is_below(starts[greatest], lengths[greatest], start, length):
                greatest = index
    bounds[4 * page] = starts[least]
    bounds[4 * page + 1] = lengths[least]
    bounds[4 * page + 2] = starts[greatest]
    bounds[4 * page + 3] = lengths[greatest]


@kernel
def encode_strings(
    nullable: bool,
    bounded: int,
    segments: ColumnSegments,
    payloads: Payloads,
    sizes: Numbers,
    bounds: Numbers,
) -> None:
    """Write pages of strings. sizes: gets the bytes of each page's strings. bounds: gets address
    and length of each page's least string, and of its greatest."""
    rows, to, room, ends, kept = payloads
    starts = np.empty(rows + 1, np.int64)
    lengths = np.empty(rows + 1, np.int64)
    prefixes = np.empty(rows + 1, np.int64)
    levels = np.empty(rows, np.uint8)
    at = to
    for page in range(len(ends)):
        begin = page * rows
        last = min(segments.firsts[-1], begin + rows)
        count = load_string_page(segments, begin, last, starts, lengths, levels)
        size = 0
        for index in range(count):
            size += lengths[index]
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
