"""When records that were read are committed, and how many at once, also behind a refusal."""

from itertools import pairwise

import pytest

from lakebed.errors import InvalidError
from lakebed.feed_errors import InvalidKeyError, RowsRefusedError, TooManyWindowsError
from lakebed.feeds.committed import FeedConnection, SplitAt
from lakebed.feeds.pacing.refused_rows import RefusedRows
from lakebed.feeds.rotation import (
    Rotation,
    RotationLimits,
    Waiting,
    minute_of,
    reason_to_commit,
)
from lakebed.feeds.round_changes import SplitRecords
from lakebed.model.feeds.positions import Position, connection_id
from lakebed.model.names import Micros
from lakebed.ports.record_source import Records

LIMITS = RotationLimits(size=1_000, records=10, seconds=60, idle_seconds=5)
SOME = Waiting(size=10, records=1, since=100, newest=110, minute=7, is_caught_up=False)


def waiting(**given: float) -> Waiting:
    return Waiting(**{name: getattr(SOME, name) for name in SOME.__struct_fields__} | given)


@pytest.mark.parametrize(
    ("held", "now", "reason"),
    [
        (SOME, 110, ""),
        (waiting(size=999), 110, ""),
        (waiting(size=1_000), 110, "size"),
        (waiting(records=9), 110, ""),
        (waiting(records=10), 110, "records"),
        (SOME, 159, ""),
        (SOME, 160, "age"),
        (waiting(is_caught_up=True), 114, ""),
        (waiting(is_caught_up=True), 115, "idle"),
        (waiting(records=0, size=0, is_caught_up=True), 10_000, ""),
    ],
)
def test_a_round_is_committed_at_its_limits_and_when_nothing_more_comes(
    held: Waiting, now: float, reason: str
) -> None:
    assert reason_to_commit(LIMITS, held, now=now, wall=Micros(0)) == reason


def test_a_round_is_committed_when_a_minute_begins_where_that_is_wanted() -> None:
    wall = Micros(7 * 60_000_000 + 59_999_999)
    at_minutes = RotationLimits(seconds=600, at_minutes=True)
    assert minute_of(wall) == 7
    assert not reason_to_commit(at_minutes, SOME, now=110, wall=wall)
    assert reason_to_commit(at_minutes, SOME, now=110, wall=Micros(wall + 1)) == "minute"
    assert not reason_to_commit(LIMITS, SOME, now=110, wall=Micros(wall + 1))


