"""A worker with an end takes what there is and leaves, whatever became of the ones before it."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lakebed.backends.memory import VirtualClock
from lakebed.bootstrap.local import open_local
from lakebed.errors import UnavailableError
from lakebed.feeds.living_workers import DEAD_SECONDS, LivingWorkers
from lakebed.feeds.operating.taking_worker import TakingWorker
from lakebed.feeds.pipeline import Pipeline
from lakebed.feeds.restarts import RestartRules
from lakebed.feeds.worker import WantedPipeline
from lakebed.ports.leases import WorkerBeat, WorkerId
from tests.unit.feeds.test_fleets import AWAY, Fleet

RUN_SECONDS_MAX = 90.0
SOON = 5.0
"""A run that has little to do is over then."""


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    clock = VirtualClock()
    app = open_local(tmp_path / "lake", clock=clock)
    yield Fleet(app, clock)
    app.close()


def taking(fleet: Fleet, name: str) -> TakingWorker[pa.RecordBatch]:
    living = LivingWorkers(forget_seconds=DEAD_SECONDS)
    return TakingWorker(
        worker=WorkerId(name),
        leases=fleet.leases,
        living=living,
        clock=fleet.clock,
        wanted=lambda: [fleet._wanted(WorkerId(name), living)],
        note_failure=lambda _, failure: fleet.failures.append(failure),
    )


def take(fleet: Fleet, name: str, seconds_max: float = RUN_SECONDS_MAX) -> float:
    """Let a run take what there is. Returns how long it took."""
    began = fleet.clock.monotonic()
    taking(fleet, name).take(lambda: fleet.clock.monotonic() - began >= seconds_max)
    return fleet.clock.monotonic() - began


def test_a_run_takes_what_there_is_lets_go_and_the_next_one_goes_on(fleet: Fleet) -> None:
    for number in range(3):
        fleet.write()
        assert take(fleet, f"take-{number}") < SOON
        assert not fleet.leases.workers()
        assert {owner.worker for owner in fleet.leases.owners()} == {""}
    assert take(fleet, "take-9") < SOON, "nothing came"
    fleet.check()
    assert not fleet.failures


def test_a_run_that_was_killed_leaves_its_source_splits_to_the_next_one(fleet: Fleet) -> None:
    """The next one could not wait for long enough if it ended when it has nothing to do."""
    killed = taking(fleet, "take-killed")
    fleet.write()
    killed.turn()
    assert fleet.owners()["take-killed"]
    assert DEAD_SECONDS <= take(fleet, "take-next") < DEAD_SECONDS + SOON
    assert set(fleet.ends().values()) == {1}
    assert not fleet.leases.workers(), "else each later run would wait for it, too"
    fleet.write()
    assert take(fleet, "take-third") < SOON
    fleet.check()


def test_a_run_leaves_to_one_that_lives_what_that_has(fleet: Fleet) -> None:
    other = taking(fleet, "take-other")
    fleet.write()
    other.turn()
    held = fleet.owners()["take-other"]
    fleet.clock.on_sleep = lambda _seconds: other._beat()
    assert take(fleet, "take-next") < SOON
    assert fleet.owners()["take-other"] == held
    fleet.clock.on_sleep = None
    other.take(lambda: False)
    fleet.check()


def test_a_run_ends_in_time_however_much_comes(fleet: Fleet) -> None:
    fleet.clock.on_sleep = lambda _seconds: fleet.write()
    assert 10 <= take(fleet, "take-a", 10) < 10 + SOON
    fleet.clock.on_sleep = None
    assert not fleet.leases.workers()
    take(fleet, "take-b")
    fleet.check()


def test_a_run_waits_for_no_pipeline_that_is_tried_again_later(fleet: Fleet) -> None:
    def refuse() -> Pipeline[pa.RecordBatch]:
        raise AWAY

    broken = WantedPipeline(
        kind="feed", name="other", version=1, restarts=RestartRules(), open=refuse
    )
    living = LivingWorkers()
    name = WorkerId("take-a")
    worker = TakingWorker(
        worker=name,
        leases=fleet.leases,
        living=living,
        clock=fleet.clock,
        wanted=lambda: [broken, fleet._wanted(name, living)],
        note_failure=lambda _, failure: fleet.failures.append(failure),
    )
    fleet.write()
    began = fleet.clock.monotonic()
    worker.take(lambda: fleet.clock.monotonic() - began >= RUN_SECONDS_MAX)
    assert fleet.clock.monotonic() - began < SOON
    fleet.check()


def test_a_run_ends_when_definitions_and_leases_cannot_be_read(fleet: Fleet) -> None:
    fleet.leases.is_away = True
    assert take(fleet, "take-a") <= RUN_SECONDS_MAX + SOON
    living = LivingWorkers()

    def away() -> list[WantedPipeline[pa.RecordBatch]]:
        raise UnavailableError("throttled")

    worker = TakingWorker(
        worker=WorkerId("take-b"),
        leases=fleet.leases,
        living=living,
        clock=fleet.clock,
        wanted=away,
        note_failure=lambda _, failure: fleet.failures.append(failure),
    )
    began = fleet.clock.monotonic()
    worker.take(lambda: fleet.clock.monotonic() - began >= RUN_SECONDS_MAX)
    fleet.leases.is_away = False


def test_it_is_known_of_a_worker_whether_it_lives_when_it_beats_or_was_silent() -> None:
    living = LivingWorkers(forget_seconds=DEAD_SECONDS)

    def see(now: float, **counters: int) -> tuple[list[str], list[str]]:
        beats = [WorkerBeat(WorkerId(name), counter, b"") for name, counter in counters.items()]
        living.see(beats, now)
        return list(living.undecided()), list(living.forgotten())

    assert see(0, a=1, b=7) == (["a", "b"], [])
    assert see(2, a=2, b=7) == (["b"], [])
    assert see(4, a=2, b=7) == (["b"], [])
    assert see(6, a=3, b=7) == ([], ["b"])
    assert see(8, a=3, b=8) == ([], []), "it beats again"
