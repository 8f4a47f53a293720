"""The order of rows by their keys, as numpy finds it: eight bytes of the key at a time.

A digit is eight bytes of a key field as an unsigned number. Rows are sorted by the first digit in
which they differ; only rows that tie are sorted by the next one. On strings this is faster than
`pyarrow.compute.sort_indices` (docs/design/sorted_files.md has the figures).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.model.schema import Field
from lakebed.sorted_files.format.key_encoding import integers

Rows = npt.NDArray[np.intp]
Starts = npt.NDArray[np.int32]
Digits = npt.NDArray[np.uint64]
_DIGIT = 8
_SIGN = np.uint64(1 << 63)


def sorted_order(columns: Sequence[pa.Array]) -> Rows:
    """Return the indices of rows in ascending order of these key columns, without nulls.

    The order of rows with equal keys is not promised.
    """
    rows = len(columns[0])
    ties = _Ties(rows)
    for column in columns:
        if not ties.left:
            break
        ties.refine(_IntegerDigits(column) if _is_fixed(column) else _StringDigits(column))
    return np.arange(rows) if ties.order is None else ties.order


def sorted_rows(batches: list[pa.RecordBatch], fields: Sequence[Field]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of batches in the order of these key fields. Empties the list.

    In memory are at most two copies of the rows, besides what their owners hold.
    """
    table = pa.Table.from_batches(batches)
    batches.clear()
    keys = table.select([field.name for field in fields]).combine_chunks()
    order = sorted_order([column.chunk(0) for column in keys.columns])
    index = pa.int32() if len(order) <= np.iinfo(np.int32).max else pa.int64()
    yield from table.take(pa.array(order, index)).to_batches()


def is_sorted(columns: Sequence[pa.Array]) -> bool:
    """Return whether rows ascend by these key columns; equal neighbours are fine."""
    rows = len(columns[0])
    pairs: pa.Array | None = None  # of neighbours not distinguished yet, by the index of the first
    if rows < 2:
        return True
    for column in columns:
        before, after = column.slice(0, rows - 1), column.slice(1)
        if pairs is not None:
            before, after = before.take(pairs), after.take(pairs)
        rises = pc.less(before, after)
        if rises.true_count == len(rises):
            return True
        rest = np.flatnonzero(~_booleans(rises))
        rest_array = pa.array(rest)
        equal = pc.equal(before.take(rest_array), after.take(rest_array))
        if not _booleans(equal).all():
            return False
        pairs = rest_array if pairs is None else pairs.take(rest_array)
    return True


class _IntegerDigits:
    def __init__(self, column: pa.Array) -> None:
        self._numbers = integers(column)

    def read(self, rows: Rows | None, skip: int) -> tuple[Digits | None, int]:
        if skip:
            return None, skip
        numbers = self._numbers if rows is None else self._numbers[rows]
        return numbers.astype(np.int64).view(np.uint64) ^ _SIGN, 1


