"""What was done a moment ago is remembered though two clocks are wrong; what is old is forgotten in
the end (H35)."""

import pytest

from lakebed.feeds.committed import FeedConnection
from lakebed.feeds.pacing.known_items import OldItems
from lakebed.garbage.sweep import SweepObjects
from lakebed.model.names import ConnectionId, TableId, TableName
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries.feed_changes import Define, TakeItems
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.log_entries.table_changes import ChangeSettings
from lakebed.statestore.log_entries.transactions import Transaction
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.feed_records import connection_of, taken_items
from tests.unit.statestore.clock_lake import DAY, MINUTE, Lake

FEED = ConnectionId("feed")
ITEM = bytes(16)
KEPT = 30 * DAY
SETTINGS = ChangeSettings({"pending_seconds_max": 0, "job_id_seconds_min": KEPT})


class BusyTable:
    """A table with a job that was done and an item that was taken a moment ago."""

    def __init__(self) -> None:
        self.lake = lake = Lake()
        right = lake.process()
        self.job = lake.story.transaction(AddFiles(()), id_="mine", base=1, user=True)
        right.commit(self.job)
        lake.when_committed(right, SETTINGS, Define(FEED, 1), TakeItems(FEED, (ITEM,)))

    def believed(self, ahead: float) -> TableHead:
        """A machine that is ahead for longer than ten minutes, so that log time follows it."""
        wrong = self.lake.process(self.lake.machine(ahead))
        self.lake.when_committed(wrong)
        self.lake.world.advance(11 * MINUTE)
        self.lake.when_committed(wrong)
        assert self.lake.at == self.lake.world.now() + ahead * 1_000_000
        return wrong

    def go_on(self, head: TableHead, days: int) -> None:
        for _ in range(days):
            self.lake.world.advance(DAY)
            self.lake.when_committed(head)

    def forget(self, head: TableHead) -> None:
        """Let a machine do what is due, as it understands it."""
        story = self.lake.story
        table = OpenTable(id_=TableId("t"), name=TableName("t"), head=head, rng=story.rng)
        SweepObjects(objects=story.objects).run(table)
        OldItems(KEPT).forget(table, FeedConnection(FEED, 1))

    def knows(self) -> tuple[bool, bool]:
        """Whether the job's id and the item are remembered."""
        remembers, state = self.remembers(self.job), self.lake.story.state
        known = connection_of(state, FEED)
        assert known is not None
        return remembers, taken_items(state, known, (ITEM,)) == [ITEM]

    def remembers(self, job: Transaction) -> bool:
        self.lake.story.head.follow()
        return self.lake.story.state.landed((job.id,)).number_of(job.id, job.digest) is not None


@pytest.fixture
def table() -> BusyTable:
    return BusyTable()


def test_two_clocks_that_are_wrong_for_long_make_nothing_forgotten(table: BusyTable) -> None:
    table.believed(2 * DAY)
    wrong = table.believed(200 * DAY)
    table.lake.when_committed(wrong)
    table.forget(wrong)
    assert table.knows() == (True, True), "twenty-two minutes have passed"


def test_it_is_forgotten_when_time_went_on_for_as_long_as_it_is_kept(table: BusyTable) -> None:
    table.believed(2 * DAY)
    wrong = table.believed(200 * DAY)
    table.go_on(wrong, 29)
    table.forget(wrong)
    assert table.knows() == (True, True)
    table.go_on(wrong, 2)
    table.forget(wrong)
    assert table.knows() == (False, False)


def test_what_is_done_after_a_leap_is_forgotten_when_it_is_old(table: BusyTable) -> None:
    wrong = table.believed(200 * DAY)
    base = wrong.state.head().number
    job = table.lake.story.transaction(AddFiles(()), id_="later", base=base, user=True)
    wrong.commit(job)
    table.go_on(wrong, 29)
    table.forget(wrong)
    assert table.remembers(job)
    table.go_on(wrong, 3)
    table.forget(wrong)
    assert not table.remembers(job)


@pytest.mark.parametrize(("visits", "remembers"), [(1, True), (3, True), (8, False)])
def test_a_table_that_is_visited_twice_a_month_forgets(
    table: BusyTable, visits: int, remembers: bool
) -> None:
    for _ in range(visits):
        table.lake.world.advance(14 * DAY)
        visitor = table.believed(0)
    table.forget(visitor)
    assert table.knows() == (remembers, remembers)
