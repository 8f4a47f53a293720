"""Workers of one feed, on a virtual clock: who dies is replaced, and every record is taken once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from lakebed.backends.memory import MemoryLeases, VirtualClock
from lakebed.backends.memory.record_source import MemoryBroker, MemoryRecordSource
from lakebed.bootstrap.app import App
from lakebed.bootstrap.local import open_local
from lakebed.errors import UnavailableError
from lakebed.feeds.commit_round import CommitRound
from lakebed.feeds.committed import FeedConnection, count_of, read_committed
from lakebed.feeds.land_records import LandRecords
from lakebed.feeds.living_workers import (
    BEAT_SECONDS,
    DEAD_SECONDS,
    FORGET_SECONDS,
    LivingWorkers,
)
from lakebed.feeds.operating.suspended_pipelines import SUSPENDED_SECONDS
from lakebed.feeds.owned_splits import LeasedSplits
from lakebed.feeds.pacing.pipeline_rules import PipelineRules
from lakebed.feeds.pipeline import Pipeline
from lakebed.feeds.restarts import RestartRules
from lakebed.feeds.rotation import RotationLimits
from lakebed.feeds.worker import DEFINITIONS_SECONDS, FeedWorker, WantedPipeline
from lakebed.ingest.stage_rows import StageRows
from lakebed.landing.landing_table import LANDING_SCHEMA
from lakebed.model.feeds.definitions import FeedFailure
from lakebed.model.feeds.positions import connection_id
from lakebed.model.names import table_name
from lakebed.ports.leases import Owner, OwnerNumber, WorkerBeat, WorkerId
from tests.simulation.feeds.fed_world import OwnsAs

CONNECTION = connection_id("ab" * 16)
SPLITS = 6
AWAY = UnavailableError("the store does not answer", hint="try again")


class MoodyLeases(MemoryLeases):
    """Leases of a store that may be away."""

    is_away = False

    def _ask(self) -> None:
        if self.is_away:
            raise AWAY

    def beat(self, worker: WorkerId, report: bytes) -> None:
        self._ask()
        super().beat(worker, report)

    def workers(self) -> list[WorkerBeat]:
        self._ask()
        return super().workers()

    def leave(self, worker: WorkerId) -> None:
        self._ask()
        super().leave(worker)

    def owners(self, **how: object) -> list[Owner]:
        self._ask()
        return super().owners(**how)  # type: ignore[arg-type]  # as given

    def release(self, name: str, worker: WorkerId, number: OwnerNumber) -> None:
        self._ask()
        super().release(name, worker, number)


class Fleet:
    """Workers of one feed of a broker in memory, which they take into one table."""

    def __init__(self, app: App, clock: VirtualClock) -> None:
        self.app = app
        self.clock = clock
        self.broker = MemoryBroker()
        self.leases = MoodyLeases()
        self.table = app.catalog.create(table_name("landing"), LANDING_SCHEMA)
        self.version = 1
        self.is_wanted = True
        self.is_suspended = False
        self.workers: dict[str, FeedWorker[pa.RecordBatch]] = {}
        self.failures: list[FeedFailure] = []
        self.written = 0
        for number in range(SPLITS):
            self.broker.make(f"split-{number}")

    def start(self, name: str) -> None:
        living = LivingWorkers()
        worker = WorkerId(name)
        self.workers[name] = FeedWorker(
            worker=worker,
            leases=self.leases,
            living=living,
            clock=self.clock,
            wanted=lambda: [self._wanted(worker, living)] if self.is_wanted else [],
            note_failure=lambda _, failure: self.failures.append(failure),
        )

    def _wanted(self, worker: WorkerId, living: LivingWorkers) -> WantedPipeline[pa.RecordBatch]:
        version = self.version
        return WantedPipeline(
            kind="feed",
            name="orders",
            version=version,
            restarts=RestartRules(),
            is_suspended=self.is_suspended,
            open=lambda: self._pipeline(worker, living, version),
        )

    def _pipeline(
        self, worker: WorkerId, living: LivingWorkers, version: int
    ) -> Pipeline[pa.RecordBatch]:
        return Pipeline(
            table=self.table,
            connection=FeedConnection(CONNECTION, version),
            source=MemoryRecordSource(self.broker),
            rounds=CommitRound(
                stage=StageRows(files=self.app.files), make_rows=LandRecords(), clock=self.app.clock
            ),
            clock=self.clock,
            rules=PipelineRules(limits=RotationLimits(seconds=2.0)),
            splits=LeasedSplits(
                worker=worker,
                leases=self.leases,
                living=lambda: {worker, *living.living()},
                connection=CONNECTION,
                monotonic=self.clock.monotonic,
            ),
        )

    def write(self) -> None:
        for number in range(SPLITS):
            if f"split-{number}" in self.broker.splits:
                self.broker.write(f"split-{number}", f"record {self.written}".encode())
                self.written += 1

    def pass_time(self, seconds: float, *, writes: bool = True) -> None:
        """Let all workers take turns for so long; a record of each source split each second."""
        for step in range(round(seconds * 4)):
            if writes and step % 4 == 0:
                self.write()
            for worker in self.workers.values():
                worker.turn()
            self.clock.advance(0.25)

    def ends(self) -> dict[str, int]:
        """How far each source split was taken."""
        names = [split.name for split in MemoryRecordSource(self.broker).splits()]
        known = read_committed(self.table, FeedConnection(CONNECTION, 99), names).splits
        return {name: count_of(at.position) for name, at in known.items()}

    def owners(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for owner in self.leases.owners():
            found.setdefault(owner.worker, []).append(owner.name.rpartition("/")[2])
        return found

    def rows(self) -> Counter[bytes]:
        batches = self.app.query.run(self.table)
        return Counter(value for batch in batches for value in batch["value"].to_pylist())

    def check(self) -> None:
        self.pass_time(6, writes=False)
        assert self.rows() == Counter(f"record {n}".encode() for n in range(self.written))


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def fleet(tmp_path: Path, clock: VirtualClock) -> Iterator[Fleet]:
    app = open_local(tmp_path / "lake", clock=clock)
    yield Fleet(app, clock)
    app.close()


def test_workers_share_a_feed_and_take_each_record_once(fleet: Fleet) -> None:
    fleet.start("a")
    fleet.pass_time(6)
    assert len(fleet.owners()["a"]) == SPLITS
    fleet.start("b")
    fleet.pass_time(30)
    assert set(fleet.owners()) == {"a", "b"}
    fleet.check()


def test_a_worker_that_dies_is_replaced_within_ten_seconds(fleet: Fleet) -> None:
    for name in "ab":
        fleet.start(name)
    fleet.pass_time(10)
    assert set(fleet.owners()) == {"a", "b"}
    del fleet.workers["a"]
    fleet.pass_time(DEAD_SECONDS + 4)
    assert set(fleet.owners()) == {"b"}
    fleet.pass_time(4, writes=False)
    assert set(fleet.ends().values()) == {20}
    fleet.check()


def test_a_worker_that_stood_still_is_fenced_and_doubles_nothing(fleet: Fleet) -> None:
    for name in "ab":
        fleet.start(name)
    fleet.pass_time(10.25)
    still = fleet.workers.pop("a")
    fleet.pass_time(15)
    assert set(fleet.owners()) == {"b"}
    fleet.workers["a"] = still
    fleet.pass_time(30)
    assert set(fleet.owners()) == {"a", "b"}
    fleet.check()


@pytest.mark.parametrize("count", [1, SPLITS])
def test_a_claim_that_the_table_refuses_is_made_anew_and_no_other(fleet: Fleet, count: int) -> None:
    fleet.start("a")
    fleet.pass_time(6)
    ghost = fleet._pipeline(WorkerId("ghost"), LivingWorkers(), 1)
    ghost._splits = OwnsAs(50, count)  # before the store of leases was restored to an earlier day
    fleet.write()
    ghost.turn()
    assert ghost.turn(is_draining=True).committed is not None
    fleet.pass_time(30)
    numbers = [owner.number for owner in fleet.leases.owners()]
    assert (numbers.count(1), sum(number > 50 for number in numbers)) == (SPLITS - count, count)
    fleet.check()


def test_beats_are_counted_and_who_is_dead_for_long_is_forgotten(fleet: Fleet) -> None:
    for name in "ab":
        fleet.start(name)
    fleet.pass_time(10.25)
    (beat, _) = fleet.leases.workers()
    assert beat.counter == 1 + 10 // BEAT_SECONDS
    (report,) = msgspec.json.decode(beat.report)
    assert (report["name"], report["version"], report["failing"]) == ("orders", 1, "")
    assert (report["commits"] > 0, 0 < report["splits"] < SPLITS) == (True, True)
    del fleet.workers["a"]
    fleet.pass_time(FORGET_SECONDS + 10, writes=False)
    assert [beat.worker for beat in fleet.leases.workers()] == ["b"]


def test_a_definition_that_changes_replaces_its_pipeline(fleet: Fleet) -> None:
    for name in "ab":
        fleet.start(name)
    fleet.pass_time(5.25)
    fleet.version = 2
    fleet.pass_time(20)
    assert {report.version for one in fleet.workers.values() for report in one.reports()} == {2}
    assert set(fleet.owners()) == {"a", "b"}
    fleet.check()
    assert not fleet.failures


def test_a_feed_that_is_stopped_is_drained_and_given_up(fleet: Fleet) -> None:
    fleet.start("a")
    fleet.pass_time(5.25)
    fleet.write()
    fleet.is_wanted = False
    fleet.pass_time(DEFINITIONS_SECONDS + 1, writes=False)
    assert set(fleet.owners()) == {""}
    assert sum(fleet.rows().values()) >= fleet.written - SPLITS
    assert fleet.workers["a"].reports() == []


@pytest.fixture
def suspended(fleet: Fleet) -> dict[str, list[str]]:
    """Who owns what of a feed that two workers share, and that is suspended."""
    for name in "ab":
        fleet.start(name)
    fleet.pass_time(4 * DEFINITIONS_SECONDS - 0.25)
    owners = fleet.owners()
    assert set(owners) == {"a", "b"}
    fleet.is_suspended = True
    fleet.pass_time(0.5)  # what is written is read, and committed when the wish is seen
    return owners


def test_a_feed_that_is_suspended_is_drained_and_kept_for_ten_minutes(
    fleet: Fleet, suspended: dict[str, list[str]]
) -> None:
    assert all(worker.reports() == [] for worker in fleet.workers.values())
    rows = fleet.rows()
    assert sum(rows.values()) == fleet.written
    fleet.start("c")
    fleet.pass_time(SUSPENDED_SECONDS - 15, writes=False)
    assert fleet.owners() == suspended
    fleet.pass_time(30)
    assert set(fleet.owners()) == {""}
    assert fleet.rows() == rows, "nothing is read meanwhile"
    fleet.is_suspended = False
    fleet.pass_time(30)
    assert set(fleet.owners()) == {"a", "b", "c"}
    fleet.check()


def test_a_feed_that_is_resumed_goes_on_at_once_with_those_that_had_it(
    fleet: Fleet, suspended: dict[str, list[str]]
) -> None:
    fleet.is_suspended = False
    fleet.pass_time(2 * DEFINITIONS_SECONDS + 1)
    assert fleet.owners() == suspended
    fleet.check()
    assert fleet.owners() == suspended


def test_what_is_kept_of_a_suspended_feed_is_let_go_with_its_worker_and_by_a_stop(
    fleet: Fleet, suspended: dict[str, list[str]]
) -> None:
    fleet.workers.pop("a").close()
    assert fleet.owners() == {"": suspended["a"], "b": suspended["b"]}
    fleet.is_wanted = False
    fleet.pass_time(DEFINITIONS_SECONDS + 1, writes=False)
    assert set(fleet.owners()) == {""}


def test_a_worker_that_closes_commits_what_it_holds_and_lets_go(fleet: Fleet) -> None:
    fleet.start("a")
    fleet.pass_time(5)
    fleet.write()
    fleet.workers["a"].turn()
    fleet.workers.pop("a").close()
    assert fleet.rows() == Counter(f"record {n}".encode() for n in range(fleet.written))
    assert set(fleet.owners()) == {""}
    assert fleet.leases.workers() == []


def test_a_worker_closes_though_the_store_is_away(fleet: Fleet) -> None:
    fleet.start("a")
    fleet.pass_time(5)
    fleet.leases.is_away = True
    fleet.workers.pop("a").close()
    fleet.leases.is_away = False
    fleet.start("b")
    fleet.pass_time(DEAD_SECONDS + 4)
    assert set(fleet.owners()) == {"b"}
    fleet.check()


def test_a_store_that_is_away_stops_no_work(fleet: Fleet) -> None:
    for name in "ab":
        fleet.start(name)
    fleet.pass_time(20)
    owners = fleet.owners()
    fleet.leases.is_away = True
    fleet.pass_time(20)
    assert sum(fleet.rows().values()) >= fleet.written - 4 * SPLITS
    fleet.leases.is_away = False
    fleet.pass_time(3)
    assert fleet.owners() == owners
    fleet.check()


def test_a_source_that_is_away_is_waited_for_and_then_shared_with_who_came_meanwhile(
    fleet: Fleet,
) -> None:
    fleet.start("a")
    fleet.pass_time(5)
    fleet.broker.is_away = True
    fleet.start("b")
    fleet.pass_time(40, writes=False)
    assert "does not answer" in fleet.workers["a"].reports()[0].failing
    fleet.broker.is_away = False
    fleet.pass_time(60, writes=False)
    assert fleet.workers["a"].reports()[0].failing == ""
    fleet.pass_time(20)
    assert set(fleet.owners()) == {"a", "b"}
    fleet.check()


def test_what_a_worker_has_dropped_is_given_back_all_the_same(fleet: Fleet) -> None:
    """It owns all, its source fails, and it is asked for a share before it reads again."""
    fleet.start("a")
    fleet.pass_time(5, writes=False)
    fleet.start("b")
    for _ in range(60):
        for one in fleet.workers["a"]._work.values():
            assert one.pipeline is not None
            one.pipeline.forget()
        fleet.pass_time(0.5, writes=False)
    assert set(fleet.owners()) == {"a", "b"}


def test_source_splits_that_are_gone_are_let_go(fleet: Fleet) -> None:
    fleet.start("a")
    fleet.pass_time(5, writes=False)
    for number in range(3):
        del fleet.broker.splits[f"split-{number}"]
    fleet.pass_time(60)
    assert len(fleet.owners()["a"]) == SPLITS - 3
    assert not fleet.failures
