"""Log time and clocks that may lie by months: whose leaps are believed, and what ages (H35)."""

import pytest

from lakebed.errors import UnavailableError
from lakebed.model.names import (
    MICROS_PER_SECOND,
    JobId,
    Micros,
    TableId,
    TableName,
    TransactionNumber,
)
from lakebed.observe import events
from lakebed.statestore.answers import Retry
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries.file_changes import AddFiles, RaiseFloor, ReplaceFiles
from lakebed.statestore.log_entries.table_changes import PutPin
from lakebed.statestore.log_entries.time_changes import LeapTime, ReportTime
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.time_records import READINGS_MAX, clock_readings, last_leap
from tests.unit.statestore.clock_lake import DAY, MINUTE, YEAR, Lake, micros


@pytest.fixture
def lake() -> Lake:
    return Lake()


@pytest.mark.parametrize("ahead", [2 * DAY, 200 * DAY, 100 * YEAR])
def test_one_machine_whose_clock_is_ahead_does_not_move_log_time(lake: Lake, ahead: float) -> None:
    wrong = lake.process(lake.machine(ahead))
    for _ in range(3):
        lake.when_committed(wrong)
    assert lake.at <= lake.world.now()
    assert lake.kinds().count("ReportTime") == 1, "it is told once"
    assert "LeapTime" not in lake.kinds()
    lake.world.advance(3 * DAY)
    for _ in range(3):
        lake.world.advance(DAY / 2)
        lake.when_committed(lake.story.head)
        assert lake.at == lake.world.now(), "the right clock is not held back"


def test_a_clock_that_is_a_day_ahead_at_the_most_is_followed(lake: Lake) -> None:
    ahead = lake.machine(DAY - 1)
    lake.when_committed(lake.process(ahead))
    assert lake.at == ahead.now()
    assert "ReportTime" not in lake.kinds()


def test_after_idle_months_the_second_machine_is_believed(lake: Lake) -> None:
    before = lake.at
    lake.world.advance(200 * DAY)
    lake.when_committed(lake.process())
    assert lake.at == before
    lake.when_committed(lake.process())
    assert lake.at == lake.world.now()
    assert lake.kinds()[-3:] == ["AddFiles", "LeapTime", "AddFiles"]


