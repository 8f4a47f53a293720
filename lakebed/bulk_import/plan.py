"""Decides who sorts what, and who merges what, in a bulk import. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from lakebed.bulk_import.plan_leaves import RowTarget
from lakebed.bulk_import.work import MergeWork, Piece, SortWork
from lakebed.model.ranges import KeyRange
from lakebed.model.shared_files import plan_files
from lakebed.sorted_files.sorting.stored_runs import StoredRun, blocks_meeting
from lakebed.user_files.csv_and_parquet import ParquetLayout
from lakebed.user_files.input_files import InputFile

SORT_BYTES = 64 * 1024 * 1024
"""Stored bytes of input files that one task sorts: mostly in memory. Larger sorts spill, and leave
fewer runs to merge."""

SORT_BYTES_MIN = 8 * 1024 * 1024
RUNS_MAX = 500
"""Rough upper bound of the number of runs: a merge holds some rows of each."""

FILE_ROWS = 8_000_000
"""A leaf that gets more rows gets several files, of one range of keys each, made at a time."""

FILE_ROWS_MIN = 1_000_000


def sort_bytes(total: int, tasks_at_once: int) -> int:
    """Return how many bytes of input one task of the first stage should sort."""
    even = total // max(1, 2 * tasks_at_once)
    return max(min(SORT_BYTES, max(SORT_BYTES_MIN, even)), total // RUNS_MAX)


def plan_sorts(
    files: Iterable[tuple[InputFile, ParquetLayout | None]], bytes_each: int
) -> list[SortWork]:
    """Return tasks of about `bytes_each` each, files in order.

    files: each with where its row groups lie; None: it is read as a whole.
    """
    works: list[SortWork] = []
    held: list[Piece] = []
    size = 0
    for file, layout in files:
        for piece, more in _pieces(file, layout, bytes_each):
            if held and size + more > bytes_each:
                works.append(SortWork(len(works), tuple(held)))
                held, size = [], 0
            held.append(piece)
            size += more
    if held:
        works.append(SortWork(len(works), tuple(held)))
    return works


def _pieces(
    file: InputFile, layout: ParquetLayout | None, bytes_each: int
) -> Iterable[tuple[Piece, int]]:
    if layout is None or file.size <= bytes_each or len(layout.row_groups) < 2:
        yield Piece(file), file.size
        return
    row_groups = layout.row_groups
    first = 0
    for index in range(1, len(row_groups) + 1):
        size = row_groups[index - 1][1] - row_groups[first][0]
        if index == len(row_groups) or size + _bytes_in(row_groups[index]) > bytes_each:
            spans = ((row_groups[first][0], row_groups[index - 1][1]), layout.footer)
            yield Piece(file, (first, index), spans), size
            first = index


def _bytes_in(extent: tuple[int, int]) -> int:
    return extent[1] - extent[0]


def file_rows(total: int, tasks_at_once: int) -> int:
    """Return how many rows of one leaf one task of the second stage should merge."""
    return min(FILE_ROWS, max(FILE_ROWS_MIN, total // max(1, tasks_at_once)))


def plan_merges(
    sorted_runs: Sequence[StoredRun],
    targets: Sequence[RowTarget],
    *,
    shared_file_rows_max: int,
    rows_each: int,
) -> list[tuple[tuple[int, ...], MergeWork]]:
    """Return one task for each file, and the indices of the targets that it is for.

    Leaves share files as in ingest, but for new ones; a target with far more than `rows_each` rows
    gets several files, cut between row keys.
    """
    works: list[tuple[tuple[int, ...], MergeWork]] = []
    total = sum(target.rows for target in targets)
    for indices in plan_files(
        [max(one.rows, shared_file_rows_max) if one.is_new else one.rows for one in targets],
        shared_file_rows_max=shared_file_rows_max,
    ):
        first, last = targets[indices[0]], targets[indices[-1]]
        whole = KeyRange(first.key_range.min, last.key_range.max)
        inside = range(first.leaf.range_index, last.leaf.range_index + 1)
        mine = [blocks_meeting(sorted_run, inside, whole) for sorted_run in sorted_runs]
        parts = round(first.rows / rows_each) if len(indices) == 1 else 1
        ends = [whole.min, *_cuts(mine, parts, whole), whole.max]
        for low, high in pairwise(ends):
            assert low is not None, "only the last end is open"
            key_range = KeyRange(low, high)
            parted = [blocks_meeting(sorted_run, inside, key_range) for sorted_run in mine]
            taken = tuple(sorted_run for sorted_run in parted if sorted_run.blocks)
            at = tuple(targets[index].key_range.meets(key_range) for index in indices)
            works.append((indices, MergeWork(len(works), key_range, at, taken, total)))
    return works


def _cuts(sorted_runs: Sequence[StoredRun], parts: int, whole: KeyRange) -> list[bytes]:
    """Return at most `parts - 1` keys that cut the rows into alike parts: begins of blocks."""
    if parts < 2:
        return []
    blocks = sorted(
        (block.first, block.rows) for sorted_run in sorted_runs for block in sorted_run.blocks
    )
    wanted = sum(rows for _, rows in blocks) / parts
    cuts: list[bytes] = []
    below = 0
    for first, rows in blocks:
        if below >= wanted * (len(cuts) + 1) and first > (cuts[-1] if cuts else whole.min):
            cuts.append(first)
        below += rows
    return cuts[: parts - 1]
