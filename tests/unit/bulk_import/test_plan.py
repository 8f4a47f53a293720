"""Who sorts and who merges what."""

from itertools import pairwise

import pytest

from lakebed.bulk_import.plan import file_rows, plan_merges, plan_sorts, sort_bytes
from lakebed.bulk_import.plan_leaves import FilledLeaf, Load, RowTarget
from lakebed.model.names import PartitionId
from lakebed.model.ranges import EVERYTHING, KeyRange
from lakebed.sorted_files.sorting.stored_runs import Block, StoredRun
from lakebed.user_files.csv_and_parquet import ParquetLayout
from lakebed.user_files.input_files import InputFile

MIB = 1 << 20


def file(name: str, size: int) -> InputFile:
    return InputFile(name, "parquet", size, "1")


@pytest.mark.parametrize(
    ("total", "tasks", "wanted"),
    [
        (10 * MIB, 2, 8 * MIB),  # never tiny
        (100 * MIB, 2, 25 * MIB),  # twice as many tasks as run at once
        (10_000 * MIB, 8, 64 * MIB),  # what is sorted in memory
        (1_000_000 * MIB, 8, 2_000 * MIB),  # so many runs can be merged
    ],
)
def test_a_task_sorts_as_much_as_suits_the_whole(total: int, tasks: int, wanted: int) -> None:
    assert sort_bytes(total, tasks) == wanted


def test_small_files_are_sorted_together_and_large_ones_in_parts() -> None:
    many = ParquetLayout([(4, 13), (13, 22), (22, 25), (25, 29)], (29, 35))
    one = ParquetLayout([(4, 26)], (26, 30))
    files = [
        (file("a", 3), None),
        (file("b", 4), None),
        (file("c", 35), many),
        (file("d", 30), one),
    ]
    works = plan_sorts(files, 10)
    spans = [piece.spans for work in works for piece in work.pieces if piece.file.path == "c"]
    assert spans == [((4, 13), (29, 35)), ((13, 22), (29, 35)), ((22, 29), (29, 35))]
    told = [[(piece.file.path, piece.row_groups) for piece in work.pieces] for work in works]
    assert told == [
        [("a", None), ("b", None)],
        [("c", (0, 1))],
        [("c", (1, 2))],
        [("c", (2, 4))],
        [("d", None)],  # of one row group, or of no parts
    ]
    assert [work.number for work in works] == [0, 1, 2, 3, 4]


def run(name: str, *blocks: tuple[int, bytes, int]) -> StoredRun:
    return StoredRun(
        name, tuple(Block(*block, 10 * n, 10, 10, 0) for n, block in enumerate(blocks))
    )


def leaf(key_range: KeyRange, rows: int, index: int = 0, *, is_new: bool = False) -> RowTarget:
    filled = FilledLeaf(PartitionId(index + 1), key_range, index, Load(0, rows))
    return RowTarget(filled, key_range, rows, is_new)


def test_leaves_with_few_rows_share_a_file() -> None:
    key_ranges = [KeyRange(b"", b"c"), KeyRange(b"c", b"e"), KeyRange(b"e", None)]
    runs = [run("x", (0, b"a", 2), (2, b"f", 3)), run("y", (1, b"d", 90))]
    leaves = [leaf(*given) for given in zip(key_ranges, (2, 90, 3), range(3), strict=True)]
    planned = plan_merges(runs, leaves, shared_file_rows_max=10, rows_each=1_000)
    assert [places for places, _ in planned] == [(0,), (1,), (2,)]
    planned = plan_merges(runs, leaves, shared_file_rows_max=100, rows_each=1_000)
    ((places, work),) = planned
    assert places == (0, 1, 2)
    assert work.key_range == EVERYTHING
    assert list(work.key_ranges) == key_ranges
    assert work.job_rows == 95


def test_new_leaves_share_no_file_however_few_rows_they_get() -> None:
    runs = [run("x", (0, b"a", 2), (0, b"c", 3), (1, b"f", 4))]
    new = [
        leaf(KeyRange(b"", b"c"), 2, is_new=True),
        leaf(KeyRange(b"c", b"e"), 3, is_new=True),
        leaf(KeyRange(b"e", None), 4, 1),
    ]
    planned = plan_merges(runs, new, shared_file_rows_max=100, rows_each=1_000)
    assert [places for places, _ in planned] == [(0,), (1,), (2,)]
    assert [work.key_range for _, work in planned] == [one.key_range for one in new]


def test_a_large_leaf_gets_several_files_that_tile_it() -> None:
    blocks = [(0, bytes([place]), 10) for place in range(1, 21)]
    runs = [run("x", *blocks[::2]), run("y", *blocks[1::2])]
    planned = plan_merges(runs, [leaf(EVERYTHING, 200)], shared_file_rows_max=0, rows_each=50)
    key_ranges = [work.key_range for _, work in planned]
    assert len(key_ranges) == 4
    assert key_ranges[0].min == b""
    assert key_ranges[-1].max is None
    assert all(one.max == other.min for one, other in pairwise(key_ranges))
    for _, work in planned:
        for part in work.sorted_runs:
            # a block may begin below the range; none is left out that could reach into it
            whole = next(one for one in runs if one.path == part.path)
            reach = [
                block
                for block, after in pairwise([*whole.blocks, None])
                if block is not None
                and (work.key_range.max is None or block.first < work.key_range.max)
                and (after is None or after.first >= work.key_range.min)
            ]
            assert set(part.blocks) >= {
                block for block in reach if work.key_range.contains(block.first)
            }
            assert set(part.blocks) <= set(reach)


def test_one_key_is_never_cut() -> None:
    runs = [run("x", *[(0, b"same", 10)] * 20)]
    planned = plan_merges(runs, [leaf(EVERYTHING, 200)], shared_file_rows_max=0, rows_each=50)
    assert len(planned) <= 2  # below the key there may be a file without rows
    assert [sum(b.rows for r in work.sorted_runs for b in r.blocks) for _, work in planned][
        -1
    ] == 200


def test_files_are_as_large_as_suits_the_number_of_tasks() -> None:
    assert file_rows(1_000, 2) == 1_000_000
    assert file_rows(8_000_000, 2) == 4_000_000
    assert file_rows(1_000_000_000, 2) == 8_000_000
