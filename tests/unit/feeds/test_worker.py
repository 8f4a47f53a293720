"""A worker and its pipelines, on a virtual clock: what fails is reported once and harms nothing
beside it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from typing import Any, cast

import msgspec
import pytest

from lakebed.backends.memory import MemoryLeases, VirtualClock
from lakebed.errors import DeniedError, InvalidError, LakebedError, UnavailableError
from lakebed.feed_errors import DefinitionChangedError, DefinitionMovedError
from lakebed.feeds import worker
from lakebed.feeds.living_workers import LivingWorkers
from lakebed.feeds.pacing.congestion import CongestionRules
from lakebed.feeds.pacing.flow import Flow
from lakebed.feeds.pipeline import Pipeline, Turn
from lakebed.feeds.restarts import RestartRules
from lakebed.feeds.worker import DEFINITIONS_SECONDS, FeedWorker, WantedPipeline
from lakebed.model.feeds.definitions import FeedFailure
from lakebed.observe import events
from lakebed.ports.leases import REPORT_BYTES_MAX, WorkerId

AWAY = UnavailableError("the store does not answer", hint="try again")


class FakePipeline:
    """A pipeline that raises what it is given."""

    is_idle = True

    def __init__(self, errors: list[Exception]) -> None:
        self._errors = errors
        self.flow = Flow(
            CongestionRules(),
            per_second=0,
            stops_when_lagging=False,
            now=0.0,
            table="",
            connection="",
        )
        self.turns = self.flushed = 0
        self.spooled = 77, 41
        self.is_closed = self.is_released = False

    def turn(self, *, is_draining: bool = False) -> Turn:
        self.turns += not is_draining
        if self._errors and not is_draining:
            raise self._errors[0] if len(self._errors) == 1 else self._errors.pop(0)
        return Turn(has_read=False, committed=None)

    def read_ahead(self) -> bool:
        return False

    def figures(self) -> tuple[int, int, int]:
        return 1, 0, 0

    def forget(self) -> None:
        """Nothing is held."""

    def flush(self, number: int = 0) -> None:
        self.flushed = number

    def close(self) -> None:
        self.is_closed = True

    def release(self, position: str = "") -> None:
        self.is_released = self.is_closed


class Bench:
    """A worker of fake pipelines."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.leases = MemoryLeases()
        self.errors: dict[str, list[Exception]] = {}
        self.pipelines: dict[str, list[FakePipeline]] = {}
        self.refusal: list[LakebedError] = []
        self.told: list[tuple[str, FeedFailure]] = []
        self.rules = RestartRules(max=3, seconds_min=1, seconds_max=8)
        self.wanted: Mapping[str, int] = {}
        self.flush = 0
        self.statistics_seconds = 5.0
        self.unreadable: LakebedError | None = None
        self.worker = FeedWorker[Any](
            worker=WorkerId("w"),
            leases=self.leases,
            living=LivingWorkers(),
            clock=clock,
            wanted=self._wanted,
            note_failure=self._fail,
        )

    def _wanted(self) -> list[WantedPipeline[Any]]:
        if self.unreadable is not None:
            raise self.unreadable
        failed = {(name, failure.version) for name, failure in self.told}
        return [
            WantedPipeline(
                kind="connection",
                name=name,
                version=version,
                restarts=self.rules,
                flush=self.flush,
                statistics_seconds=self.statistics_seconds,
                open=lambda name=name: self._open(name),  # type: ignore[misc]  # bound now
            )
            for name, version in self.wanted.items()
            if (name, version) not in failed
        ]

    def _open(self, name: str) -> Pipeline[Any]:
        pipeline = FakePipeline(self.errors.get(name, []))
        self.pipelines.setdefault(name, []).append(pipeline)
        return cast("Pipeline[Any]", pipeline)

    def _fail(self, one: WantedPipeline[Any], failure: FeedFailure) -> None:
        if self.refusal:
            raise self.refusal.pop(0)
        self.told.append((one.name, failure))

    def pass_time(self, seconds: float) -> None:
        for _ in range(round(seconds * 4)):
            self.worker.turn()
            self.clock.advance(0.25)

    def turns(self, name: str) -> int:
        return sum(pipeline.turns for pipeline in self.pipelines.get(name, []))