def test_what_the_log_is_told_of_time_is_an_event(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        lake.world.advance(200 * DAY)
        lake.when_committed(lake.process())
    records = [vars(r) for r in caplog.records]
    told = [r["facts"] for r in records if r.get("event") == events.LOG_TIME_TOLD]
    changes = ",".join(facts["changes"] for facts in told)
    assert changes.split(",") == [kind for kind in lake.kinds() if kind.endswith("Time")]
    assert sum(facts["leap_seconds"] for facts in told) > 100 * DAY


def test_after_idle_months_one_machine_is_believed_when_ten_minutes_have_passed(lake: Lake) -> None:
    machine = lake.machine()
    lake.world.advance(200 * DAY)
    begun = lake.at
    for _ in range(3):
        lake.when_committed(lake.process(machine))  # each time another process of one machine
        assert lake.at == begun
        lake.world.advance(3 * MINUTE)
    lake.world.advance(2 * MINUTE)
    lake.when_committed(lake.process(machine))
    assert lake.at == lake.world.now()
    assert lake.kinds().count("ReportTime") == lake.kinds().count("LeapTime") == 1


def test_a_clock_that_leaps_again_and_again_is_not_believed_for_what_it_said(lake: Lake) -> None:
    machine, before = lake.machine(), lake.at
    for days in (100, 150, 200, 0, 250):
        machine.offset_micros = micros(days * DAY)
        lake.when_committed(lake.process(machine))
        assert lake.at <= before + micros(DAY)
        lake.world.advance(20 * MINUTE)


def test_ten_minutes_begin_anew_when_a_clock_is_set(lake: Lake) -> None:
    lake.world.advance(200 * DAY)
    machine, before = lake.machine(100 * DAY), lake.at
    lake.when_committed(lake.process(machine))
    lake.world.advance(9 * MINUTE)
    machine.offset_micros = 0
    lake.when_committed(lake.process(machine))
    lake.world.advance(9 * MINUTE)
    lake.when_committed(lake.process(machine))
    assert lake.at == before
    lake.world.advance(2 * MINUTE)
    lake.when_committed(lake.process(machine))
    assert lake.at == lake.world.now()


def test_two_machines_are_believed_as_far_as_both_have_got(lake: Lake) -> None:
    lake.when_committed(lake.process(lake.machine(200 * DAY)))
    less = lake.machine(100 * DAY)
    lake.when_committed(lake.process(less))
    assert lake.at == less.now(), "two wrong clocks confirm each other: the limit of the rule"


def test_the_first_of_two_readings_is_believed_and_the_second_is_told(lake: Lake) -> None:
    lake.world.advance(100 * DAY)
    first = lake.world.now()
    lake.when_committed(lake.process())
    lake.world.advance(100 * DAY)
    lake.when_committed(lake.process())
    assert lake.at == first
    lake.when_committed(lake.process())
    assert lake.at == lake.world.now()


def test_what_a_wrong_clock_said_is_refuted_when_log_time_goes_on_without_it(lake: Lake) -> None:
    lake.when_committed(lake.process(lake.machine(200 * DAY)))
    for _ in range(3):
        lake.world.advance(DAY / 2)
        lake.when_committed(lake.story.head)
    before = lake.at
    lake.when_committed(lake.process(lake.machine(300 * DAY)))
    assert lake.at == before


def test_a_process_that_watched_the_log_needs_no_leap(lake: Lake) -> None:
    lake.when_committed(lake.story.head)
    lake.world.advance(200 * DAY)
    lake.when_committed(lake.story.head)
    assert lake.at == lake.world.now()
    assert not {"ReportTime", "LeapTime"} & set(lake.kinds())


def test_a_process_that_watched_does_not_vouch_for_what_another_wrote_meanwhile(lake: Lake) -> None:
    watching, behind = lake.process(), lake.process(lake.machine(-200 * DAY))
    lake.when_committed(watching)
    lake.world.advance(200 * DAY)
    written = lake.when_committed(behind)
    lake.when_committed(watching)
    lake.world.advance(11 * MINUTE)
    lake.when_committed(watching)
    assert lake.at == lake.world.now()
    young = micros(MINUTE * 20)
    assert lake.story.state.number_older_than(Micros(lake.at - young)) < written


def test_log_time_does_not_follow_a_clock_back(lake: Lake) -> None:
    machine = lake.machine()
    head = lake.process(machine)
    lake.world.advance(DAY / 2)
    lake.when_committed(head)
    before = lake.at
    machine.offset_micros = micros(-200 * DAY)
    lake.when_committed(head)
    assert lake.at == before
    machine.offset_micros = 0
    lake.world.advance(DAY / 2)
    lake.when_committed(head)
    assert lake.at == lake.world.now()


# what ages


def garbage_ages(lake: Lake) -> list[float]:
    at = lake.at
    return [(at - garbage.at) / MICROS_PER_SECOND for garbage in lake.story.state.garbage()]


def test_what_was_done_before_a_leap_is_as_young_as_the_leap(lake: Lake) -> None:
    story = lake.story
    story.given_files("all", a=1, b=1)
    story.when_claimed("j", "all", "a", "b")
    lake.world.advance(200 * DAY)
    machine = lake.process()
    late = story.another_head(clock=lake.machine(-200 * DAY))  # a clock that is behind
    late.follow()
    names = tuple(map(story.file, "ab"))
    lake.when_committed(late, ReplaceFiles(JobId("j"), story.partitions["all"], names, None))
    number = lake.when_committed(late)
    lake.when_committed(machine)
    lake.world.advance(11 * MINUTE)
    lake.when_committed(machine)
    assert lake.at == lake.world.now()
    assert garbage_ages(lake) == [0, 0], "it became garbage minutes ago"
    day_ago = Micros(lake.at - micros(DAY))
    assert story.state.number_older_than(day_ago) == 0
    floor = RaiseFloor(TransactionNumber(number), story.state.number_older_than(day_ago))
    lake.when_committed(machine, floor)


def test_ages_add_up_over_leaps(lake: Lake) -> None:
    story = lake.story
    story.given_files("all", a=1)
    story.when_claimed("j", "all", "a")
    story.when_replaced("j", "all", "a")
    for _ in range(3):  # a new machine each week, for one commit
        lake.world.advance(7 * DAY)
        lake.when_committed(lake.process())
    (age,) = garbage_ages(lake)
    assert age == 7 * DAY


@pytest.mark.parametrize("alone", [False, True])
def test_a_clock_that_is_set_back_makes_nothing_older_than_it_is(lake: Lake, alone: bool) -> None:
    story, clock = lake.story, lake.machine()
    story.given_files("all", a=1)
    story.when_claimed("j", "all", "a")
    lake.world.advance(177 * DAY)
    machine = lake.process(clock)
    names = (story.file("a"),)
    lake.when_committed(
        machine, ReplaceFiles(JobId("j"), story.partitions["all"], names, None)
    )  # garbage of now
    clock.offset_micros = micros(-36 * DAY)
    lake.when_committed(machine)
    if alone:
        lake.world.advance(11 * MINUTE)
        lake.when_committed(machine)
        assert lake.at == lake.world.now() - micros(36 * DAY), "ten minutes are believed"
    other = lake.process()
    lake.when_committed(other)
    lake.world.advance(11 * MINUTE)
    lake.when_committed(other)
    assert lake.at == lake.world.now()
    (age,) = garbage_ages(lake)
    assert age <= 22 * MINUTE


def test_a_machine_does_not_confirm_what_it_said_before_it_was_set_back(lake: Lake) -> None:
    clock = lake.machine(200 * DAY)
    machine = lake.process(clock)
    lake.when_committed(machine)
    clock.offset_micros = micros(100 * DAY)
    for _ in range(3):
        lake.when_committed(machine)
    assert lake.at <= lake.world.now()
    assert lake.kinds().count("ReportTime") == 2, "each once"


def test_a_reader_has_as_much_time_left_after_a_leap_as_before(lake: Lake) -> None:
    lake.world.advance(200 * DAY)
    machine = lake.process()
    until = Micros(machine.log_time() + micros(6 * 3_600))
    lake.when_committed(machine, PutPin("reader", until))
    lake.world.advance(11 * MINUTE)
    lake.when_committed(machine)
    assert lake.at == lake.world.now()
    (pin,) = lake.story.state.pins()
    assert lake.at + micros(5 * 3_600) < pin.until <= lake.at + micros(6 * 3_600)


def test_the_id_of_a_job_is_remembered_over_a_leap(lake: Lake) -> None:
    lake.world.advance(200 * DAY)
    machine = lake.process()
    job = lake.story.transaction(AddFiles(()), id_="mine", base=1, user=True)
    number = machine.commit(job)
    lake.world.advance(11 * MINUTE)
    lake.when_committed(machine)
    month_ago = Micros(machine.log_time() - micros(30 * DAY))
    below = machine.state.number_older_than(month_ago)
    lake.when_committed(machine, RaiseFloor(machine.state.head().number, below))
    assert machine.commit(job) == number, "it is not done twice"


# tables to which nobody commits


def opened(head: TableHead, lake: Lake) -> OpenTable:
    return OpenTable(id_=TableId("t"), name=TableName("t"), head=head, rng=lake.story.rng)


def test_time_passes_on_an_idle_table_where_something_is_due(lake: Lake) -> None:
    lake.world.advance(10 * DAY)
    machine = lake.machine()
    table, asked = opened(lake.process(machine), lake), list[Micros]()

    def is_due(now: Micros) -> bool:
        asked.append(now)
        return True

    assert table.due_time(is_due) < machine.now()
    lake.world.advance(11 * MINUTE)
    assert table.due_time(is_due) == machine.now()
    assert lake.kinds()[-2:] == ["ReportTime", "LeapTime"]
    assert table.due_time(is_due) == machine.now()
    assert len(asked) == 2, "the third time log time follows the clock"


def test_nothing_is_told_of_a_table_where_nothing_is_due(lake: Lake) -> None:
    lake.world.advance(10 * DAY)
    table = opened(lake.process(), lake)
    for _ in range(2):
        table.due_time(lambda _: False)
        lake.world.advance(11 * MINUTE)
    assert lake.kinds() == ["CreateTable"]


def test_a_try_to_tell_the_time_that_fails_is_made_again(lake: Lake) -> None:
    lake.world.advance(10 * DAY)
    table = opened(lake.process(), lake)
    lake.story.log.appends += ["lost", "unanswered"]
    for _ in range(3):
        table.due_time(lambda _: True)
    table.head.follow()
    assert lake.kinds() == ["CreateTable", "ReportTime"]


def test_an_entry_of_time_without_an_answer_refuses_no_commit(lake: Lake) -> None:
    lake.world.advance(10 * DAY)
    head = lake.process(retry=Retry(seconds_max=0))
    commit = lake.story.transaction(AddFiles(()))
    lake.story.log.appends = ["lost"]
    with pytest.raises(UnavailableError, match="did not answer"):
        head.commit(commit)
    assert head.commit(commit) == 3
    assert lake.kinds() == ["CreateTable", "ReportTime", "AddFiles"]


def test_a_state_remembers_few_clocks(lake: Lake) -> None:
    head = lake.story.head
    for n in range(READINGS_MAX + 3):
        lake.when_committed(head, ReportTime(f"m-{n}", Micros(1), Micros(1)))
    readings = clock_readings(head.state)
    assert {r.machine for r in readings} == {f"m-{n}" for n in range(3, READINGS_MAX + 3)}


def test_a_state_knows_its_last_leap(lake: Lake) -> None:
    assert last_leap(lake.story.state) is None
    before = lake.at
    lake.world.advance(10 * DAY)
    lake.when_committed(lake.process())
    lake.when_committed(lake.process())
    lake.story.head.follow()
    leap = last_leap(lake.story.state)
    assert leap is not None
    assert (leap.before, leap.at) == (before, lake.world.now())
    assert [c.upto for c in lake.changes() if isinstance(c, LeapTime)] == [leap.upto]