class _StringDigits:
    """Bytes of strings, after what they share, padded with zeros; then the length, which tells a
    string from the same one with more zeros."""

    def __init__(self, column: pa.Array) -> None:
        _, offsets, data = column.buffers()
        self._starts = np.frombuffer(offsets, np.int32, len(column) + 1, column.offset * 4)
        self._raw = np.frombuffer(data if data is not None else b"", np.uint8)
        self._lengths = np.diff(self._starts)
        even = int(self._lengths.min()) == int(self._lengths.max())
        self._length = int(self._lengths[0]) if even else 0
        self._done = False

    def read(self, rows: Rows | None, skip: int) -> tuple[Digits | None, int]:
        """Return the next digit in which these rows differ, if any, and where to go on."""
        if self._done:
            return None, skip
        if rows is None:
            starts, lengths = self._starts[:-1], self._lengths
        else:
            starts, lengths = self._starts[rows], self._lengths[rows]
        longest = int(lengths.max())
        while skip < longest:
            if rows is None and skip + _DIGIT <= self._length:
                digits = self._evenly_spaced(skip)
            else:
                digits = self._at(starts, lengths, skip)
            differ = int(digits.min()) ^ int(digits.max())
            shared = (64 - differ.bit_length()) // 8
            if shared == 0:
                return digits, skip + _DIGIT
            skip += shared
        self._done = True
        return lengths.astype(np.uint64), skip

    def _evenly_spaced(self, skip: int) -> Digits:
        """Return a digit of each row where all are of one length: no offsets need be looked up."""
        begin = int(self._starts[0]) + skip
        rows = len(self._starts) - 1
        return np.ndarray((rows,), ">u8", self._raw, begin, (self._length,)).astype(np.uint64)

    def _at(self, starts: Starts, lengths: Starts, skip: int) -> Digits:
        """Return a digit of each row, put together of the two aligned words that it touches."""
        left = lengths - skip
        at = starts + np.int64(skip - int(self._starts[0]))
        if int(left.min()) <= 0:
            at[left <= 0] = 0
        word, shift = at >> 3, ((at & 7) << 3).astype(np.uint64)
        digits: Digits = self._words[word] >> shift
        digits |= self._words[word + 1] << (np.uint64(63) - shift) << np.uint64(1)
        digits.byteswap(inplace=True)
        if int(left.min()) < _DIGIT:
            cut = (8 * np.clip(_DIGIT - left, 0, _DIGIT - 1)).astype(np.uint64)
            digits = np.where(left > 0, digits >> cut << cut, np.uint64(0))
        return digits

    @cached_property
    def _words(self) -> Digits:
        """Return the bytes of all strings as little-endian words, and two more."""
        raw = self._raw[self._starts[0] : self._starts[-1]]
        words = np.zeros(len(raw) // _DIGIT + 2, "<u8")
        words.view(np.uint8)[: len(raw)] = raw
        return words


class _Ties:
    """An order of rows, and which neighbours in it are not distinguished yet."""

    def __init__(self, rows: int) -> None:
        self.order: Rows | None = None
        self._rows = rows
        self._indices: Rows = np.empty(0, np.intp)
        self._ties: Digits = np.empty(0, np.uint64)

    @property
    def left(self) -> bool:
        """Return whether any rows tie."""
        return self._rows > 1 if self.order is None else bool(len(self._indices))

    def refine(self, column: _IntegerDigits | _StringDigits) -> None:
        """Sort rows that tie by one more field."""
        skip = 0
        while self.left:
            rows = None if self.order is None else self.order[self._indices]
            digits, skip = column.read(rows, skip)
            if digits is None:
                return
            if rows is None or self.order is None:
                self._begin(digits)
            else:
                self._go_on(self.order, rows, digits)

    def _begin(self, digits: Digits) -> None:
        """Sort all rows. The row's number is packed into the low bits, so that numbers are sorted
        and not indices, which is twice as fast; the digit's own low bits come after."""
        digits -= digits.min()
        row_bits = (self._rows - 1).bit_length()
        lost = np.uint64(max(0, int(digits.max()).bit_length() + row_bits - 64))
        packed = digits >> lost
        packed <<= np.uint64(row_bits)
        packed |= np.arange(self._rows, dtype=np.uint64)
        packed.sort()
        self.order = (packed & np.uint64((1 << row_bits) - 1)).view(np.int64)
        packed >>= np.uint64(row_bits)
        self._keep_ties(None, packed)
        if lost and len(self._indices):
            rows = self.order[self._indices]
            low = digits[rows] & ((np.uint64(1) << lost) - np.uint64(1))
            self._go_on(self.order, rows, low)

    def _go_on(self, order: Rows, rows: Rows, digits: Digits) -> None:
        digits = digits - digits.min()
        ties = self._ties
        bits = int(digits.max()).bit_length()
        if bits + int(ties[-1]).bit_length() > 64:
            digits = _ranks(digits)
            bits = int(digits.max()).bit_length()
        both = (ties << np.uint64(bits)) | digits
        within = np.argsort(both)
        order[self._indices] = rows[within]
        self._keep_ties(self._indices, both[within])

    def _keep_ties(self, indices: Rows | None, ascending: Digits) -> None:
        """Remember which of these neighbours are equal. indices: theirs; None: all rows."""
        same = ascending[1:] == ascending[:-1]
        if not same.any():
            self._indices, self._ties = self._indices[:0], self._ties[:0]
            return
        tied = np.zeros(len(ascending), bool)
        tied[1:] = same
        tied[:-1] |= same
        self._indices = np.flatnonzero(tied) if indices is None else indices[tied]
        begins = np.ones(len(ascending), np.uint64)
        begins[1:] = ~same
        self._ties = np.cumsum(begins[tied], dtype=np.uint64)


def _ranks(digits: Digits) -> Digits:
    """Return numbers below their count that are in the same order, equal where digits are."""
    order = np.argsort(digits)
    ascending = digits[order]
    rises = np.zeros(len(digits), np.uint64)
    rises[1:] = ascending[1:] != ascending[:-1]
    ranks = np.empty(len(digits), np.uint64)
    ranks[order] = np.cumsum(rises, dtype=np.uint64)
    return ranks


def _is_fixed(column: pa.Array) -> bool:
    return not (pa.types.is_string(column.type) or pa.types.is_binary(column.type))


def _booleans(mask: pa.Array) -> npt.NDArray[np.bool_]:
    bits: npt.NDArray[np.bool_] = mask.to_numpy(zero_copy_only=False)
    return bits
