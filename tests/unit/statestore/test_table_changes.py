"""A table's creation and end, generations, settings, positions, and log time (H10, H15, H16)."""

import pytest

from lakebed.errors import (
    ClockAheadError,
    GenerationError,
    InvalidError,
    LogMissingError,
    TableExistsError,
    TableMissingError,
)
from lakebed.model.names import MICROS_PER_SECOND, Micros, TransactionNumber
from lakebed.statestore.answers import Retry
from lakebed.statestore.log_entries.codec import Entry, encode_entry
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.log_entries.table_changes import (
    ChangeSettings,
    Clear,
    CreateTable,
    DropTable,
    MarkUnsplittable,
    PutPin,
    create_table,
)
from tests.dsl import ScriptedLog, TableStory, point
from tests.dsl.table_story import SCHEMA

HOUR = 3600 * MICROS_PER_SECOND


def empty_log(story: TableStory) -> ScriptedLog:
    return ScriptedLog(type(story.log.log)(story.clock))


def test_a_table_is_created_once() -> None:
    story = TableStory("L | m | R")
    assert story.state.schema() == SCHEMA
    assert story.summary() == "L\nR"
    with pytest.raises(TableExistsError):
        story.when_committed(create_table(SCHEMA, {}, ()))


def test_nothing_happens_to_a_table_before_it_is_created() -> None:
    story = TableStory()
    head = story.another_head(log=empty_log(story))
    for change in (PutPin("p", Micros(1)), Clear(), DropTable()):
        with pytest.raises(LogMissingError):
            head.commit(story.transaction(change, base=0, generation=0))


@pytest.mark.parametrize(
    "creation",
    [
        create_table(SCHEMA, {}, (point("b"), point("a"))),
        create_table(SCHEMA, {}, (point("a"), point("a"))),
        create_table(SCHEMA, {}, (b"",)),
        CreateTable({"format": 1}, {}),
        CreateTable(create_table(SCHEMA, {}, ()).schema, {"no_such_setting": 1}),
    ],
)
def test_a_creation_that_cannot_be_is_refused(creation: CreateTable) -> None:
    story = TableStory()
    head = story.another_head(log=empty_log(story))
    with pytest.raises(InvalidError):
        head.commit(story.transaction(creation, base=0, generation=0))
    assert head.state.head().number == 0


def test_clear_makes_all_files_garbage_ends_claims_and_begins_a_generation() -> None:
    story = TableStory("L | m | R")
    story.given_files("L", a=1)
    story.when_committed(
        AddFiles((*story.new_files("L", b=1), *story.new_files("R", b=1))),
        MarkUnsplittable(story.partitions["L"], 9),
    )
    story.when_claimed("one", "L", "a")
    story.when_cleared()
    assert story.summary() == "L\nR\ngarbage\n  a\n  b"
    assert story.state.jobs() == []
    assert story.state.head().generation == 2
    assert [f.rows_unsplittable for f in story.state.leaf_figures()] == [0, 0]


def test_a_commit_of_an_older_generation_plans_again() -> None:
    story = TableStory()
    late = story.transaction(AddFiles(story.new_files("all", a=1)))
    story.when_cleared()
    with pytest.raises(GenerationError, match="plan again"):
        story.head.commit(late)


def test_partition_ids_are_never_used_twice() -> None:
    story = TableStory("L | m | R")
    before = set(story.state.tree().nodes)
    story.when_cleared("A | g | B | p | C")
    assert not before & set(story.state.tree().nodes)
    assert story.summary() == "A\nB\nC"
    story.given_files("B", keys=("h", "i"), a=1)
    assert story.summary() == "A\nB\n  a  1 rows\nC"


def test_a_clear_with_points_that_cannot_be_is_refused() -> None:
    story = TableStory()
    with pytest.raises(InvalidError, match="not in order"):
        story.when_committed(Clear((point("b"), point("a"))))


def test_a_dropped_table_is_a_tombstone() -> None:
    story = TableStory()
    story.given_files("all", a=1)
    drop = story.transaction(DropTable())
    number = story.head.commit(drop)
    assert story.state.head().dropped
    assert list(story.state.all_references()) == []
    for change in (PutPin("p", Micros(1)), create_table(SCHEMA, {}, ()), DropTable()):
        with pytest.raises(TableMissingError):
            story.when_committed(change)
    assert story.head.commit(drop) == number


def test_settings_change_one_by_one_and_bad_ones_are_refused() -> None:
    story = TableStory()
    story.when_committed(ChangeSettings({"job_files_max": 5}))
    story.when_committed(ChangeSettings({"size_ratio": 2}))
    settings = story.state.settings()
    assert (settings.job_files_max, settings.size_ratio) == (5, 2)
    for changes in ({"job_files_max": 1}, {"job_files": 5}):
        with pytest.raises(InvalidError):
            story.when_committed(ChangeSettings(changes))


def test_log_time_never_runs_backwards_though_clocks_do() -> None:
    story = TableStory()
    first = story.state.head().at
    behind = story.another_head(clock=story.clock.machine(-HOUR))
    story.clock.advance(60)
    behind.commit(story.transaction(AddFiles(())))
    assert behind.state.head().at == first
    story.when_committed(AddFiles(()))
    assert story.state.head().at == story.clock.now()


def test_a_clock_an_hour_ahead_is_refused_and_one_of_minutes_is_not() -> None:
    story = TableStory()
    wrong = story.clock.machine(HOUR)
    ahead = story.another_head(clock=wrong, retry=Retry(seconds_max=1))
    with pytest.raises(ClockAheadError, match="set the clock"):
        ahead.commit(story.transaction(AddFiles(())))
    with pytest.raises(ClockAheadError):
        ahead.log_time()
    assert story.another_head().commit(story.transaction(AddFiles(()))) == 2
    wrong.offset_micros = 9 * 60 * MICROS_PER_SECOND
    assert ahead.commit(story.transaction(AddFiles(()))) == 3
    assert ahead.log_time() == wrong.now()


def test_what_landed_is_told_though_the_clock_is_wrong() -> None:
    story = TableStory()
    transaction = story.transaction(AddFiles(()))
    number = story.head.commit(transaction)
    ahead = story.another_head(clock=story.clock.machine(HOUR), retry=Retry(seconds_max=1))
    assert ahead.commit(transaction) == number


def test_commits_go_on_after_a_clock_that_was_nine_minutes_ahead() -> None:
    story = TableStory()
    ahead = story.another_head(clock=story.clock.machine(9 * 60 * MICROS_PER_SECOND))
    ahead.commit(story.transaction(AddFiles(())))
    at = ahead.state.head().at
    story.when_committed(AddFiles(()))
    assert story.state.head().at == at  # waits in log time until the store's clock has passed it
    assert story.head.log_time() == at


def test_a_setting_that_had_another_name_before_is_read_and_changed() -> None:
    story = TableStory("L")
    before = story.transaction(ChangeSettings({"scrap_rows_max": 7}))
    number = TransactionNumber(story.state.head().number + 1)
    story.log.append(number, encode_entry(Entry(story.clock.now(), (before,))))
    story.head.follow()
    assert story.state.settings().shared_file_rows_max == 7
    story.when_committed(ChangeSettings({"shared_file_rows_max": 9}))
    assert story.state.settings().shared_file_rows_max == 9
    with pytest.raises(InvalidError, match="no such setting"):
        story.when_committed(ChangeSettings({"scrap_rows_max": 7}))
