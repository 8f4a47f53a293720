"""Which versions stay: the horizon, tags, pins, followers (H38)."""

import pytest

from lakebed.errors import (
    ConflictError,
    FollowerBehindError,
    InvalidError,
    TagExistsError,
    VersionExpiredError,
)
from lakebed.model.names import MICROS_PER_SECOND, Micros, TransactionNumber
from lakebed.statestore.log_entries import version_changes
from lakebed.statestore.log_entries.log_changes import ResumeLog
from lakebed.statestore.log_entries.table_changes import DropTable, PutPin
from lakebed.statestore.log_entries.version_changes import (
    BeginFollowing,
    DropFollower,
    DropTag,
    MoveFollower,
    PinVersion,
    PutTag,
    RaiseHorizon,
)
from lakebed.statestore.table_state.kept_versions import (
    follower_of,
    holders,
    horizon_of,
    kept_versions,
    tag_of,
    tags_of,
    unneeded,
)
from tests.dsl import TableStory

HOUR = 3_600 * MICROS_PER_SECOND
EVER = Micros(1 << 60)


def number(n: int) -> TransactionNumber:
    return TransactionNumber(n)


def story_with_horizon(at: int = 0) -> TableStory:
    """A table whose horizon is known; its next entry is number 3."""
    story = TableStory()
    story.when_committed(RaiseHorizon(number(at)))
    return story


def merged(story: TableStory, job: str, *files: str, **output: int) -> TransactionNumber:
    story.when_claimed(job, "all", *files)
    return story.when_replaced(job, "all", *files, **output)


def free(story: TableStory, *, now: Micros | None = None) -> list[str]:
    """Return the garbage that nobody needs, by name."""
    names = {file.name: name for name, file in story.files.items()}
    with story.head.reading() as state:
        found = unneeded(state, kept_versions(state, now=now), before=EVER)
        return [names[garbage.file] for garbage in found]


def until(story: TableStory, hours: float) -> Micros:
    return Micros(int(story.clock.now() + hours * HOUR))


def test_a_version_keeps_what_was_there_and_nothing_that_came_or_went_otherwise() -> None:
    story = story_with_horizon()
    story.given_files("all", a=1, b=1)
    merged(story, "one", "a", "b", c=2)
    tagged = story.given_files("all", d=1)
    story.when_committed(PutTag("then", tagged))
    merged(story, "two", "c", "d", e=3)
    story.given_files("all", f=1)
    merged(story, "three", "e", "f", g=4)
    assert free(story) == ["a", "b", "e", "f"]
    story.when_committed(DropTag("then"))
    assert sorted(free(story)) == ["a", "b", "c", "d", "e", "f"]


def test_a_file_of_the_entry_that_a_version_ends_with_is_part_of_it() -> None:
    story = story_with_horizon()
    added = story.given_files("all", a=1)
    before = story.when_committed(PutTag("before", number(added - 1)))
    gone = story.when_cleared()
    assert free(story) == ["a"]
    story.when_committed(PutTag("after", gone))
    assert free(story) == ["a"]
    story.when_committed(PutTag("then", added))
    assert free(story) == []
    assert before > added


def test_a_tag_is_refused_below_the_horizon_and_the_oldest_version_is_named() -> None:
    story = story_with_horizon()
    first = story.given_files("all", a=1)
    second = story.given_files("all", b=1)
    story.when_committed(RaiseHorizon(second))
    with pytest.raises(VersionExpiredError, match=f"can still be read is {second}"):
        story.when_committed(PutTag("late", first))
    assert tags_of(story.state) == []
    story.when_committed(PutTag("in-time", second))
    assert [(tag.name, tag.number) for tag in tags_of(story.state)] == [("in-time", second)]


def test_a_version_that_has_a_tag_may_get_another_tag_and_pins() -> None:
    story = story_with_horizon()
    first = story.given_files("all", a=1)
    story.when_committed(PutTag("one", first))
    last = story.given_files("all", b=1)
    story.when_committed(RaiseHorizon(last))
    story.when_committed(PutTag("two", first), PinVersion("reader", first, until(story, 1)))
    story.when_committed(DropTag("one"))
    merged(story, "job", "a", "b", c=2)
    assert free(story) == ["b"]
    story.when_committed(DropTag("two"))
    assert free(story) == ["b"], "the pin is left"
    with pytest.raises(VersionExpiredError):
        story.when_committed(PutTag("three", first))


