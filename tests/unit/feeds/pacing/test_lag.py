"""How long a connection's oldest record waits (policy `lag_seconds_max`, `on_lag`)."""

from __future__ import annotations

from lakebed.feeds.pacing.lag import MARKS_MAX, Lag, SplitReach


def seen(lag: Lag, now: float, committed: int, end: int) -> bool:
    return lag.see(now, {"a": SplitReach(committed, end)})


def test_a_record_waits_since_the_source_first_said_that_it_is_there() -> None:
    lag = Lag(64)
    seen(lag, 0, 0, 10)
    seen(lag, 10, 0, 20)
    seen(lag, 20, 0, 30)
    assert lag.seconds == 20
    seen(lag, 30, 10, 30)
    assert lag.seconds == 20, "of the one that came at 10"
    seen(lag, 31, 30, 30)
    assert lag.seconds == 0


def test_a_connection_that_keeps_up_does_not_lag_although_something_always_comes() -> None:
    lag = Lag(60)
    for second in range(1_000):
        assert not seen(lag, second, 10 * second - 20, 10 * second)
        assert lag.seconds <= 4


def test_an_episode_begins_once_and_ends_when_the_lag_is_half_of_the_bound() -> None:
    lag = Lag(60)
    begins = [second for second in range(120) if seen(lag, second, 0, 10 + second)]
    assert begins == [61]
    seen(lag, 120, 90, 130)
    assert lag.is_lagging
    seen(lag, 121, 129, 131)
    assert not lag.is_lagging
    assert any(seen(lag, 121 + second, 129, 300) for second in range(70)), "another one"


def test_while_nothing_is_known_the_lag_grows() -> None:
    lag = Lag(60)
    seen(lag, 0, 0, 10)
    assert not lag.see(50, {})
    assert lag.see(61, {})


def test_a_source_split_that_another_worker_has_now_counts_no_more() -> None:
    lag = Lag(60)
    seen(lag, 0, 0, 10)
    lag.see(50, {"b": SplitReach(0, 0)})
    assert lag.seconds == 0


def test_little_is_remembered_however_long_it_takes() -> None:
    lag = Lag(60)
    for second in range(10_000):
        seen(lag, second, 0, second + 1)
    assert len(lag._marks["a"]) <= MARKS_MAX
    assert lag.seconds == 9_999


def test_without_a_bound_nothing_is_done() -> None:
    lag = Lag(0)
    seen(lag, 0, 0, 10)
    assert not seen(lag, 10**6, 0, 10)
