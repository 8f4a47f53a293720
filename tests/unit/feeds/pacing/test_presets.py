"""Each policy that every lake has does what it says, and no other of them does just that."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakebed
from lakebed.backends.memory import MemoryLeases, VirtualClock
from lakebed.bootstrap.feeds.pipelines import definitions_in, pipeline_from, target_of
from lakebed.bootstrap.feeds.worker import restarts_of
from lakebed.config.feeds import feed_file
from lakebed.config.policies import PRESETS
from lakebed.decoding.raw_records import raw_records
from lakebed.errors import InvalidError
from lakebed.feed_errors import (
    FeedLaggingError,
    PositionGoneError,
    RecordRefusedError,
    TooManyBadError,
    WorkerLostError,
)
from lakebed.feeds.owned_splits import MISSED_SECONDS, LeasedSplits, OwnsAll
from lakebed.feeds.pipeline import Pipeline
from lakebed.feeds.restarts import Restarts
from lakebed.feeds.run_feeds import RunningFeed, run_feeds
from lakebed.model.feeds.positions import connection_id
from lakebed.model.feeds.tallies import Tally
from lakebed.observe import events
from lakebed.ports.leases import WorkerId
from lakebed.ports.record_source import Records, SourceSplit
from lakebed.statestore.table_state.feed_records import connections, ledger_of

ALL = ("Basic", "Monitored", "FaultTolerant", "Discard", "Throttle", "Elastic", "Strict")
"""But for Spill, which is refused."""
TEXT = """
[feed.web]
files = "never/*.log"
decoder = {{ format = "json" }}
[connection.web]
feed = "web"
table = "web"
policy = "{policy}"
{more}
"""
SCHEMA = lakebed.schema_of(row_keys={"id": "int64"}, values={"fare": "int64?"})
BY_POSITION = lakebed.schema_of(
    row_keys={"_split": "string", "_position": "int64"},
    values={"_version": "int64", "id": "int64?", "fare": "int64?"},
)


class Stream:
    """A source of numbered records. Some are bad; the first ones may be gone."""

    def __init__(self) -> None:
        self.there = 0
        self.oldest = 0
        self.bad: Callable[[int], bytes | None] = lambda _: b""

    def splits(self) -> list[SourceSplit]:
        return [SourceSplit("only", "only")]

    def start(self, split: SourceSplit) -> int:
        return 0

    def open(self, split: SourceSplit, begin: int, *, resume: bytes = b"") -> StreamReader:
        return StreamReader(self, begin)

    def close(self) -> None:
        """Nothing is held."""

    def value(self, position: int) -> bytes | None:
        bad = self.bad(position)
        return b'{"id": %d}' % position if bad == b"" else bad


class StreamReader:
    """Gives at most so many records a turn."""

    at_once = 100

    def __init__(self, source: Stream, begin: int) -> None:
        self._source, self._next = source, begin

    def read(self, *, bytes_max: int, wait_seconds: float = 0.0) -> Records[pa.RecordBatch] | None:
        if self._next < self._source.oldest:
            raise PositionGoneError("gone", first=self._next, end=self._source.oldest)
        begin, end = self._next, min(self._source.there, self._next + self.at_once)
        if begin == end:
            return None
        self._next = end
        values = [self._source.value(position) for position in range(begin, end)]
        batch = raw_records(
            value=pa.array(values, pa.binary()), position=pa.array(range(begin, end), pa.int64())
        )
        return Records(begin=begin, end=end, count=end - begin, size=batch.nbytes, batch=batch)

    def behind(self) -> int:
        return self._source.there - self._next

    def acknowledge(self, end: int) -> None:
        """Nothing is kept for it."""

    def close(self) -> None:
        """Nothing is held."""


class Fed:
    """A connection under a policy, a second a turn. comes: records a second."""

    def __init__(
        self, folder: Path, policy: str, more: str = "", schema: lakebed.Schema = SCHEMA
    ) -> None:
        self.lake = lakebed.connect(folder / "lake", create=True)
        self.lake.create_table("web", schema)
        self.clock = VirtualClock()
        self.app = replace(self.lake._app, clock=self.clock)
        self.source = Stream()
        self.text = TEXT.format(policy=policy, more=more)
        _, (self.definition,) = definitions_in(feed_file(self.text))
        target = target_of(self.app, self.definition)
        self.pipeline: Pipeline[Any] = pipeline_from(
            self.app, self.definition, target, self.source, OwnsAll()
        )

    def go(self, seconds: int, *, comes: int) -> None:
        for _ in range(seconds):
            self.source.there += comes
            self.pipeline.turn()
            self.clock.advance(1)
        self.pipeline.turn(is_draining=True)

    def take(self, count: int) -> None:
        self.source.there += count
        for _ in range(count // StreamReader.at_once + 2):
            self.pipeline.turn()
        self.pipeline.turn(is_draining=True)

    def tally(self) -> Tally:
        head = self.app.catalog.find("web").head  # type: ignore[arg-type]  # a name
        head.follow()
        tally = Tally()
        with head.reading() as state:
            for one in connections(state):
                for _, _, of_hour in ledger_of(state, one):
                    tally = tally.plus(of_hour)
        tally.check()
        return tally

    def rows(self) -> int:
        return self.lake.table("web").query().read_all().num_rows

    def has_quarantine(self) -> bool:
        return "web_quarantine" in self.lake.tables()


Making = Callable[..., Fed]


@pytest.fixture
def fed(tmp_path: Path) -> Iterator[Making]:
    made: list[Fed] = []

    def make(policy: str, more: str = "", schema: lakebed.Schema = SCHEMA) -> Fed:
        made.append(Fed(tmp_path / str(len(made)), policy, more, schema))
        return made[-1]

    yield make
    for one in made:
        one.pipeline.close()
        one.lake.close()


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


def test_every_lake_has_these() -> None:
    assert sorted(PRESETS) == sorted([*ALL, "Spill"])


def test_a_spool_is_refused_and_so_is_what_else_is_not_there(tmp_path: Path, fed: Making) -> None:
    with pytest.raises(InvalidError, match="not in this release"):
        fed("Spill")
    with lakebed.connect(tmp_path / "lake", create=True) as lake:
        lake.create_table("web", SCHEMA)
        definitions = lakebed.FeedDefinitions(lake)
        text = TEXT.format(policy="Spill", more="")
        with pytest.raises(InvalidError, match="not in this release"):
            definitions.apply(text)
        own = '[policy.own]\ndedupe = "window"\ndedupe_field = "id"'
        with pytest.raises(InvalidError, match="not in this release"):
            definitions.apply(TEXT.format(policy="own", more=own))
        by_key = '[policy.own]\ndedupe = "key"'
        with pytest.raises(InvalidError, match="keeps the latest"):
            definitions.apply(TEXT.format(policy="own", more=by_key))
        assert definitions.feeds() == []


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


def test_to_leave_out_a_value_that_does_not_fit_is_refused(fed: Making) -> None:
    with pytest.raises(InvalidError, match="schema_type"):
        fed("own", '[policy.own]\nschema = { type = "discard_field" }')