def test_a_pin_that_its_own_entry_made_is_no_reason_for_a_later_one() -> None:
    story = story_with_horizon()
    pinned = story.when_committed(PutPin("reader", until(story, 1)))
    story.when_committed(RaiseHorizon(story.given_files("all", a=1)))
    with pytest.raises(VersionExpiredError):  # it may end while the collector looks elsewhere
        story.when_committed(PutTag("late", pinned))


def test_a_pin_stays_on_its_version() -> None:
    story = story_with_horizon()
    first, second = story.given_files("all", a=1), story.given_files("all", b=1)
    story.when_committed(PinVersion("reader", first, until(story, 1)))
    story.when_committed(PinVersion("reader", first, until(story, 5)))
    with pytest.raises(InvalidError, match="a pin stays on its version"):
        story.when_committed(PinVersion("reader", second, until(story, 1)))
    (pin,) = story.state.pins()
    assert (pin.number, pin.until) == (first, until(story, 5))


def test_the_first_horizon_of_a_table_lies_before_its_entry() -> None:
    story = TableStory()
    story.given_files("all", a=1)
    assert horizon_of(story.state) is None
    with pytest.raises(VersionExpiredError):
        story.when_committed(PutTag("then", number(2)))
    raised = story.when_committed(RaiseHorizon(number(0)))
    assert horizon_of(story.state) == raised - 1


def test_the_horizon_only_rises_and_never_above_the_log() -> None:
    story = story_with_horizon()
    story.given_files("all", a=1)
    story.when_committed(RaiseHorizon(number(3)))
    story.when_committed(RaiseHorizon(number(2)))
    assert horizon_of(story.state) == 3
    with pytest.raises(InvalidError, match="lies above the log"):
        story.when_committed(RaiseHorizon(number(9)))


def test_the_log_ends_pins_and_followers_by_its_own_time() -> None:
    story = story_with_horizon()
    story.when_committed(PinVersion("short", number(2), until(story, 1)))
    story.when_committed(PinVersion("long", number(2), until(story, 9)))
    story.when_committed(BeginFollowing("slow", None, until(story, 1)))
    story.clock.advance(2 * 3_600)
    story.given_files("all", a=1)
    assert [pin.id for pin in story.state.pins()] == ["long", "short"]
    story.when_committed(RaiseHorizon(number(0)))
    assert [pin.id for pin in story.state.pins()] == ["long"]
    follower = follower_of(story.state, "slow")
    assert follower is not None
    assert follower.is_behind


def test_all_that_became_garbage_behind_a_follower_stays() -> None:
    story = story_with_horizon()
    story.given_files("all", a=1)
    story.when_cleared()
    begun = story.when_committed(BeginFollowing("mirror", None, until(story, 1)))
    story.given_files("all", b=1)
    cleared = story.when_cleared()
    assert free(story) == ["a"]
    assert free(story, now=until(story, 2)) == ["a", "b"]
    story.when_committed(MoveFollower("mirror", begun, cleared, until(story, 1)))
    assert free(story) == ["a", "b"]


def test_a_follower_moves_from_where_it_is() -> None:
    story = story_with_horizon()
    begun = story.when_committed(BeginFollowing("mirror", None, until(story, 1)))
    story.given_files("all", a=1)
    story.when_committed(MoveFollower("mirror", begun, number(begun + 1), until(story, 2)))
    with pytest.raises(ConflictError, match="the follower has moved"):
        story.when_committed(MoveFollower("mirror", begun, number(begun + 1), until(story, 2)))
    with pytest.raises(InvalidError, match="does not go back"):
        story.when_committed(
            MoveFollower("mirror", number(begun + 1), number(begun), until(story, 2))
        )
    with pytest.raises(InvalidError, match="the log has no such entry"):
        story.when_committed(MoveFollower("mirror", number(begun + 1), number(99), until(story, 2)))
    with pytest.raises(InvalidError, match="did you mean 'mirror'"):
        story.when_committed(DropFollower("miror"))
    story.when_committed(DropFollower("mirror"))
    assert follower_of(story.state, "mirror") is None