@pytest.fixture
def bench() -> Bench:
    return Bench(VirtualClock())


def test_one_that_fails_is_reported_once_and_harms_no_other(bench: Bench) -> None:
    bench.wanted = {"bad": 1, "good": 2}
    bench.errors["bad"] = [InvalidError("no such column", hint="name another")]
    bench.pass_time(30)
    ((name, failure),) = bench.told
    assert (name, failure.code, failure.version) == ("bad", "invalid", 1)
    assert "no such column" in failure.reason
    assert (bench.turns("bad"), bench.turns("good")) == (1, 120)
    assert bench.pipelines["bad"][0].is_released


def test_one_that_is_started_again_at_once_is_taken_up_again(bench: Bench) -> None:
    bench.wanted = {"bad": 1}
    bench.errors["bad"] = [InvalidError("no such column", hint="name another")]
    bench.pass_time(0.5)
    assert len(bench.told) == 1
    bench.told.clear()  # whoever mends it starts it before the worker looks
    bench.errors["bad"].clear()
    bench.pass_time(DEFINITIONS_SECONDS + 1)
    assert bench.turns("bad") > 1
    assert not bench.told


@pytest.mark.parametrize("refusal", [AWAY, DeniedError("not permitted", hint="ask for it")])
def test_a_failure_is_kept_until_the_registry_has_it(bench: Bench, refusal: LakebedError) -> None:
    bench.wanted = {"bad": 1}
    bench.errors["bad"] = [InvalidError("no such column", hint="name another")]
    bench.refusal = [refusal] * 3
    bench.pass_time(20)
    assert len(bench.told) == 1
    assert bench.turns("bad") == 1


def test_a_failure_of_what_was_changed_meanwhile_is_dropped(bench: Bench) -> None:
    bench.wanted = {"bad": 1}
    bench.errors["bad"] = [InvalidError("no such column", hint="name another")]
    bench.refusal = [DefinitionChangedError("it has another version")]
    bench.pass_time(0.25)
    bench.errors["bad"].clear()
    bench.wanted = {"bad": 2}
    bench.pass_time(1)
    assert not bench.told
    assert bench.turns("bad") > 1


def test_refused_credentials_are_tried_so_often_in_an_hour_and_then_it_fails(bench: Bench) -> None:
    bench.wanted = {"shy": 1}
    bench.errors["shy"] = [DeniedError("not permitted", hint="ask for it")]
    bench.pass_time(60)
    assert bench.turns("shy") == 1 + 3
    assert [failure.code for _, failure in bench.told] == ["denied"]


def test_what_passes_is_tried_for_ever_and_ever_less_often(bench: Bench) -> None:
    bench.wanted = {"slow": 1}
    bench.errors["slow"] = [AWAY]
    bench.pass_time(7.5)
    assert bench.turns("slow") == 4  # at 0, 1, 3 and 7
    bench.pass_time(80)
    assert bench.turns("slow") == 4 + 10
    assert not bench.told


def test_a_bug_is_tried_again_and_then_reported_without_what_it_says(bench: Bench) -> None:
    bench.wanted = {"custom": 1, "good": 2}
    bench.errors["custom"] = [ValueError("a record: secret")]
    bench.pass_time(60)
    ((name, failure),) = bench.told
    assert (name, failure.code) == ("custom", "bug")
    assert failure.reason.startswith("ValueError in test_worker.py, line ")
    assert bench.turns("good") == 240


def test_an_older_definition_is_no_failure(bench: Bench) -> None:
    bench.wanted = {"old": 1}
    bench.errors["old"] = [DefinitionMovedError("the table knows a newer one")]
    bench.pass_time(0.25)
    bench.errors["old"].clear()
    bench.wanted = {"old": 2}
    bench.pass_time(0.5)
    assert bench.turns("old") > 1
    assert not bench.told


def test_definitions_that_cannot_be_read_stop_nothing_that_is_at_work(bench: Bench) -> None:
    bench.wanted = {"good": 1}
    bench.pass_time(1)
    bench.unreadable = InvalidError("no feed has this name", hint="one of --only was dropped")
    bench.pass_time(20)
    assert bench.turns("good") == 84


