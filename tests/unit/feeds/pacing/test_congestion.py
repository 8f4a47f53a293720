"""A source that is faster than its table: when that counts, what is tried, and when it is over."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from lakebed.feeds.pacing.congestion import Congestion, CongestionRules, Rung
from lakebed.feeds.pacing.left_out import allowed_of, chances, discards_of
from lakebed.feeds.pacing.pace import Pace
from lakebed.model.feeds.tallies import Tally


class Stream:
    """A source that gives so many records a second, of which so many are taken."""

    def __init__(self, *rungs: Rung, **more: float) -> None:
        self.congestion = Congestion(CongestionRules(rungs=rungs, **more))
        self.now, self.behind, self.taken = 0.0, 0.0, 0.0

    def go(self, seconds: int, *, comes: float, goes: float) -> None:
        """goes: how many can be stored; of those left out, any number can be read."""
        for _ in range(seconds):
            self.now += 1
            keep = self.congestion.relief.keep
            read = min(self.behind + comes, goes / keep)
            self.behind += comes - read
            self.taken += read
            self.congestion.see(
                self.now,
                behind=round(self.behind),
                taken=round(self.taken),
                is_caught_up=self.behind == 0,
            )


def test_a_backlog_that_gets_smaller_is_no_congestion() -> None:
    stream = Stream("discard", "backpressure")
    stream.behind = 100_000
    stream.go(60, comes=10, goes=50)
    assert stream.congestion.rung is None
    assert stream.congestion.relief.discards == 0


def test_one_that_grows_for_five_seconds_is_and_ends_when_all_is_read() -> None:
    stream = Stream("discard", "backpressure")
    stream.go(4, comes=100, goes=50)
    assert stream.congestion.rung is None
    stream.go(4, comes=100, goes=50)
    assert stream.congestion.rung == "discard"
    assert stream.congestion.relief.discards == 0.1
    stream.go(30, comes=0, goes=50)
    assert stream.congestion.rung is None
    assert stream.congestion.relief.discards == 0


def test_the_next_rung_comes_after_two_minutes_if_it_grows_still_and_keeps_the_first() -> None:
    stream = Stream("discard", "backpressure")
    stream.go(120, comes=100, goes=50)
    assert stream.congestion.rung == "discard"
    stream.go(10, comes=100, goes=50)
    assert stream.congestion.rung == "backpressure"
    assert stream.congestion.relief.discards == 0.1
    stream.go(500, comes=100, goes=50)
    assert stream.congestion.rung == "backpressure", "there is no other"


def test_a_throttle_lets_through_what_can_be_stored_and_opens_again() -> None:
    stream = Stream("throttle", "backpressure")
    stream.go(60, comes=400, goes=100)
    assert stream.congestion.relief.keep == pytest.approx(0.25, abs=0.08)
    before = stream.behind
    stream.go(60, comes=400, goes=100)
    assert stream.behind <= before + 400
    stream.go(60, comes=50, goes=100)
    assert stream.congestion.relief.keep == 1.0


def test_it_is_over_when_next_to_nothing_is_left_of_a_source_that_never_ends() -> None:
    stream = Stream("throttle")
    stream.go(60, comes=400, goes=100)
    assert stream.congestion.relief.keep < 1
    stream.behind = 150.0
    for _ in range(20):  # each look finds something new
        stream.now += 1
        stream.taken += 200
        stream.congestion.see(stream.now, behind=50, taken=round(stream.taken), is_caught_up=False)
    assert stream.congestion.rung is None
    assert stream.congestion.relief.keep == 1


def test_a_throttle_never_goes_below_its_floor() -> None:
    stream = Stream("throttle", throttle_floor=0.2)
    stream.go(300, comes=100_000, goes=1)
    assert stream.congestion.relief.keep == 0.2


def test_chances_are_even_always_the_same_and_others_in_another_source_split() -> None:
    positions = np.arange(100_000)
    found = chances("orders:3", positions)
    assert found.min() >= 0
    assert found.max() < 1
    counts, _ = np.histogram(found, 10, (0, 1))
    assert (abs(counts - 10_000) < 500).all()
    assert (found == chances("orders:3", positions)).all()
    assert (found[500:] == chances("orders:3", positions[500:])).all()
    other = chances("orders:4", positions)
    assert abs(np.corrcoef(found, other)[0, 1]) < 0.02


def test_the_newest_are_discarded_first_and_no_more_than_is_allowed() -> None:
    assert discards_of([5, 5, 5], 7) == [0, 2, 5]
    assert discards_of([5, 5], 0) == [0, 0]
    assert discards_of([5, 5], -3) == [0, 0]
    assert discards_of([2, 3], 100) == [2, 3]
    assert discards_of([], 4) == []


def test_a_pace_gives_one_second_ahead_and_then_so_many_a_second() -> None:
    pace, read = Pace(100, 0.0), 0
    for now in np.arange(0, 10, 0.01):
        if pace.may_read(float(now)):
            pace.read(7)
            read += 7
    assert 1_000 <= read <= 1_107
    unbounded = Pace(0, 0.0)
    unbounded.read(10**9)
    assert unbounded.may_read(0.0)


@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.5, 1.0])
def test_of_no_hour_more_than_the_share_is_discarded_whichever_a_round_is_counted_in(
    fraction: float,
) -> None:
    rng, hour = random.Random(7), 0
    read, discarded = Counter[int](), Counter[int]()
    for _ in range(2_000):
        count, may_turn = rng.randrange(200), rng.random() < 0.1
        tally = Tally(read=read[hour], discarded=discarded[hour])
        newest = sum(discards_of([count], allowed_of(fraction, tally, count, may_turn=may_turn)))
        hour += may_turn and rng.random() < 0.5
        read[hour] += count
        discarded[hour] += newest
        assert discarded[hour] <= fraction * read[hour]
    assert discarded.total() >= 0.9 * fraction * read.total()
