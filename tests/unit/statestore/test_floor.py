"""Base and floor, and what is forgotten at the floor (H4, H6, H11, H24)."""

import pytest

from lakebed.errors import FencedError, InvalidError
from lakebed.model.names import MICROS_PER_SECOND, Micros, TransactionNumber
from lakebed.statestore.log_entries.file_changes import AddFiles, RaiseFloor
from lakebed.statestore.log_entries.table_changes import DropPin, PutPin
from lakebed.statestore.log_entries.transactions import Transaction
from lakebed.statestore.table_state.feed_records import number_before
from tests.dsl import TableStory


def raised(story: TableStory, floor: int, users_below: int = 0) -> int:
    change = RaiseFloor(TransactionNumber(floor), TransactionNumber(users_below))
    return story.when_committed(change)


def known(story: TableStory, transaction: Transaction) -> int | None:
    return story.state.landed((transaction.id,)).number_of(transaction.id, transaction.digest)


def test_what_began_below_the_floor_is_fenced() -> None:
    story = TableStory()
    slow = story.transaction(AddFiles(story.new_files("all", slow=1)))  # base 1
    story.given_files("all", a=1)
    raised(story, 2)
    with pytest.raises(FencedError, match="run the job again"):
        story.head.commit(slow)
    assert story.summary() == "all\n  a  1 rows"


def test_what_began_at_the_floor_is_committed() -> None:
    story = TableStory()
    story.given_files("all", a=1)
    just = story.transaction(AddFiles(story.new_files("all", b=1)))  # base 2
    raised(story, 2)
    assert story.head.commit(just) == 4


def test_the_floor_never_sinks_and_never_passes_the_log() -> None:
    story = TableStory()
    for name in "abc":
        story.given_files("all", **{name: 1})
    raised(story, 3)
    raised(story, 2)
    assert story.state.head().floor == 3
    with pytest.raises(InvalidError, match="above the log"):
        raised(story, 7)


def test_ids_of_internal_commits_are_forgotten_when_the_floor_passes_their_base() -> None:
    story = TableStory()
    old = story.transaction(AddFiles(story.new_files("all", a=1)))
    story.head.commit(old)
    young = story.transaction(AddFiles(story.new_files("all", b=1)))
    story.head.commit(young)
    raised(story, 2)
    assert known(story, old) is None
    assert known(story, young) == 3
    with pytest.raises(FencedError):  # and so what was forgotten is not done twice
        story.head.commit(old)


def test_ids_of_users_are_kept_longer_and_forgotten_by_number() -> None:
    story = TableStory()
    first = story.transaction(AddFiles(story.new_files("all", a=1)), user=True)
    story.head.commit(first)
    second = story.transaction(AddFiles(story.new_files("all", b=1)), user=True)
    story.head.commit(second)
    raised(story, 3)
    assert (known(story, first), known(story, second)) == (2, 3)
    raised(story, 3, users_below=3)
    assert (known(story, first), known(story, second)) == (None, 3)


def test_a_users_id_is_not_forgotten_while_its_base_may_still_be_committed() -> None:
    story = TableStory()
    story.given_files("all", a=1)
    commit = story.transaction(AddFiles(story.new_files("all", b=1)), user=True)  # base 2
    story.head.commit(commit)
    raised(story, 2, users_below=4)
    assert known(story, commit) == 3


def test_every_reader_forgets_the_same() -> None:
    story = TableStory()
    for name in "abcdef":
        story.clock.advance(100)
        files = AddFiles(story.new_files("all", **{name: 1}))
        story.head.commit(story.transaction(files, user=name in "ace"))
    raised(story, 5, users_below=4)
    other = story.another_head()
    other.follow()
    assert other.state.digest() == story.state.digest()


def test_the_last_number_before_a_time_is_known_to_a_minute() -> None:
    story = TableStory()
    times = {}
    for index in range(6):
        story.clock.advance(90)
        number = story.given_files("all", **{f"f{index}": 1})
        times[number] = story.state.head().at
    assert story.state.number_older_than(times[4]) == 3
    assert story.state.number_older_than(Micros(times[4] + 1)) == 4
    assert story.state.number_older_than(Micros(0)) == 0


def test_what_was_written_before_the_oldest_time_that_is_known_has_no_age() -> None:
    story = TableStory()
    for index in range(9):
        story.clock.advance(90)
        story.given_files("all", **{f"f{index}": 1})
    at = story.state.head().at
    before = number_before(story.state, Micros(at - 600_000_000))
    assert before == 2
    raised(story, 6, users_below=6)
    assert number_before(story.state, Micros(at - 600_000_000)) == 0
    assert number_before(story.state, Micros(at - 60_000_000)) > 6
    assert number_before(story.state, at) > 6


def test_entries_within_a_minute_share_a_remembered_time() -> None:
    story = TableStory()
    for index in range(30):
        story.clock.advance(10)
        story.given_files("all", **{f"f{index}": 1})
    (count,) = story.state.connection.execute("SELECT count(*) FROM entry_times").fetchone()
    assert count == 6


def test_a_pin_protects_the_version_that_its_own_entry_makes() -> None:
    story = TableStory()
    story.given_files("all", a=1)
    number = story.when_committed(PutPin("reader", Micros(5)))
    (pin,) = story.state.pins()
    assert (pin.id, pin.number, pin.until) == ("reader", number, 5)


def test_a_pin_put_again_keeps_its_version_and_gets_another_end() -> None:
    story = TableStory()
    number = story.when_committed(PutPin("reader", Micros(5)))
    story.when_committed(PutPin("reader", Micros(9)))
    (pin,) = story.state.pins()
    assert (pin.number, pin.until) == (number, 9)


def test_pins_end_by_being_dropped_and_expired_ones_at_the_floor() -> None:
    story = TableStory()
    now = story.clock.now()
    story.when_committed(PutPin("done", Micros(now + 900 * MICROS_PER_SECOND)))
    story.when_committed(PutPin("short", Micros(now + 50 * MICROS_PER_SECOND)))
    story.when_committed(PutPin("long", Micros(now + 900 * MICROS_PER_SECOND)))
    story.when_committed(DropPin("done"))
    story.when_committed(DropPin("done"))
    story.clock.advance(100)
    assert [p.id for p in story.state.pins()] == ["long", "short"]
    raised(story, 1)
    assert [p.id for p in story.state.pins()] == ["long"]
