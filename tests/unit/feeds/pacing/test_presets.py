"""Each policy that every lake has does what it says, and no other of them does just that."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import lakebed
from lakebed.backends.memory import MemoryLeases
from lakebed.bootstrap.feeds.worker import restarts_of
from lakebed.config.policies import PRESETS
from lakebed.errors import InvalidError
from lakebed.feed_errors import (
    PositionGoneError,
    RecordRefusedError,
    WorkerLostError,
)
from lakebed.feeds.owned_splits import MISSED_SECONDS, LeasedSplits
from lakebed.feeds.pacing.spilling import SpillingSource
from lakebed.feeds.restarts import Restarts
from lakebed.model.feeds.positions import connection_id
from lakebed.observe import events
from lakebed.ports.leases import WorkerId
from tests.unit.feeds.pacing.fed_under_policy import BY_POSITION, SCHEMA, TEXT, Fed, Making

ALL = tuple(PRESETS)


def lost_owner(one: Fed) -> bool:
    """Whether the connection stops when a worker is lost."""
    leases = MemoryLeases()
    living, now = [WorkerId("a"), WorkerId("b")], [0.0]
    policy = one.definition.policy

    def worker(name: str) -> LeasedSplits:
        return LeasedSplits(
            worker=WorkerId(name),
            leases=leases,
            living=lambda: living,
            connection=connection_id("c0" * 16),
            monotonic=lambda: now[0],
            stops_at_loss=policy.on_worker_failure == "stop",
        )

    splits = [str(number) for number in range(20)]
    worker("a").owned(splits, lambda _: {})
    living.remove(WorkerId("a"))
    survivor = worker("b")
    survivor.owned(splits, lambda _: {})
    now[0] += MISSED_SECONDS
    try:
        survivor.owned(splits, lambda _: {})
    except WorkerLostError:
        again = survivor.owned(splits, lambda _: {})
        assert sorted(again) == sorted(splits), "who starts it again gets all"
        return True
    return False


def lagging_events(caplog: pytest.LogCaptureFixture) -> int:
    found = [getattr(record, "event", None) for record in caplog.records]
    return found.count(events.FEED_LAGGING)


@pytest.mark.parametrize("policy", ALL)
def test_a_bad_record(policy: str, fed: Making) -> None:
    one = fed(policy)
    one.source.bad = lambda n: b"no json" if n == 7 else b""
    if policy in {"Basic", "Strict"}:
        with pytest.raises(RecordRefusedError):
            one.take(20)
        assert one.rows() == 7
        assert not one.has_quarantine()
    else:
        one.take(20)
        assert (one.rows(), one.tally().quarantined) == (19, 1)
        assert one.has_quarantine()


@pytest.mark.parametrize(("policy", "most"), [("FaultTolerant", 100), ("Monitored", 100)])
def test_bad_records_in_a_row(policy: str, most: int, fed: Making) -> None:
    one = fed(policy)
    one.source.bad = lambda n: b"no json" if n < most else b""
    one.take(most + 5)
    assert one.tally().quarantined == most
    other = fed(policy)
    other.source.bad = lambda n: b"no json" if n < most + 1 else b""
    with pytest.raises(RecordRefusedError):
        other.take(most + 5)


@pytest.mark.parametrize("policy", ALL)
def test_a_worker_that_is_lost(policy: str, fed: Making) -> None:
    assert lost_owner(fed(policy)) == (policy in {"Basic", "Monitored"})


@pytest.mark.parametrize("policy", ALL)
def test_a_source_or_code_that_fails(policy: str, fed: Making) -> None:
    one = fed(policy)
    restarts = Restarts(restarts_of(one.definition.policy))
    waits = [restarts.waits(float(n), is_counted=True) for n in range(11)]
    if policy in {"Basic", "Monitored"}:
        assert waits[0] is None
    else:
        assert waits[:3] == [1.0, 2.0, 4.0]
        assert (waits[9], waits[10]) == (60.0, None)


@pytest.mark.parametrize("policy", ALL)
def test_records_that_the_source_has_no_longer(policy: str, fed: Making) -> None:
    one = fed(policy)
    one.source.there, one.source.oldest = 10, 4
    if policy == "Strict":
        with pytest.raises(PositionGoneError):
            one.take(0)
        assert one.rows() == 0
    else:
        one.take(0)
        one.take(0)
        assert one.rows() == 6


@pytest.mark.parametrize("policy", ALL)
def test_a_field_without_a_column(policy: str, fed: Making) -> None:
    one = fed(policy)
    one.source.bad = lambda n: b'{"id": 3, "more": 1}' if n == 3 else b""
    if policy == "Strict":
        with pytest.raises(RecordRefusedError, match="unknown-field"):
            one.take(5)
        assert one.rows() == 3
    else:
        one.take(5)
        assert one.rows() == 5


@pytest.mark.parametrize("policy", ALL)
def test_a_record_without_a_value(policy: str, fed: Making) -> None:
    one = fed(policy, "lineage = true", BY_POSITION)
    one.source.bad = lambda n: None if n == 3 else b""
    if policy == "Strict":
        with pytest.raises(RecordRefusedError):
            one.take(5)
        assert one.rows() == 3
    else:
        one.take(5)
        assert one.rows() == 5


def test_a_bad_record_stops_basic_whatever_it_says_of_several_in_a_row(fed: Making) -> None:
    one = fed("own", '[policy.own]\nextends = "Basic"\nerrors_in_row_max = 9')
    one.source.bad = lambda n: b"no json" if n == 3 else b""
    with pytest.raises(RecordRefusedError):
        one.take(5)
    assert (one.rows(), one.has_quarantine()) == (3, False)


@pytest.mark.parametrize("policy", ALL)
def test_a_lag_of_a_minute(policy: str, fed: Making, caplog: pytest.LogCaptureFixture) -> None:
    one = fed(policy)
    with caplog.at_level(logging.INFO, logger="lakebed"):
        one.go(150, comes=150)  # a record that is taken now came 50 seconds ago
        assert lagging_events(caplog) == 0
        one.go(60, comes=150)
    assert lagging_events(caplog) == (policy in {"Monitored", "Elastic", "Strict"})
    assert one.rows() > 0


@pytest.mark.parametrize("policy", ALL)
def test_a_source_that_is_too_fast(policy: str, fed: Making) -> None:
    """What is left out is counted by the entry that passes it (R14)."""
    one = fed(policy)
    one.go(100, comes=150)
    tally = one.tally()
    left_out = tally.sampled_out + tally.discarded
    if policy == "Discard":
        assert 0.05 * tally.read < tally.discarded <= 0.1 * tally.read
        assert tally.sampled_out == 0
    elif policy == "Throttle":
        assert tally.sampled_out > 0.05 * tally.read
        assert tally.discarded == 0
    else:
        assert left_out == 0
    assert one.rows() == tally.read - left_out, "what is left out is counted, and all else is there"


@pytest.mark.parametrize("policy", ALL)
def test_a_source_that_is_too_fast_for_the_disk_in_between(policy: str, fed: Making) -> None:
    """Of what was read, only Spill keeps more than a round, and not in memory."""
    one = fed(policy)
    most = 0
    for _ in range(100):
        one.source.there += 150
        one.pipeline.turn()
        one.clock.advance(1)
        source = one.pipeline._source
        most = max(most, source.size if isinstance(source, SpillingSource) else 0)
    assert (most > 0) == (policy == "Spill")
    assert one.pipeline.figures()[2] < 1_000_000
    for _ in range(150):
        one.pipeline.turn()
        one.clock.advance(1)
    one.pipeline.turn(is_draining=True)
    tally = one.tally()
    assert one.rows() == tally.stored
    assert tally.read == 15_000


def test_every_lake_has_these() -> None:
    assert len(PRESETS) == 8


def test_what_a_table_cannot_do_is_refused(tmp_path: Path) -> None:
    with lakebed.connect(tmp_path / "lake", create=True) as lake:
        lake.create_table("web", SCHEMA)
        definitions = lakebed.FeedDefinitions(lake)
        by_key = '[policy.own]\ndedupe = "key"'
        with pytest.raises(InvalidError, match="keeps the latest"):
            definitions.apply(TEXT.format(policy="own", more=by_key))
        assert definitions.feeds() == []
