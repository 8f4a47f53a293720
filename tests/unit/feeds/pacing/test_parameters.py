"""What single parameters of a policy do, whatever preset it extends."""

from __future__ import annotations

import logging

import pytest

from lakebed.feed_errors import (
    FeedLaggingError,
    RecordRefusedError,
    TooManyBadError,
)
from lakebed.feeds.run_feeds import RunningFeed, run_feeds
from lakebed.observe import events
from tests.unit.feeds.pacing.fed_under_policy import Making


def test_a_lag_that_is_to_stop_the_connection_does(fed: Making) -> None:
    one = fed("own", '[policy.own]\nlag_seconds_max = 30\non_lag = "fail"')
    with pytest.raises(FeedLaggingError):
        one.go(120, comes=150)


def test_a_connection_that_keeps_up_with_a_source_that_never_ends_does_not_lag(
    fed: Making,
) -> None:
    """Each turn finds something new: it never reads everything that is there."""
    one = fed("own", '[policy.own]\nlag_seconds_max = 30\non_lag = "fail"\nrotate_seconds = 5')
    one.go(200, comes=100)
    assert one.pipeline.flow.lag.seconds <= 10


def test_an_hour_with_too_many_bad_records_stops_the_connection(fed: Making) -> None:
    one = fed("own", "[policy.own]\nerrors_fraction_max = 0.2")
    one.source.bad = lambda n: b"no json" if n % 4 == 0 else b""
    one.take(900)
    assert one.tally().read == 900, "of so few it is not looked"
    with pytest.raises(TooManyBadError, match="read=1100 bad=275"):
        one.take(200)
    assert (one.tally().read, one.tally().quarantined) == (1_100, 275), "all of that is committed"
    with pytest.raises(TooManyBadError):
        one.take(4)


def test_what_was_mended_goes_on_in_the_same_hour(fed: Making) -> None:
    """Log time rises with entries alone: a connection that may take nothing would never see the
    next hour of a table that only it fills."""
    one = fed("own", "[policy.own]\nerrors_fraction_max = 0.2")
    one.source.bad = lambda n: b"no json" if n % 4 == 0 and n < 2_000 else b""
    with pytest.raises(TooManyBadError):
        one.take(2_000)
    one.take(500)
    assert one.tally().read == 2_500


