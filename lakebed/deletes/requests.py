"""Defines what is asked of a delete, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from lakebed.model.names import JobId, RequestDigest, TransactionNumber, digest_of
from lakebed.model.predicates.key_boxes import BOXES_MAX, boxes_of, met_boxes
from lakebed.model.predicates.language import Not
from lakebed.model.ranges import Box, KeyRange, union, whole_key_range
from lakebed.model.schema import Schema
from lakebed.ports.sorted_files import Selection
from lakebed.sorted_files.reading.row_tests import PredicateTest

RANGES_MAX = 16
"""Ranges of whole keys that are deleted by one entry. Each may cut two leaves, which stay cut: a
list of keys is deleted by rewriting files instead (decision 42)."""

AskDelete = Callable[[Schema], Selection]
"""Returns which rows are to go, in the words of a schema. Raises: InvalidError."""


class Deleted(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a delete.

    rows: that went, as queries would have given them.
    exact: whether just these went; else about so many, for files came and went while they were
        counted.
    number: of the log entry from which on they are gone.
    repeated: it had been done before; this call did nothing, and counted no rows.
    """

    rows: int
    number: TransactionNumber
    exact: bool = True
    repeated: bool = False
    job: JobId | None = None


def digest_of_delete(selection: Selection) -> RequestDigest:
    """Return what stands for a delete: the same rows asked for have the same digest (H5)."""
    return digest_of(b"delete", repr(selection.boxes).encode(), repr(selection.where).encode())


def ranges_of(schema: Schema, selection: Selection) -> tuple[KeyRange, ...] | None:
    """Return the ranges of whole keys that a selection is, also one by a test that says nothing but
    keys; None: it is something else, or too many of them."""
    boxes = _exact_boxes(schema, selection)
    found = [None] if boxes is None else [whole_key_range(schema.row_keys, box) for box in boxes]
    ranges = union([r for r in found if r is not None])
    return None if None in found or len(ranges) > RANGES_MAX else ranges


def _exact_boxes(schema: Schema, selection: Selection) -> Sequence[Box] | None:
    """Return boxes that hold the rows of a selection, and no others; None: its test says more than
    keys, or too much of them."""
    where = selection.where
    if where is None:
        return selection.boxes
    if not isinstance(where, PredicateTest):
        return None
    kept, left_out = (boxes_of(one, schema) for one in (where.predicate, Not(where.predicate)))
    # Of boxes that hold what is kept, and no row that is left out, every row is kept.
    if met_boxes(kept, left_out) or len(selection.boxes) * len(kept) > BOXES_MAX:
        return None
    return met_boxes(selection.boxes, kept)
