"""What was done a moment ago is remembered though two clocks are wrong; what is old is forgotten in
the end (H35)."""

import pytest

from lakebed.errors import ConflictError
from lakebed.feeds.committed import FeedConnection
from lakebed.feeds.pacing.known_items import OldItems
from lakebed.garbage.sweep import SweepObjects
from lakebed.model.names import ConnectionId, TableId, TableName
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries.feed_changes import Define, ForgetOldItems, TakeItems
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.log_entries.table_changes import ChangeSettings
from lakebed.statestore.log_entries.transactions import Transaction
from lakebed.statestore.open_table import OpenTable, start_of
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
        table = self.opened(head)
        SweepObjects(objects=self.lake.story.objects).run(table)
        OldItems(KEPT).forget(table, FeedConnection(FEED, 1))

    def opened(self, head: TableHead) -> OpenTable:
        """The table as a machine has it."""
        rng = self.lake.story.rng
        return OpenTable(id_=TableId("t"), name=TableName("t"), head=head, rng=rng)

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


@pytest.mark.parametrize("wrong_clocks", [2, 9])
def test_nor_when_the_table_had_been_without_work_for_days_before(
    table: BusyTable, wrong_clocks: int
) -> None:
    table.lake.world.advance(3 * DAY)
    wrong = table.believed(0)
    for index in range(wrong_clocks):
        wrong = table.believed((index + 1) * 100 * DAY)
    table.lake.when_committed(wrong)
    table.forget(wrong)
    assert table.knows() == (True, True), "days have passed, not a month"


def test_items_that_are_to_be_forgotten_stay_when_log_time_leaps_meanwhile(
    table: BusyTable,
) -> None:
    table.believed(2 * DAY)
    planner = table.lake.process()
    with planner.reading() as state:
        start = start_of(state)
    wrong = table.believed(200 * DAY)
    planned = table.opened(planner).own(start, ForgetOldItems(FEED, KEPT))
    planner.follow()
    with pytest.raises(ConflictError, match="leapt since it was planned"):
        planner.commit(planned)
    assert table.knows() == (True, True)
    table.go_on(wrong, 31)
    table.forget(wrong)
    assert table.knows() == (False, False)


def test_nothing_is_forgotten_in_the_step_in_which_a_clock_is_recorded(table: BusyTable) -> None:
    """Log time may leap between what is planned and its entry; the next step plans anew."""
    table.go_on(table.lake.process(), 31)
    table.lake.world.advance(3 * DAY)
    late = table.lake.process()
    OldItems(KEPT).forget(table.opened(late), FeedConnection(FEED, 1))
    assert table.lake.kinds()[-1] == "ReportTime"
    OldItems(KEPT).forget(table.opened(late), FeedConnection(FEED, 1))
    assert table.lake.kinds()[-1] == "ForgetOldItems"


def test_it_is_forgotten_when_time_went_on_for_as_long_as_it_is_kept(table: BusyTable) -> None:
    table.believed(2 * DAY)
    wrong = table.believed(200 * DAY)
    table.go_on(wrong, 29)
    table.forget(wrong)
    assert table.knows() == (True, True)
    table.go_on(wrong, 2)
    table.forget(wrong)
    assert table.knows() == (False, False)


def test_what_is_known_beside_the_log_is_no_older_for_one_leap_until_time_went_on(
    table: BusyTable,
) -> None:
    before = table.lake.at
    wrong = table.believed(200 * DAY)
    time = table.opened(wrong).forgetting_time
    assert time(KEPT, lambda _now: False) == before
    table.go_on(wrong, 31)
    assert time(KEPT, lambda _now: False) == table.lake.at


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


@pytest.mark.parametrize(("visits", "remembers"), [(1, True), (10, True), (26, False)])
def test_a_table_that_is_visited_twice_a_month_forgets(
    table: BusyTable, visits: int, remembers: bool
) -> None:
    for _ in range(visits):
        table.lake.world.advance(14 * DAY)
        visitor = table.believed(0)
    table.forget(visitor)
    assert table.knows() == (remembers, remembers)
