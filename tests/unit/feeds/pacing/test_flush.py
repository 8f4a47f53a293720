"""When a wish to flush is fulfilled: what was read when it was heard is committed, and not less."""

from __future__ import annotations

from typing import Any, cast

from lakebed.feeds.committed import SplitAt
from lakebed.feeds.open_splits import OpenSplit
from lakebed.feeds.pacing.flush import Flush
from lakebed.model.feeds.positions import Position
from lakebed.ports.record_source import Records, SourceSplit, SplitReader


def held(name: str, *ends: int) -> OpenSplit[Any]:
    records = [Records(begin=0, end=end, count=1, size=1, batch=None) for end in ends]
    at = SplitAt(None, Position(0, 0))
    reader = cast("SplitReader[Any]", None)
    return OpenSplit(SourceSplit(name, name), 1, at, reader, records)


def test_nothing_held_is_committed_at_once() -> None:
    flush = Flush[Any]()
    flush.ask(3, [held("a")])
    assert (flush.is_wanted, flush.done) == (False, 3)


def test_it_is_done_when_each_source_split_is_as_far_as_it_was_read() -> None:
    flush = Flush[Any]()
    flush.ask(3, [held("a", 5, 9), held("b", 4), held("c")])
    for split, end in (("a", 5), ("b", 4), ("c", 100), ("d", 100)):
        flush.committed(split, end)
        assert (flush.is_wanted, flush.done) == (True, 0), "half of a is committed"
    flush.committed("a", 12)
    assert (flush.is_wanted, flush.done) == (False, 3)


def test_one_that_another_worker_took_over_leaves_it_open_until_the_next_wish() -> None:
    flush = Flush[Any]()
    flush.ask(3, [held("a", 5), held("gone", 5)])
    flush.committed("a", 5)
    assert (flush.is_wanted, flush.done) == (True, 0)
    flush.ask(4, [held("a", 7)])
    flush.committed("a", 7)
    assert (flush.is_wanted, flush.done) == (False, 4)
