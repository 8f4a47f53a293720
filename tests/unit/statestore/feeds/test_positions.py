"""How far a source was taken is committed with its rows: a chain without gaps (R1 to R3)."""

import pytest

from lakebed.errors import ConflictError, CorruptError, InvalidError, NewerFormatError
from lakebed.feed_errors import OwnerFencedError, PositionMovedError
from lakebed.model.feeds.positions import (
    Position,
    connection_id,
    decode_position,
    encode_position,
    position_name,
)
from lakebed.model.names import ConnectionId
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.log_entries.table_changes import Clear
from lakebed.statestore.log_entries.transactions import PositionChange
from tests.dsl import TableStory
from tests.dsl.table_story import next_position

FIRST = next_position("topic", None, 10)
SECOND = next_position("topic", FIRST.value, 20)


def committed(story: TableStory, position: PositionChange, **files: int) -> int:
    changes = (AddFiles(story.new_files("all", **files)),) if files else ()
    return story.head.commit(story.transaction(*changes, positions=[position]))


def test_a_position_is_committed_with_its_rows_or_neither() -> None:
    story = TableStory()
    committed(story, FIRST, a=1)
    with pytest.raises(PositionMovedError, match="taken on"):
        committed(story, next_position("topic", None, 20), b=1)
    with pytest.raises(PositionMovedError, match="taken on"):
        committed(story, FIRST, b=1)
    with pytest.raises(ConflictError, match="not there yet") as early:
        committed(story, next_position("topic", SECOND.value, 30), b=1)
    assert not isinstance(early.value, PositionMovedError), "it may be there later"
    assert story.summary() == "all\n  a  1 rows"
    committed(story, SECOND, b=1)
    assert story.state.position("topic") == (SECOND.value, 0)
    assert story.state.position("other") is None


def test_a_position_that_is_moved_back_refuses_what_was_read_before() -> None:
    story = TableStory()
    committed(story, FIRST)
    committed(story, SECOND)
    late = next_position("topic", SECOND.value, 30)
    committed(story, next_position("topic", SECOND.value, 10))
    with pytest.raises(PositionMovedError):
        committed(story, SECOND, a=1)
    with pytest.raises(PositionMovedError):
        committed(story, late, a=1)
    assert story.summary() == "all"


def test_a_chain_in_one_group_is_checked_member_by_member() -> None:
    story = TableStory()
    other = next_position("topic", FIRST.value, 21)
    third = next_position("topic", SECOND.value, 30)
    lost = next_position("topic", other.value, 31)
    group = [story.transaction(positions=[p]) for p in (FIRST, SECOND, other, third, lost)]
    one, two, refused, three, behind = story.head.commit_group(group)
    assert one == two == three
    assert isinstance(refused, PositionMovedError)
    assert isinstance(behind, PositionMovedError), "it follows the one that was refused"
    assert story.state.position("topic") == (third.value, 0)


def test_an_older_owner_of_a_source_is_fenced() -> None:
    story = TableStory()
    committed(story, next_position("topic", None, 10, owner=3))
    with pytest.raises(OwnerFencedError, match="newer owner"):
        committed(story, next_position("topic", FIRST.value, 20, owner=2))
    newer = next_position("topic", FIRST.value, 20, owner=4)
    committed(story, newer)
    assert story.state.position("topic") == (newer.value, 4)


def test_a_cleared_table_keeps_its_positions() -> None:
    story = TableStory()
    committed(story, FIRST, a=1)
    story.when_committed(Clear(None))
    assert story.state.position("topic") == (FIRST.value, 0)


@pytest.mark.parametrize(
    "position",
    [
        PositionChange("topic", None, b""),
        PositionChange("topic", None, b"\x01"),
        PositionChange("topic", b"10", FIRST.value),
        PositionChange("topic", None, SECOND.value),
        PositionChange("topic", FIRST.value, FIRST.value),
        PositionChange("_lakebed/leap", None, FIRST.value),
        PositionChange("", None, FIRST.value),
        PositionChange("é" * 300, None, FIRST.value),
    ],
    ids=str,
)
def test_what_is_no_position_is_refused_and_changes_nothing(position: PositionChange) -> None:
    story = TableStory()
    before = story.log.appended
    with pytest.raises(InvalidError):
        committed(story, position, a=1)
    assert story.summary() == "all"
    assert story.log.appended == before


@pytest.mark.parametrize(
    "position", [Position(1, 0), Position(7, b"\xff" * 40, "made anew", b"cursor")], ids=str
)
def test_a_position_comes_back_from_its_bytes(position: Position) -> None:
    assert decode_position(encode_position(position)) == position


def test_bytes_of_a_newer_release_are_no_damage() -> None:
    with pytest.raises(NewerFormatError):
        decode_position(b"\x93\x04\x01\xa1x")
    with pytest.raises(CorruptError):
        decode_position(b"\x93\x01\x01\xa1x")


def test_names_that_cannot_be_are_refused() -> None:
    feed = connection_id("0f" * 16)
    assert position_name(feed, "orders/0") == f"{feed}/orders/0"
    for id_ in ("", "A", "a/b", "x" * 65):
        with pytest.raises(InvalidError):
            connection_id(id_)
    for source_split in ("", "x" * 500):
        with pytest.raises(InvalidError):
            position_name(ConnectionId("feed"), source_split)