def test_a_follower_that_fell_behind_begins_anew() -> None:
    story = story_with_horizon()
    begun = story.when_committed(BeginFollowing("mirror", None, until(story, 1)))
    with pytest.raises(InvalidError, match="the follower is there"):
        story.when_committed(BeginFollowing("mirror", None, until(story, 1)))
    story.clock.advance(2 * 3_600)
    last = story.when_committed(RaiseHorizon(number(begun)))
    with pytest.raises(FollowerBehindError, match="read the table"):
        story.when_committed(MoveFollower("mirror", begun, number(begun + 1), until(story, 2)))
    with pytest.raises(VersionExpiredError):
        story.when_committed(BeginFollowing("mirror", number(begun - 1), until(story, 2)))
    story.when_committed(BeginFollowing("mirror", last, until(story, 2)))
    follower = follower_of(story.state, "mirror")
    assert follower is not None
    assert follower.number == last


@pytest.mark.parametrize("name", ["", "-a", "a b", "41", "2026-11-25", "a" * 101, "a/b", "ä"])
def test_what_is_no_name_is_refused(name: str) -> None:
    story = story_with_horizon()
    for change in (PutTag(name), BeginFollowing(name, None, Micros(5))):
        with pytest.raises(InvalidError, match=r"not a name|is no name"):
            story.when_committed(change)


def test_names_of_tags_are_used_once_and_the_nearest_is_named() -> None:
    story = story_with_horizon()
    story.when_committed(PutTag("2026-q3"))
    with pytest.raises(TagExistsError, match="drop that tag first"):
        story.when_committed(PutTag("2026-q3"))
    with pytest.raises(InvalidError, match="did you mean '2026-q3'"):
        story.when_committed(DropTag("2026-q4"))
    with pytest.raises(InvalidError, match="its last is 3"):
        story.when_committed(PutTag("ahead", number(4)))


def test_tags_and_followers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version_changes, "TAGS_MAX", 2)
    monkeypatch.setattr(version_changes, "FOLLOWERS_MAX", 1)
    story = story_with_horizon()
    story.when_committed(PutTag("a"), PutTag("b"), BeginFollowing("a", None, Micros(5)))
    for change in (PutTag("c"), BeginFollowing("b", None, Micros(5))):
        with pytest.raises(InvalidError, match="drop some first"):
            story.when_committed(change)


def test_a_repair_of_the_log_raises_the_horizon_above_what_may_have_been_collected() -> None:
    story = story_with_horizon()
    story.given_files("all", a=1)
    repaired = story.when_committed(ResumeLog(number(3), False))
    assert horizon_of(story.state) == repaired - 1
    old = TableStory()
    old.when_committed(ResumeLog(number(1), False))
    assert horizon_of(old.state) is None, "its meaning in old logs stays"


def test_a_drop_takes_all_of_it_and_a_clear_nothing() -> None:
    story = story_with_horizon()
    story.when_committed(PutTag("a"), BeginFollowing("f", None, until(story, 1)))
    story.when_cleared()
    assert tag_of(story.state, "a") is not None
    story.when_committed(DropTable())
    for table in ("tags", "followers", "horizon"):
        query = f"SELECT count(*) FROM {table}"
        assert story.state.connection.execute(query).fetchone() == (0,)


def test_what_each_keeps_for_itself_alone_is_counted() -> None:
    story = story_with_horizon()
    first = story.given_files("all", a=1)
    story.when_committed(PutTag("first", first))
    second = story.given_files("all", b=1)
    story.when_committed(PutTag("second", second), PinVersion("p", second, until(story, 1)))
    merged(story, "job", "a", "b", c=2)
    begun = story.when_committed(BeginFollowing("f", None, until(story, 1)))
    story.when_cleared()
    story.when_committed(DropTag("second"))
    with story.head.reading() as state:
        found = holders(state, before=EVER, now=story.clock.now())
        later = holders(state, before=EVER, now=until(story, 2))
        young = holders(state, before=Micros(0), now=story.clock.now())
    assert [(h.kind, h.name, h.number, h.bytes) for h in found] == [
        ("tag", "first", first, 0),  # the pin needs a, too
        ("pin", "p", second, 1_000),
        ("follower", "f", begun, 1_000),
    ]
    assert [(h.name, h.bytes) for h in later] == [("first", 1_000)]
    assert [h.bytes for h in young] == [0, 0, 0], "what is not past its delay stays anyway"
