"""One merge by several processes, into one file.

The range of keys is cut. This process merges some of the ranges straight into its file; helpers
merge others into files of their own, whose row groups are joined to it as bytes, in order. Each row
key lies in one range, so the rows are those that one process would give.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from itertools import count

from lakebed.errors import CorruptError, LakebedError, ObjectMissingError, UnavailableError
from lakebed.model.files import FilePart
from lakebed.model.ranges import EVERYTHING, KeyRange
from lakebed.sorted_files.conditions import RowFilter
from lakebed.sorted_files.merge_helpers import RANGE_SECONDS_MAX, Helper, MergeHelpers
from lakebed.sorted_files.part_sources import PartRead
from lakebed.sorted_files.range_messages import (
    Answer,
    MergeTold,
    RangeFailed,
    RangeMerged,
    RangeTold,
)
from lakebed.sorted_files.stored_groups import stored_groups
from lakebed.sorted_files.stretch_merge import StretchMerge
from lakebed.sorted_files.tails import Tails
from lakebed.sorted_files.writing import Content

RANGE_GROUPS_MIN = 2
"""A range has so many row groups at least: its last one is not full. Those at the end have half:
whoever is done last is waited for."""
RANGES_EACH = 6
"""For each process: none waits long for the last range of another, and cuts are few: of each input
some pages are decoded on both sides of one."""

ANSWER_SECONDS_MAX = RANGE_SECONDS_MAX + 60.0
"""A helper that does not even read is not waited for longer."""

_serial = count()


def merged_together(
    merge: StretchMerge, helpers: MergeHelpers, told: MergeTold
) -> Iterator[Content]:
    """Yield rows and row groups in the order of their keys. told: the same merge, for helpers."""
    processes = helpers.count + 1
    count_max = min(RANGES_EACH * processes, merge.row_groups() // RANGE_GROUPS_MIN)
    ranges = merge.ranges(count_max, halved=processes)
    board = Board(ranges, min(processes, len(ranges)))
    try:
        with suppress(RuntimeError):  # there is no thread to be had
            helpers.each(partial(_help, helpers, board, told), at_most=len(ranges) - 1)
        for place, within in enumerate(ranges):
            taken = board.taken_by_helper(place)
            answer = None if taken is None else _answer(taken)
            joined = None
            if isinstance(answer, RangeMerged):
                joined = _joined(merge, helpers, answer)
            if joined is None:
                yield from merge.rows(within)
            else:
                yield from joined
                _forget(helpers, answer)
    finally:
        board.end()
        for answer in board.answers():
            _forget(helpers, answer)


def _answer(taken: Future[Answer]) -> Answer | None:
    """Return what a helper answers; None: nothing, as if it were not there."""
    try:
        return taken.result(ANSWER_SECONDS_MAX)
    except TimeoutError:
        return None


class Board:
    """Ranges that are taken once each: here in order, by helpers those between, then the last.

    So a helper is ahead of what is read here, and nobody waits while ranges are left.
    """

    def __init__(self, ranges: Sequence[KeyRange], processes: int) -> None:
        self._ranges = ranges
        places = range(len(ranges))
        between = [place for place in places if place % processes]
        self._order = between + [place for place in reversed(places) if not place % processes]
        self._lock = threading.Lock()
        self._taken: dict[int, Future[Answer] | None] = {}
        self.is_over = False

    def taken_by_helper(self, place: int) -> Future[Answer] | None:
        """Return the answer to come for a range; None: it is taken now."""
        with self._lock:
            return self._taken.setdefault(place, None)

    def take(self) -> tuple[KeyRange, Future[Answer]] | None:
        """Return a range for a helper, and where its answer goes; None: there are no more."""
        with self._lock:
            if self.is_over:
                return None
            for place in self._order:
                if place not in self._taken:
                    found = self._taken[place] = Future()
                    return self._ranges[place], found
        return None

    def end(self) -> None:
        """Give out no more."""
        with self._lock:
            self.is_over = True

    def answers(self) -> Iterator[Answer]:
        """Yield the answers that are there."""
        for found in self._taken.values():
            if found is not None and found.done():
                yield found.result()


def _help(helpers: MergeHelpers, board: Board, told: MergeTold, helper: Helper) -> None:
    """Let a helper merge ranges until there are no more. Raises: OSError: it is lost."""
    while (taken := board.take()) is not None:
        within, found = taken
        answer: Answer = RangeFailed("the helper is lost")
        try:
            answer = helper.merged(told, RangeTold(within, f"ranges/{next(_serial)}"))
        finally:
            found.set_result(answer)
            if board.is_over:
                _forget(helpers, answer)
        if isinstance(answer, RangeFailed):
            raise BrokenPipeError(answer.problem)


def _joined(
    merge: StretchMerge, helpers: MergeHelpers, answer: RangeMerged
) -> Iterator[Content] | None:
    """Return the row groups of a helper's file; None: it cannot be read."""
    written = answer.written
    if written is None:
        return iter(())
    (rows,) = written.regions
    assert rows is not None, "a file has rows"
    part = FilePart(written.file, answer.path, EVERYTHING, rows.rows)
    try:
        tail = Tails(helpers.scratch, bytes_max=0).of(part)
    except LakebedError:
        return None
    everything = RowFilter(merge.request.schema.row_keys, EVERYTHING, None)
    read = PartRead(
        part,
        everything,
        merge.request.columns,
        merge.reads[0].share,
        groups=range(len(tail.groups)),
    )
    return _verified(stored_groups(helpers.scratch, read, tail))


def _verified(groups: Iterator[Content]) -> Iterator[Content]:
    """Yield the row groups. What is wrong with this machine's disk is no damage of the lake."""
    try:
        yield from groups
    except (ObjectMissingError, CorruptError) as error:
        hint = "try again; if it goes on, look at this machine's disk"
        raise UnavailableError(
            "what a helper merged cannot be read", problem=str(error), hint=hint
        ) from error


def _forget(helpers: MergeHelpers, answer: Answer | None) -> None:
    """Remove a helper's file. The process's folder goes with it, should that fail."""
    if isinstance(answer, RangeMerged):
        with suppress(LakebedError):
            helpers.scratch.delete([answer.path])
