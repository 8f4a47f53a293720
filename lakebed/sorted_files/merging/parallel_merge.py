"""One merge by several processes, into one file.

The range of keys is cut. This process merges some of the ranges straight into its file; helpers
merge others and hand over row groups, which are joined to it as bytes, in order. Each row key lies
in one range, so the rows are those that one process would give.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial

from lakebed.errors import CorruptError, LakebedError, ObjectMissingError, UnavailableError
from lakebed.model.ranges import KeyRange
from lakebed.sorted_files.merging.helper_processes import RANGE_SECONDS_MAX, Helper, MergeHelpers
from lakebed.sorted_files.merging.range_messages import (
    Answer,
    MergeTask,
    RangeFailed,
    RangeMerged,
    RangeTask,
)
from lakebed.sorted_files.merging.row_group_transfer import RowGroupsHandedOver
from lakebed.sorted_files.merging.stretch_merge import StretchMerge
from lakebed.sorted_files.writing.file_writing import Content

RANGES_EACH = 12
"""Fewest ranges for each process: none waits long for the last range of another. More are cut of
large merges."""
RANGE_ROW_GROUPS_MAX = 16
NEIGHBOURS = 6
"""Ranges that one process merges one behind the other: it need not decode again the rows that the
cut between them goes through. Not all of its ranges: what a helper merged is joined behind what
comes before it, so the others merge on meanwhile."""
JOINING = 8
"""Merging rows takes so many times as long as joining what a helper made of as many."""

ANSWER_SECONDS_MAX = RANGE_SECONDS_MAX + 60.0
"""A helper that does not even read is not waited for longer."""

_serial = itertools.count()


def merged_together(
    merge: StretchMerge, helpers: MergeHelpers, merge_task: MergeTask
) -> Iterator[Content]:
    """Yield rows and row groups in the order of their keys.

    merge_task: the same merge, for helpers.
    """
    processes = helpers.count + 1
    row_groups = merge.row_groups_out()
    each = min(RANGE_ROW_GROUPS_MAX, -(-row_groups // (RANGES_EACH * processes)))
    ranges = merge.ranges(-(-row_groups // each))
    board = Board(ranges, processes)
    try:
        with suppress(RuntimeError):  # there is no thread to be had
            helpers.each(partial(_help, helpers, board, merge_task), at_most=len(ranges) - 1)
        for index, within in enumerate(ranges):
            taken = board.taken_by_helper(index)
            answer = None if taken is None else _answer(taken)
            joined = None
            if isinstance(answer, RangeMerged):
                joined = _joined(helpers, answer)
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
    """Ranges that are taken once each: here in order, by helpers in rows of neighbours.

    The first row is for this process, the next ones for helpers, and so on. Where this process
    waits for a range, who merges it leaves the next one to it. A helper that finds no row left
    takes what is last of all that is left.
    """

    def __init__(self, ranges: Sequence[KeyRange], processes: int) -> None:
        self.ranges = ranges
        self._rows = list(_rows_of_helpers(len(ranges), processes - 1))
        self._here = -1
        self._lock = threading.Lock()
        self._taken: dict[int, Future[Answer] | None] = {}
        self.is_over = False

    def taken_by_helper(self, index: int) -> Future[Answer] | None:
        """Return the answer to come for a range; None: it is taken now."""
        with self._lock:
            self._here = index
            return self._taken.setdefault(index, None)

    def take(self, before: int | None = None) -> tuple[int, Future[Answer]] | None:
        """Return the index of a range for a helper, and where its answer goes; None: there are no
        more. before: the index of what the helper took before."""
        with self._lock:
            index = None if self.is_over else self._next(before)
            if index is None:
                return None
            found = self._taken[index] = Future()
            return index, found

    def _next(self, before: int | None) -> int | None:
        taken = self._taken.keys()
        if before is not None:
            index = before + (2 if self._here >= before else 1)
            if index not in taken and any(before in row and index in row for row in self._rows):
                return index
        untouched = (row[0] for row in self._rows if taken.isdisjoint(row))
        last = (index for index in reversed(range(len(self.ranges))) if index not in taken)
        return next(itertools.chain(untouched, last), None)

    def end(self) -> None:
        """Give out no more."""
        with self._lock:
            self.is_over = True

    def answers(self) -> Iterator[Answer]:
        """Yield the answers that are there."""
        for found in self._taken.values():
            if found is not None and found.done():
                yield found.result()


def _rows_of_helpers(count: int, helpers: int) -> Iterator[range]:
    """Yield neighbours among so many ranges, for one helper each. What lies between is for the
    process that also joins them, and is less."""
    here = round(NEIGHBOURS * max(0, 1 - helpers / JOINING))
    for begin in range(here, count, here + helpers * NEIGHBOURS):
        end = min(begin + helpers * NEIGHBOURS, count)
        for first in range(begin, end, NEIGHBOURS):
            yield range(first, min(first + NEIGHBOURS, end))


def _help(helpers: MergeHelpers, board: Board, merge_task: MergeTask, helper: Helper) -> None:
    """Let a helper merge ranges until there are no more. Raises: OSError: it is lost."""
    index = None
    while (taken := board.take(index)) is not None:
        index, found = taken
        answer: Answer = RangeFailed("the helper is lost")
        try:
            answer = helper.merged(
                merge_task, RangeTask(board.ranges[index], f"ranges/{next(_serial)}")
            )
        finally:
            found.set_result(answer)
            if board.is_over:
                _forget(helpers, answer)
        if isinstance(answer, RangeFailed):
            raise BrokenPipeError(answer.problem)


def _joined(helpers: MergeHelpers, answer: RangeMerged) -> Iterator[Content] | None:
    """Return the row groups that a helper handed over; None: they cannot be read."""
    if answer.handed is None:
        return iter(())
    try:
        return _verified(RowGroupsHandedOver(helpers.scratch, answer.path, answer.handed))
    except LakebedError:
        return None


def _verified(row_groups: Iterable[Content]) -> Iterator[Content]:
    """Yield the row groups. What is wrong with this machine's disk is no damage of the lake."""
    try:
        yield from row_groups
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
