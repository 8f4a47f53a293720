"""Deletes: of ranges of keys, one change, whatever the ranges hold; and what a delete that rewrites
files took away.

`check` may refuse and changes nothing. `apply` never refuses (protocol H4); for a released format
what it does never changes (H14).
"""

from __future__ import annotations

from itertools import pairwise

import msgspec

from lakebed.errors import ConflictError, InvalidError
from lakebed.model.files import StoredFile
from lakebed.model.keys import prefix_values
from lakebed.model.names import FileName, JobId, PartitionId
from lakebed.model.ranges import KeyRange
from lakebed.statestore.log_entries.file_changes import (
    ReleaseClaim,
    change_each,
    collect_if_unreferenced,
    refuse_known,
)
from lakebed.statestore.log_entries.table_changes import grow
from lakebed.statestore.table_state.placing import split_references
from lakebed.statestore.table_state.range_contents import (
    LeafInRanges,
    digest_of_files,
    leaves_in_ranges,
)
from lakebed.statestore.table_state.state import Moment, TableState

DELETE_FORMAT = 6

Shares = tuple[tuple[FileName, tuple[int, ...]], ...]
"""The weights of the new leaves for each file, from its sample."""


class DeleteRanges(msgspec.Struct, frozen=True, array_like=True, tag="delete_ranges"):
    """All rows go that are there and have keys in one of the ranges. Rows of commits that come
    later stay, whatever their base.

    A leaf that holds others, too, is cut at the ends, as a split does it (H40). A claim ends that
    holds a file of the ranges: the output of its job would bring rows back (H39).

    ranges: least and end of each, encodings of leading row keys; b"": from the least key; None: to
        the greatest. Ascending, none meets another.
    files: stands for the files that the ranges held when their rows were counted, and refuses
        others; b"": whatever they hold.
    shares: by leaf that is cut, as a split has them; of a leaf that changed since, rows are shared
        evenly.
    rows: that the ranges held when they were counted, as queries would have given them.
    """

    ranges: tuple[tuple[bytes, bytes | None], ...]
    files: bytes = b""
    shares: tuple[tuple[PartitionId, Shares], ...] = ()
    rows: int = 0

    @property
    def key_ranges(self) -> tuple[KeyRange, ...]:
        """Return the ranges of encoded keys."""
        return tuple(KeyRange(least, end) for least, end in self.ranges)

    def check(self, state: TableState) -> None:
        self._check_ranges(state)
        for _, shares in self.shares:
            if any(min(weights, default=0) < 0 for _, weights in shares):
                raise InvalidError(
                    "a share is negative", hint="give each new leaf a weight of 0 or more"
                )
        if self.files and self.files != digest_of_files(leaves_in_ranges(state, self.key_ranges)):
            hint = "count again: files came or went since"
            raise ConflictError("the ranges do not hold what was counted", hint=hint)

    def _check_ranges(self, state: TableState) -> None:
        ranges = self.key_ranges
        if not ranges or any(r.is_empty for r in ranges):
            raise InvalidError(
                "no range to delete is given, or one is empty",
                hint="give ranges that begin before they end",
            )
        if any(a.max is None or a.max >= b.min for a, b in pairwise(ranges)):
            raise InvalidError(
                "ranges to delete are not in order, or two meet",
                hint="sort them, and join those that meet",
            )
        fields = state.schema().row_keys
        for end in (end for r in ranges for end in (r.min, r.max or b"")):
            try:
                prefix_values(fields, end)
            except ValueError as error:
                raise InvalidError(
                    "a range to delete ends at no key",
                    problem=error,
                    hint="give the encoded values of leading row keys",
                ) from None

    def apply(self, state: TableState, moment: Moment) -> None:
        shares = dict(self.shares)
        for leaf in leaves_in_ranges(state, self.key_ranges):
            if leaf.points:
                _cut(state, leaf, shares.get(leaf.id, ()))
        held = [one for leaf in leaves_in_ranges(state, self.key_ranges) for one in leaf.held]
        end_claims(state, {job for _, job in held if job is not None}, moment)
        dropped = [reference for reference, _ in held]
        change_each(state, "DELETE FROM file_references", dropped)
        for file in {r.file.name: r.file for r in dropped}.values():
            collect_if_unreferenced(state, file.name, file.size, moment)


class RecordDeleted(msgspec.Struct, frozen=True, array_like=True, tag="record_deleted"):
    """A file with the rows that a job of the same transaction left out, as queries would have given
    them (H42). No row of the table is in it: it is garbage from the start, kept as long as a
    follower has not passed this entry.
    """

    file: StoredFile
    rows: int

    def check(self, state: TableState) -> None:
        refuse_known(state, self.file.name)
        if self.rows < 1:
            raise InvalidError(
                "a file of deleted rows has no rows",
                file=self.file.name.hex(),
                rows=self.rows,
                hint="record files that have rows",
            )

    def apply(self, state: TableState, moment: Moment) -> None:
        collect_if_unreferenced(state, self.file.name, self.file.size, moment)


def end_claims(state: TableState, jobs: set[JobId], moment: Moment) -> None:
    """Let some jobs hold nothing any more: their files are free."""
    for job in sorted(jobs):
        ReleaseClaim(job).apply(state, moment)


def _cut(state: TableState, leaf: LeafInRanges, shares: Shares) -> None:
    node = state.partition(leaf.id)
    assert node is not None, "just read"
    grow(state, node, leaf.points)
    fitting = {name: weights for name, weights in shares if len(weights) == len(leaf.points) + 1}
    split_references(state, leaf.id, fitting)