def test_a_beat_of_very_many_feeds_is_cut_and_those_that_fail_are_in_it(bench: Bench) -> None:
    bench.wanted = {f"feed-{number:04}": number for number in range(300)}
    bench.errors["feed-0299"] = [UnavailableError("away " * 300, hint="try again")]
    bench.pass_time(3)
    (beat,) = bench.leases.workers()
    assert len(beat.report) <= REPORT_BYTES_MAX
    reports = msgspec.json.decode(beat.report)
    assert reports[0]["name"] == "feed-0299"
    assert len(reports) > 20


def test_a_worker_runs_until_it_is_to_stop_and_rests_while_there_is_nothing(bench: Bench) -> None:
    bench.wanted = {"good": 1}
    bench.worker.run(lambda: bench.clock.monotonic() >= 10)
    assert 90 <= bench.turns("good") <= 101
    assert bench.pipelines["good"][0].is_released
    assert bench.leases.workers() == []


def test_a_worker_that_is_busy_with_one_pipeline_beats_meanwhile_but_not_for_ever(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit may wait for a slow store, and a source for its broker."""
    real_seconds = 0.01
    monkeypatch.setattr(worker, "BEAT_SECONDS", real_seconds)
    is_over, counters = threading.Event(), list[int]()

    def counter() -> int:
        return bench.leases.workers()[0].counter

    def busy_turn(self: FakePipeline, *, is_draining: bool = False) -> Turn:
        bench.clock.advance(worker.BUSY_SECONDS_MAX / 2)
        begin = counter()
        end = time.monotonic() + 10
        while counter() < begin + 3:
            assert time.monotonic() < end, "it does not beat"
            time.sleep(real_seconds)
        bench.clock.advance(worker.BUSY_SECONDS_MAX)
        time.sleep(5 * real_seconds)
        before = counter()
        time.sleep(10 * real_seconds)
        counters.extend([before, counter()])
        is_over.set()
        return Turn(has_read=False, committed=None)

    monkeypatch.setattr(FakePipeline, "turn", busy_turn)
    bench.wanted = {"slow": 1}
    bench.worker.run(is_over.is_set)
    assert counters[0] == counters[1]
    assert bench.leases.workers() == []


def test_a_wish_to_flush_reaches_pipelines_within_five_seconds_and_is_reported(
    bench: Bench,
) -> None:
    bench.flush, bench.wanted = 3, {"a": 1}
    bench.pass_time(1)
    assert bench.pipelines["a"][0].flushed == 3, "one that was opened since holds nothing older"
    for number in (4, 2):  # the registry was restored
        bench.flush = number
        bench.pass_time(DEFINITIONS_SECONDS + 0.5)
        assert bench.pipelines["a"][0].flushed == number
        assert [one.flushed for one in bench.worker.reports()] == [number]
    assert [one.spooled for one in bench.worker.reports()] == [77]


def test_what_lies_in_a_spool_is_measured_in_bytes_and_in_percent(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.wanted = {"a": 1}
    with caplog.at_level(logging.INFO, logger="lakebed"):
        bench.pass_time(1)
    said = [vars(record) for record in caplog.records if "facts" in vars(record)]
    (facts,) = [one["facts"] for one in said if one["event"] == events.FEED_MEASURED]
    assert (facts["spooled_bytes"], facts["spool_percent"]) == (77, 41)


def test_a_pipeline_is_measured_each_time_that_its_seconds_have_passed(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.wanted = {"a": 1}
    bench.statistics_seconds = 3.0
    measured = []
    with caplog.at_level(logging.INFO, logger="lakebed"):
        for _ in range(8):
            bench.pass_time(1)
            said = [vars(record).get("event") for record in caplog.records]
            measured.append(said.count(events.FEED_MEASURED))
    assert measured == [1, 1, 1, 2, 2, 2, 3, 3], "after each second"


def test_a_wish_is_given_to_a_pipeline_once(bench: Bench) -> None:
    bench.flush, bench.wanted = 3, {"a": 1}
    bench.pass_time(1)
    bench.pipelines["a"][0].flushed = 7
    bench.pass_time(DEFINITIONS_SECONDS * 2)
    assert bench.pipelines["a"][0].flushed == 7
