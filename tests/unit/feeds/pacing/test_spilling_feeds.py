"""Feeds that spill, in a worker whose store is slow or away for ten minutes of a virtual clock."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakebed.backends.local.spool import LocalSpool
from lakebed.backends.memory import MemoryLeases
from lakebed.bootstrap.feeds.pipelines import pipeline_from, target_of
from lakebed.errors import (
    InvalidError,
    LakebedError,
    TableBusyError,
    UnavailableError,
)
from lakebed.feeds.living_workers import LivingWorkers
from lakebed.feeds.owned_splits import OwnsAll
from lakebed.feeds.pacing.spilling import SpillingSource
from lakebed.feeds.restarts import RestartRules
from lakebed.feeds.worker import FeedWorker, WantedPipeline
from lakebed.model.feeds.definitions import FeedFailure
from lakebed.ports.leases import WorkerId
from tests.unit.feeds.pacing.fed_under_policy import Fed, Making

TURNS_MAX = 30
"""A second of a worker."""


class AwayTable:
    """A connection that spills, at work in a worker, whose store is slow or away when a test says
    so. comes: records a second."""

    def __init__(self, one: Fed, comes: int) -> None:
        self.fed, self.comes = one, comes
        self.failures: list[FeedFailure] = []
        self.away: LakebedError | None = None
        self.slow = 0.0
        self.taken: list[tuple[int, int]] = []
        head = one.pipeline.table.head
        really, follow, run = head.commit, head.follow, one.pipeline._rounds.run

        def commit(transaction: Any) -> Any:  # noqa: ANN401 - as the head's
            if self.away is not None:
                raise self.away
            one.clock.advance(self.slow)
            one.source.there += round(self.slow * comes)
            return really(transaction)

        def followed(*args: Any) -> Any:  # noqa: ANN401 - as the head's
            if isinstance(self.away, UnavailableError):
                raise self.away
            return follow(*args)

        def noted(*given: Any) -> Any:  # noqa: ANN401 - as the rounds'
            done = run(*given)
            self.taken += [
                (part.at.position.next, part.records[-1].end) for part in given[2] if part.records
            ]
            return done

        head.commit, head.follow = commit, followed  # type: ignore[method-assign]  # a stand-in
        one.pipeline._rounds.run = noted  # type: ignore[method-assign]  # a stand-in
        self.worker = FeedWorker(
            worker=WorkerId("w"),
            leases=MemoryLeases(),
            living=LivingWorkers(),
            clock=one.clock,
            wanted=lambda: [
                WantedPipeline(
                    kind="connection",
                    name="web",
                    version=1,
                    restarts=RestartRules(),
                    open=lambda: one.pipeline,
                )
            ],
            note_failure=lambda _, failure: self.failures.append(failure),
        )

    @property
    def spilling(self) -> SpillingSource[pa.RecordBatch]:
        source = self.fed.pipeline._source
        assert isinstance(source, SpillingSource)
        return source

    def go(self, seconds: int, *, writes: bool = True) -> int:
        """Let time pass. Returns the most bytes that lay on the disk."""
        most = 0
        for _ in range(seconds):
            self.fed.source.there += self.comes * writes
            for _ in range(TURNS_MAX):
                if not self.worker.turn():
                    break
            self.fed.clock.advance(1)
            most = max(most, self.spilling.size)
        return most

    def reach(self) -> int:
        """Return how far the source was read."""
        (one,) = self.spilling._splits.values()
        return one.next

    def check(self) -> None:
        """All records are rows, each once, in order."""
        there = self.fed.source.there
        assert self.failures == []
        assert self.fed.tally().stored == self.fed.rows() == there
        ends = [0, *(end for _, end in self.taken)]
        assert [begin for begin, _ in self.taken] == ends[:-1], "in order"
        assert ends[-1] == there


@pytest.fixture
def spilling(fed: Making) -> Fed:
    return fed("own", '[policy.own]\nextends = "Spill"\nspill_bytes = 4_194_304')


@pytest.mark.parametrize("away", [UnavailableError("away"), TableBusyError("busy")], ids=repr)
def test_a_store_that_is_away_for_ten_minutes(spilling: Fed, away: LakebedError) -> None:
    """Records that their source drops meanwhile are there."""
    table = AwayTable(spilling, comes=20)
    table.go(10)
    table.away = away
    most = table.go(600)
    assert 500_000 < most <= 4_194_304
    source = spilling.source
    assert spilling.pipeline.spooled == (table.spilling.size, table.spilling.percent) > (0, 0)
    assert spilling.pipeline.figures()[2] < 200_000, "it waits on the disk, not in memory"
    source.oldest = table.reach()  # retention takes all that was read ahead
    table.away = None
    table.go(100)
    table.go(10, writes=False)
    table.check()
    assert table.spilling.size == 0, "it was drained"


def test_a_store_that_is_slow_for_ten_minutes(fed: Making) -> None:
    """Nothing is lost, no more lies on the disk than may, and it is drained in order (F93)."""
    own = 'extends = "Spill"\nspill_bytes = 1_048_576\nrotate_records = 1_000'
    one = fed("own", f"[policy.own]\n{own}")
    table = AwayTable(one, comes=100)
    table.go(10)
    assert table.spilling.size == 0, "what keeps up waits nowhere"
    table.slow, begun = 30.0, one.clock.monotonic()
    most = 0
    while one.clock.monotonic() - begun < 600:
        most = max(most, table.go(1))
    assert 300_000 < most <= 1_048_576
    one.source.oldest = table.reach()  # retention takes all that was read ahead
    table.slow = 0.0
    table.go(200)
    table.go(10, writes=False)
    table.check()
    assert table.spilling.size == 0, "it was drained"
    assert one.pipeline.flow.congestion.rung is None


def test_a_spool_that_is_too_small_leaves_the_rest_in_the_source(spilling: Fed) -> None:
    table = AwayTable(spilling, comes=1_500)
    table.go(2)
    table.away = UnavailableError("away")
    most = table.go(60)
    assert 2_000_000 < most <= 4_194_304
    table.away = None
    table.go(150, writes=False)
    table.check()


def test_a_process_that_is_killed_leaves_nothing_that_the_next_one_reads(
    spilling: Fed, tmp_path: Path
) -> None:
    table = AwayTable(spilling, comes=100)
    table.go(10)
    table.away = UnavailableError("away")
    table.go(60)
    folder = spilling.app.spill.path
    left = list(folder.glob("feed-*/*.frames"))
    assert left
    for path in left:  # what a dead process left is not read, whatever it says
        path.write_bytes(b"x" * path.stat().st_size)
    table.away = None
    second = replaced(spilling)
    spilling.pipeline = second
    fresh = AwayTable(spilling, comes=0)
    fresh.go(400)
    assert spilling.rows() == spilling.source.there


def replaced(one: Fed) -> Any:  # noqa: ANN401 - a pipeline
    app = replace(one.app, clock=one.clock)
    return pipeline_from(app, one.definition, target_of(app, one.definition), one.source, OwnsAll())


def test_two_pipelines_of_a_process_have_spools_of_their_own(spilling: Fed) -> None:
    other = replaced(spilling)
    folders = {
        one._source._spool._folder
        for one in (spilling.pipeline, other)
        if isinstance(one._source._spool, LocalSpool)
    }
    assert len(folders) == 2
    other.close()


def test_a_rate_and_reading_ahead_are_refused_together(fed: Making) -> None:
    with pytest.raises(InvalidError, match="rate_records_max"):
        fed("own", '[policy.own]\nextends = "Spill"\nrate_records_max = 5')


def test_a_source_split_that_is_given_away_is_let_go(spilling: Fed) -> None:
    class Given:
        names = ("only",)

        def owned(self, splits: Any, newest: Any) -> dict[str, int]:  # noqa: ANN401 - as the port
            return dict.fromkeys(self.names, 1)

        def release(self, name: str) -> None:
            pass

    given = spilling.pipeline._splits = Given()
    table = AwayTable(spilling, comes=20)
    table.go(5)
    assert list(table.spilling._splits) == ["only"]
    given.names = ()
    table.go(20)
    assert list(table.spilling._splits) == []
