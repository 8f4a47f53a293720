"""Decides which rows of a file are wanted: ranges of whole keys, filters on further key fields, a
test of values."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.model.keys import encode_field, successor
from lakebed.model.predicates.bounds import BoundsOf, FieldBounds
from lakebed.model.ranges import EVERYTHING, Box, KeyRange, span_of, union
from lakebed.model.schema import Field
from lakebed.sorted_files.format.key_encoding import encode_row, rows_in, values_between
from lakebed.sorted_files.reading.row_tests import RowTest


class KeyBoxes:
    """Boxes of key values, made ready once for all files of a request. fields: the row keys.

    reach: others, which hold all keys that are wanted; None: `boxes` are those.
    """

    def __init__(
        self, fields: Sequence[Field], boxes: Sequence[Box], reach: Sequence[Box] | None = None
    ) -> None:
        spans = [span_of(fields, box) for box in boxes]
        reached = spans if reach is None else [span_of(fields, box) for box in reach]
        self._spans = union([span for span, _ in reached])
        self._ends = [span.max for span in self._spans if span.max is not None]
        self.are_whole_keys = all(exact for _, exact in reached)
        """Whether the ranges of whole keys hold nothing but what is reached."""
        self.tested: tuple[tuple[KeyRange, Box], ...] = ()
        """Boxes with the range of whole keys around each, where some hold fewer keys than that."""
        if not all(exact for _, exact in spans):
            self.tested = tuple((span, box) for (span, _), box in zip(spans, boxes, strict=True))

    @property
    def is_empty(self) -> bool:
        """Return whether no key lies in any range."""
        return not self._spans

    def meets(self, key_range: KeyRange) -> list[KeyRange]:
        """Return the ranges of whole keys in a key range. There may be thousands of others."""
        low = bisect_right(self._ends, key_range.min)
        end = len(self._spans)
        if key_range.max is not None:
            end = bisect_left(self._spans, key_range.max, low, key=lambda span: span.min)
        return [key_range.meets(span) for span in self._spans[low:end]]


class RowFilter:
    """Rows in some key ranges, in any of some boxes, that a test keeps.

    fields: the row keys; key_ranges: ascending, none meets another; boxes: None for all rows.
    """

    def __init__(
        self,
        fields: Sequence[Field],
        key_ranges: Sequence[KeyRange],
        boxes: KeyBoxes | None,
        test: RowTest | None = None,
    ) -> None:
        self.fields = fields
        self._test = test
        self.ranges: tuple[KeyRange, ...] = tuple(key_ranges)
        self._boxes: tuple[tuple[KeyRange, Box], ...] = ()
        keys = {field.name for field in fields}
        self._bounds_say_more = test is not None
        self.is_whole = True
        """Whether every key of the key ranges is wanted, whatever its columns hold."""
        if boxes is not None:
            self.ranges = union([met for key_range in key_ranges for met in boxes.meets(key_range)])
            self._boxes = boxes.tested
            self.is_whole = self.ranges == tuple(key_ranges)
            if test is not None and boxes.are_whole_keys and test.fields <= keys:
                self._bounds_say_more = False  # the ranges are all that it says of keys
        self._ends = [r.max for r in self.ranges if r.max is not None]

    def wants_all(self, first: bytes, last: bytes) -> bool:
        """Return whether every row with a key from first to last is wanted."""
        return not self.asks_columns and self.covers(first, last)

    def covers(self, first: bytes, last: bytes) -> bool:
        """Return whether every key from first to last is wanted, whatever its columns hold."""
        met = self._met(first, last)
        return bool(met) and met[0].contains(first) and met[0].contains(last)

    def may_want(self, first: bytes, last: bytes) -> bool:
        """Return whether some row with a key from first to last may be wanted."""
        return bool(self._met(first, last))

    def _met(self, first: bytes, last: bytes) -> tuple[KeyRange, ...]:
        """Return the ranges that have keys from first to last. There may be thousands of others."""
        low = bisect_right(self._ends, first)  # only the last range may have no end
        high = bisect_right(self.ranges, last, low, key=lambda r: r.min)
        return self.ranges[low:high]

    @property
    def asks_columns(self) -> bool:
        """Return whether more than the range of whole keys decides."""
        return bool(self._boxes) or self._test is not None

    @property
    def asks_bounds(self) -> bool:
        """Return whether `may_want_columns` may rule out what the ranges of whole keys do not."""
        return bool(self._boxes) or self._bounds_say_more

    @property
    def bounded_fields(self) -> frozenset[str]:
        """Return the fields whose bounds may rule out what the ranges of whole keys do not."""
        keys = {field.name for field in self.fields} if self._boxes else set()
        test = self._test.fields if self._test is not None and self._bounds_say_more else ()
        return frozenset(keys.union(test))

    def may_want_columns(self, bounds: BoundsOf) -> bool:
        """Return whether some row of a group whose fields have these bounds may be wanted."""
        if self._test is not None and not self._test.may_keep(bounds):
            return False
        if not self._boxes:
            return True
        spans = [_encoded(field, bounds(field.name)) for field in self.fields]
        return any(
            all(r.overlaps(span) for r, span in zip(box, spans, strict=True))
            for _, box in self._boxes
        )

    def apply(self, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        """Return the rows of a sorted batch that are wanted, in order."""
        slices = [batch.slice(start, end - start) for start, end in self.spans(batch)]
        return [kept for some in slices for kept in self.kept(some)]

    def spans(self, keys: pa.RecordBatch) -> list[tuple[int, int]]:
        """Return from which to below which rows of a sorted batch keys are wanted. keys: at least
        the columns of the row keys."""
        if not len(keys):
            return []
        met = self.ranges
        if len(met) > 1:
            met = self._met(*(encode_row(keys, self.fields, index) for index in (0, -1)))
        found = [rows_in(keys, self.fields, r) for r in met]
        return [(start, end) for start, end in found if start < end]

    def kept(self, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        """Return those of some rows whose keys are wanted that the columns do not rule out."""
        found = [some for some in self._in_boxes(batch) if len(some)]
        if self._test is None:
            return found
        return [kept for some in found if len(kept := self._test.apply(some))]

    def _in_boxes(self, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        if not self._boxes:
            return [batch]
        wanted = np.zeros(len(batch), bool)
        first, last = (encode_row(batch, self.fields, index) for index in (0, -1))
        for span, box in self._boxes:
            if last < span.min or (span.max is not None and first >= span.max):
                continue
            inside = None
            for field, r in zip(self.fields, box, strict=True):
                if r.min or r.max is not None:
                    mask = values_between(field, batch.column(field.name), r)
                    inside = mask if inside is None else pc.and_(inside, mask)
            if inside is None:
                return [batch]
            wanted |= inside.to_numpy(zero_copy_only=False)
        return [batch] if wanted.all() else [batch.filter(pa.array(wanted))]


def _encoded(field: Field, bounds: FieldBounds) -> KeyRange:
    """Return the range of a key field's encodings."""
    least, most = bounds.least, bounds.most
    if not isinstance(least, (int, str, bytes)) or not isinstance(most, (int, str, bytes)):
        return EVERYTHING
    after = successor(field.type, most)
    return KeyRange(
        encode_field(field.type, least),
        None if after is None else encode_field(field.type, after),
    )
