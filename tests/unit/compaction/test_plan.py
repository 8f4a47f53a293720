from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from lakebed.compaction.plan import plan_compactions
from lakebed.config.settings import TableSettings
from lakebed.model.files import FileReference, KeyBounds, StoredFile
from lakebed.model.names import FileName, PartitionId

LEAF = PartitionId(1)


def files_of(*rows: int) -> list[FileReference]:
    """Files of so many rows, the oldest first; a file's name is its place."""
    return [
        FileReference(
            StoredFile(FileName(place.to_bytes(4, "big")), 1, 0, 0, 0),
            LEAF,
            count,
            KeyBounds(b"", None),
        )
        for place, count in enumerate(rows)
    ]


def groups_of(files: list[FileReference], *, fan_in: int, ratio: int) -> list[list[int]]:
    """Return the rows of each group that is planned."""
    rows = {f.file.name: f.rows for f in files}
    settings = TableSettings(job_files_max=fan_in, size_ratio=ratio, leaf_files_max=10_000)
    return [[rows[name] for name in group] for group in plan_compactions(files, settings)]


def holds(rows: tuple[int, ...], ratio: int) -> bool:
    return sum(rows) - max(rows) >= ratio * max(rows)


def test_a_small_file_does_not_keep_larger_ones_of_one_size_apart() -> None:
    assert groups_of(files_of(1, 10, 10, 10, 10), fan_in=4, ratio=3) == [[10, 10, 10, 10]]
    assert groups_of(files_of(10, 1, 10, 90, 10, 10, 2), fan_in=4, ratio=3) == [[10, 10, 10, 10]]


def test_files_of_one_size_fill_their_jobs() -> None:
    assert groups_of(files_of(*[10] * 8), fan_in=4, ratio=3) == [[10] * 4, [10] * 4]
    assert groups_of(files_of(*[1] * 5, *[100] * 8), fan_in=4, ratio=3) == [
        [1] * 4,
        [100] * 4,
        [100] * 4,
    ]


def test_files_that_go_with_no_others_are_left_alone() -> None:
    assert groups_of(files_of(1, 10, 100, 1000), fan_in=4, ratio=3) == []
    assert groups_of(files_of(7), fan_in=4, ratio=1) == []
    assert groups_of(files_of(), fan_in=4, ratio=1) == []


@given(
    rows=st.lists(st.integers(1, 40), max_size=9),
    fan_in=st.integers(2, 6),
    ratio=st.integers(1, 5),
)
def test_whatever_trying_all_groups_finds_is_found(
    rows: list[int], fan_in: int, ratio: int
) -> None:
    found = groups_of(files_of(*rows), fan_in=fan_in, ratio=ratio)
    left = list(rows)
    for group in found:
        assert 2 <= len(group) <= fan_in
        assert holds(tuple(group), ratio)
        for count in group:
            left.remove(count)
    possible = [
        some
        for size in range(2, fan_in + 1)
        for some in combinations(left, size)
        if holds(some, ratio)
    ]
    assert possible == []


def test_a_leaf_of_many_files_is_planned_in_one_pass() -> None:
    rows = [1 << (place % 20) for place in range(200_000)]
    found = groups_of(files_of(*rows), fan_in=12, ratio=3)
    assert sum(map(len, found)) > 0.99 * len(rows)
