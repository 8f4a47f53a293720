"""Bytes of log entries: round trips, newer formats, damage (H14)."""

from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.errors import CorruptError, NewerFormatError
from lakebed.model.feeds.tallies import Tally
from lakebed.model.names import ConnectionId, Micros, TransactionNumber
from lakebed.statestore.log_entries.codec import (
    COMPRESSED_FROM,
    ENTRY_FORMAT,
    STRATEGY_FORMAT,
    Entry,
    decode_entry,
    encode_entry,
)
from lakebed.statestore.log_entries.commit_ledger import FeedChange
from lakebed.statestore.log_entries.feed_changes import Count, Define
from lakebed.statestore.log_entries.log_changes import ResumeLog
from lakebed.statestore.log_entries.range_deletes import DeleteRanges, RecordDeleted
from lakebed.statestore.log_entries.table_changes import (
    ChangeProcessing,
    ChangeSchema,
    ChangeSettings,
    SetProcessing,
)
from lakebed.statestore.log_entries.time_changes import LeapTime, ReportTime, SetTimeBack
from lakebed.statestore.log_entries.version_changes import VERSION_FORMAT, VersionChange
from tests.dsl import TableStory
from tests.golden.every_change import every_change


def test_every_change_comes_back_as_it_was() -> None:
    entry = every_change()
    assert decode_entry(encode_entry(entry), 1) == entry
    for transaction in entry.transactions:
        single = Entry(entry.at, (transaction,))
        assert decode_entry(encode_entry(single), 1) == single


def test_large_entries_are_compressed_and_small_ones_are_not() -> None:
    small, large = Entry(Micros(1), ()), every_change()
    assert encode_entry(small)[1] == 0
    assert encode_entry(large)[1] == 1
    assert len(encode_entry(large)) > COMPRESSED_FROM // 4


def test_an_entry_has_the_lowest_format_that_knows_its_changes() -> None:
    for transaction in every_change().transactions:
        formats: dict[type, int] = {ChangeSchema: 2, SetProcessing: 2, ChangeProcessing: 3}
        formats |= dict.fromkeys((ReportTime, LeapTime, SetTimeBack, ResumeLog), 4)
        formats |= dict.fromkeys(get_args(FeedChange), 5)
        formats |= dict.fromkeys((DeleteRanges, RecordDeleted), 6)
        formats |= dict.fromkeys(get_args(VersionChange), 6)
        body = encode_entry(Entry(Micros(1), (transaction,)))
        assert body[0] == max(formats.get(type(c), 1) for c in transaction.changes)


@pytest.mark.parametrize(
    ("strategy", "wanted"), [("basic", 1), ("size_ratio", 1), ("a_users", STRATEGY_FORMAT)]
)
def test_a_strategy_of_a_user_needs_a_release_that_asks_such(strategy: str, wanted: int) -> None:
    story = TableStory("all")
    for settings in ({"compaction_strategy": strategy, "leaf_rows_max": 9}, {"leaf_rows_max": 9}):
        transaction = story.transaction(ChangeSettings(settings))
        body = encode_entry(Entry(Micros(1), (transaction,)))
        assert body[0] == (wanted if "compaction_strategy" in settings else 1)


@pytest.mark.parametrize("name", ["follower_seconds_max", "leaves_min", "scan_bytes_max"])
def test_a_setting_that_older_releases_do_not_know_needs_a_newer_one(name: str) -> None:
    transaction = TableStory("all").transaction(ChangeSettings({name: 64}))
    assert encode_entry(Entry(Micros(1), (transaction,)))[0] == VERSION_FORMAT


def test_changes_of_feeds_that_were_written_before_event_time_are_read() -> None:
    feed = ConnectionId("feed")
    old = [["define", "feed", 3], ["count", "feed", 3, "0", [1, 1]]]
    new = [Define(feed, 3), Count(feed, 3, "0", Tally(1, 1))]
    for fields, change in zip(old, new, strict=True):
        assert msgspec.convert(fields, Define | Count) == change


def test_a_newer_format_is_told_from_damage() -> None:
    with pytest.raises(NewerFormatError, match="upgrade") as caught:
        decode_entry(bytes((ENTRY_FORMAT + 1, 7)) + b"whatever", 12)
    assert caught.value.facts["number"] == 12


@pytest.mark.parametrize("body", [b"", b"\x01", b"\x00\x00", b"\x01\x02", b"\x01\x01\x00"])
def test_what_is_no_entry_is_corrupt(body: bytes) -> None:
    with pytest.raises(CorruptError, match="not a log entry"):
        decode_entry(body, 1)


@given(st.data())
def test_a_flipped_bit_of_an_entry_is_never_read_as_another(data: st.DataObject) -> None:
    small = Entry(Micros(7), every_change().transactions[:1])
    body = bytearray(encode_entry(data.draw(st.sampled_from([small, every_change()]))))
    body[data.draw(st.integers(0, len(body) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises((CorruptError, NewerFormatError)):
        decode_entry(bytes(body), 1)


@given(st.data())
def test_a_cut_entry_is_never_read_as_another(data: st.DataObject) -> None:
    body = encode_entry(every_change())
    cut = body[: data.draw(st.integers(0, len(body) - 1))]
    with pytest.raises(CorruptError):
        decode_entry(cut, 1)


def test_a_newer_entry_stops_a_reader_and_changes_nothing() -> None:
    story = TableStory()
    story.given_files("all", a=1)
    before = story.state.digest()
    story.log.log.append(TransactionNumber(3), bytes((ENTRY_FORMAT + 1, 0)))
    with pytest.raises(NewerFormatError):
        story.head.follow()
    assert story.state.digest() == before