def test_rounds_become_smaller_until_one_fits_and_larger_again() -> None:
    rotation = Rotation(LIMITS)
    sizes = []
    while rotation.divide([rotation.size // 2, rotation.size - rotation.size // 2]):
        sizes.append(rotation.size)
    assert sizes == [500, 250, 125, 62, 31, 15, 7, 3, 1]
    assert rotation.reason(waiting(size=1), now=110, wall=Micros(0)) == "size"
    for _ in range(40):
        rotation.committed()
    assert rotation.size == LIMITS.size


@pytest.mark.parametrize(
    ("reads", "may_be_smaller", "size"),
    [([400], True, 200), ([900, 300], True, 500), ([1_001], False, 1_000), ([1], False, 1_000)],
)
def test_a_round_of_one_item_can_be_no_smaller(
    reads: list[int], *, may_be_smaller: bool, size: int
) -> None:
    rotation = Rotation(LIMITS)
    assert rotation.divide(reads) is may_be_smaller
    assert rotation.size == size


class Search:
    """A search over rounds of some source splits, of 1,000 bytes in peace."""

    def __init__(self) -> None:
        self.rotation = Rotation(RotationLimits(size=1_000))
        connection = FeedConnection(connection_id("c0" * 16), 1)
        self.rows = RefusedRows[list[int]](self.rotation, first_of, "orders", connection)

    def refused(
        self, *parts: SplitRecords[list[int]], takes_others: bool | None = None
    ) -> InvalidError | bool:
        error = InvalidKeyError("a key is no good")
        refusal = RowsRefusedError(error, takes_others=takes_others)
        try:
            return self.rows.refused(self.rows.taken(list(parts)), refusal)
        except InvalidKeyError as raised:
            return raised

    def committed(self, *parts: SplitRecords[list[int]], stored: int) -> None:
        self.rotation.committed()
        self.rows.committed(self.rows.taken(list(parts)), stored)

    def blame(self, one: SplitRecords[list[int]]) -> None:
        """Find a record that comes alone."""
        while not self.rows.blame([one]).records:
            assert self.refused(one) is True
        assert self.rows.blame([one]).records == {one.split: "a key is no good"}
        self.committed(one, stored=0)


def first_of(batch: list[int], count: int) -> tuple[list[int], int, int]:
    return batch[:count], batch[count], 10 * count


def part(split: str, at: int, *counts: int) -> SplitRecords[list[int]]:
    """Records of 10 bytes. counts: of each read."""
    records, begin = list[Records[list[int]]](), at
    for count in counts:
        end = begin + count
        batch = list(range(begin, end))
        records.append(Records(begin=begin, end=end, count=count, size=10 * count, batch=batch))
        begin = end
    return SplitRecords(split, 1, SplitAt(None, Position(0, at)), tuple(records))


def test_two_records_that_come_alone_are_not_both_blamed_with_no_row_between_them() -> None:
    search = Search()
    search.blame(part("a", 0, 1))
    assert search.refused(part("a", 1, 1)) is True, "a larger round may say more"
    assert isinstance(search.refused(part("a", 1, 1)), InvalidKeyError)
    search = Search()
    search.blame(part("a", 0, 1))
    search.committed(part("a", 1, 1), stored=1)
    search.blame(part("a", 2, 1))


def test_neighbours_are_both_blamed_where_a_larger_round_has_a_row_that_is_taken() -> None:
    search = Search()
    search.blame(part("a", 0, 1))
    assert search.refused(part("a", 1, 1, 1), takes_others=False) is True
    assert search.rotation.size == 1_000
    assert search.refused(part("a", 1, *[1] * 40), takes_others=True) is True
    assert search.rotation.size < 1_000
    search.rotation.restore()
    search.blame(part("a", 1, 1))


def test_a_table_that_takes_none_of_many_rows_is_asked_once() -> None:
    search = Search()
    assert isinstance(search.refused(part("a", 0, 40), takes_others=False), InvalidKeyError)


def test_a_round_without_records_blames_none() -> None:
    search = Search()
    gap = SplitRecords[list[int]]("a", 1, SplitAt(None, Position(0, 0)), gap_end=9)
    assert search.refused(gap) is False
    assert search.refused() is False


def test_a_source_split_is_read_before_others_only_while_its_reads_are_cut() -> None:
    search = Search()
    windows = TooManyWindowsError("too many windows")
    assert search.rows.refused([part("a", 0, 50, 40)], windows) is True
    assert search.refused(part("a", 0, 25, 20), takes_others=True) is True
    assert search.rows.split == "", "rounds are halved by bytes"
    while not search.rows.cuts:
        assert search.refused(part("a", 0, 20)) is True
    assert search.rows.split == "a"
    search.committed(part("a", 0, 20), stored=10)
    assert search.rows.split == "a"
    search.committed(part("a", 10, 3), stored=3)
    assert not search.rows.cuts
    search.committed(part("b", 0, 3), stored=3)
    assert search.rotation.size < 1_000
    assert search.rows.split == ""


def test_rounds_double_behind_the_record_to_blame() -> None:
    search = Search()
    while search.rotation.size > 10:
        assert search.refused(part("a", 0, 3, 2), takes_others=True) is True
    search.blame(part("a", 0, 1))
    sizes = []
    for at in range(1, 8):
        search.committed(part("a", at, 1), stored=1)
        sizes.append(search.rotation.size)
    assert [after // before for before, after in pairwise(sizes)][:4] == [2] * 4
    assert sizes[0] < 50
    assert search.refused(part("a", 0, 9, 9), takes_others=True) is True
    before = search.rotation.size
    search.committed(part("a", 0, 9), stored=9)
    assert search.rotation.size == before + before // 4 + 1, "the record to blame may be near"
