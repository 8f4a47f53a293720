"""Rounds that are committed when a minute of the wall clock begins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakebed.feeds.rotation import MINUTE_MICROS, RotationLimits
from tests.unit.feeds.test_pipeline import Given

AT_MINUTES = RotationLimits(seconds=600, idle_seconds=600, at_minutes=True)


@pytest.fixture
def given(tmp_path: Path) -> Iterator[Given]:
    made = Given(tmp_path)
    made.pipeline = made.another(limits=AT_MINUTES)
    made.clock.advance(60 - made.clock.now() % MINUTE_MICROS / 1_000_000 + 29.5)
    yield made
    made.lake.close()


def test_all_source_splits_are_committed_at_the_mark_and_none_before(given: Given) -> None:
    given.source.lines = {"a": b"1\n", "b": b"2\n"}
    for first, second in ((b"1", b"2"), (b"3", b"4")):  # each minute has a mark of its own
        assert given.pipeline.turn().has_read, "in the middle of a minute"
        given.clock.advance(30)
        assert given.pipeline.turn().committed is None, "half a second before the mark"
        given.clock.advance(1)
        done = given.pipeline.turn().committed
        assert done is not None
        assert (sorted(done.at), done.tally.stored) == (["a", "b"], 2)
        assert given.pipeline.is_idle
        assert {first, second} <= set(given.values())
        given.source.lines["a"] += b"3\n"
        given.source.lines["b"] += b"4\n"
        given.clock.advance(29)


def test_where_no_mark_is_wanted_a_round_waits_for_its_age(given: Given) -> None:
    given.pipeline = given.another(limits=RotationLimits(seconds=600, idle_seconds=600))
    given.source.lines = {"a": b"1\n"}
    given.pipeline.turn()
    given.clock.advance(599)
    assert given.pipeline.turn().committed is None
    given.clock.advance(1)
    assert given.pipeline.turn().committed is not None