def heard(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    """What operators heard of bad records."""
    said = [vars(record) for record in caplog.records if "facts" in vars(record)]
    return [one["facts"] for one in said if one["event"] == events.FEED_QUARANTINE_GREW]


@pytest.mark.parametrize(
    ("count", "bad", "is_heard"),
    [
        (3, 1, False),
        (9, 9, False),
        (10, 10, True),
        (999, 10, True),
        (1_000, 10, False),
        (2_000, 21, True),
    ],
)
def test_operators_hear_of_ten_bad_records_of_an_hour_if_that_is_more_than_a_hundredth(
    fed: Making, caplog: pytest.LogCaptureFixture, count: int, bad: int, is_heard: bool
) -> None:
    one = fed("own", "[policy.own]\nrotate_seconds = 1")
    one.source.bad = lambda n: b"no json" if n >= count - bad else b""
    with caplog.at_level(logging.INFO, logger="lakebed"):
        one.take(count)
    assert (one.tally().read, one.tally().quarantined) == (count, bad)
    assert [facts["quarantined_count"] for facts in heard(caplog)][-1:] == [bad] * is_heard
    assert {facts["read_count"] for facts in heard(caplog)} <= {count}


def test_each_round_with_bad_records_of_a_bad_hour_is_heard_and_no_other(
    fed: Making, caplog: pytest.LogCaptureFixture
) -> None:
    """So an alarm goes on while the source gives bad ones, and ends when it was mended."""
    one = fed("own", "[policy.own]\nerrors_in_row_max = 1_000")
    one.source.bad = lambda n: b"no json" if n < 40 else b""
    with caplog.at_level(logging.INFO, logger="lakebed"):
        one.take(20)
        one.take(20)
        assert [facts["quarantined_count"] for facts in heard(caplog)] == [20, 40]
        one.take(20)
    assert len(heard(caplog)) == 2, "the hour is bad, and this round is not"


def test_operators_hear_of_what_stops_the_connection_too(
    fed: Making, caplog: pytest.LogCaptureFixture
) -> None:
    one = fed("own", "[policy.own]\nerrors_in_row_max = 50")
    one.source.bad = lambda _: b"no json"
    with caplog.at_level(logging.INFO, logger="lakebed"), pytest.raises(RecordRefusedError):
        one.take(100)
    assert [facts["quarantined_count"] for facts in heard(caplog)] == [50]


def test_a_source_is_read_no_faster_than_the_policy_says(fed: Making) -> None:
    one = fed("own", "[policy.own]\nrate_records_max = 50")
    one.go(20, comes=1_000)
    assert 900 <= one.tally().read <= 1_200


def test_a_run_that_is_held_back_rests_and_commits_no_more_often_for_it(fed: Making) -> None:
    one = fed("own", "[policy.own]\nrate_records_max = 50\nrotate_seconds = 5")
    one.source.there = 1_000
    turns = 0

    def should_stop() -> bool:
        nonlocal turns
        turns += 1
        return False

    (done,) = run_feeds([RunningFeed("web", one.pipeline)], should_stop=should_stop)
    assert done.tally.read == 1_000
    assert one.clock.monotonic() >= 15
    assert done.commits <= 6
    assert turns < 1_000


@pytest.mark.parametrize(
    ("parameter", "value"), [("column", b'{"id": 3, "more": 1}'), ("type", b'{"id": "three"}')]
)
def test_what_a_schema_says_of_records_that_do_not_fit(
    parameter: str, value: bytes, fed: Making
) -> None:
    def policy(contract: str) -> str:
        return f'[policy.own]\nschema = {{ {parameter} = "{contract}" }}'

    frozen = fed("own", policy("freeze"))
    frozen.source.bad = lambda n: value if n == 3 else b""
    with pytest.raises(RecordRefusedError):
        frozen.take(5)
    assert (frozen.rows(), frozen.has_quarantine()) == (3, False), "the first one stops it"
    dropping = fed("own", policy("discard_record"))
    dropping.source.bad = lambda n: value if n == 3 else b""
    dropping.take(5)
    tally = dropping.tally()
    assert (tally.stored, tally.discarded, tally.quarantined) == (4, 1, 0)
    assert not dropping.has_quarantine()
    keeping = fed("own", policy("quarantine"))
    keeping.source.bad = lambda n: value if n == 3 else b""
    keeping.take(5)
    assert (keeping.rows(), keeping.tally().quarantined) == (4, 1)


def test_a_value_that_does_not_fit_is_left_out_and_said_by_its_path(
    fed: Making, caplog: pytest.LogCaptureFixture
) -> None:
    one = fed("own", '[policy.own]\nschema = { type = "discard_field" }')
    bad = {2: b'{"id": 2, "fare": "much"}', 3: b'{"id": "three"}', 4: b'{"id": 4, "fare": []}'}
    one.source.bad = lambda n: bad.get(n, b"")
    with caplog.at_level(logging.INFO, logger="lakebed"):
        one.take(6)
    tally = one.tally()
    assert (tally.stored, tally.quarantined) == (5, 1), "a key is needed, a fare is not"
    said = [r for r in caplog.records if getattr(r, "event", "") == events.FEED_VALUES_LEFT_OUT]
    assert [(r.facts["values_count"], r.facts["paths"]) for r in said] == [(2, "fare: 2")]
    assert "much" not in caplog.text


def test_nothing_is_discarded_by_the_ledger_of_an_hour_that_may_be_over(fed: Making) -> None:
    one = fed("Discard")
    one.go(60, comes=150)
    before = one.tally()
    assert before.discarded > 0
    one.clock.advance(3_600)
    one.take(300)
    assert one.tally().discarded == before.discarded
