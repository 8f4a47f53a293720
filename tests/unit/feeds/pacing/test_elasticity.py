"""How many workers elastic feeds want (policies `elastic`, `workers_min`, `workers_max`)."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest

from lakebed.backends.memory import MemoryLeases, VirtualClock
from lakebed.bootstrap.feeds import further_processes
from lakebed.bootstrap.feeds.further_processes import FurtherProcesses
from lakebed.feeds.operating.missing_workers import SETTLE_SECONDS, MissingWorkers
from lakebed.feeds.pacing.elasticity import (
    FLOW_SECONDS,
    SPARE_SECONDS,
    Elasticity,
    WorkerLoad,
    load_of,
    needed_workers,
)
from lakebed.feeds.worker import FeedReport
from lakebed.model.feeds.tallies import Tally
from lakebed.ports.leases import WorkerId


def report(load: float, *, least: int = 1, most: int = 10, is_asking: bool = True) -> FeedReport:
    return FeedReport(
        kind="connection",
        name="a",
        version=1,
        splits=1,
        behind=0,
        waiting=0,
        commits=0,
        tally=Tally(),
        load=load,
        workers_min=least,
        workers_max=most,
        is_asking=is_asking,
    )


@pytest.mark.parametrize(
    ("busy", "inflow", "outflow", "behind", "load"),
    [
        (1.0, 100, 100, 0, 1.0),
        (1.0, 250, 100, 0, 2.5),
        (0.5, 100, 100, 0, 0.5),
        (1.0, 100, 100, 300 * 100, 2.0),
        (0.0, 0, 0, 0, 0.0),
        (0.3, 0, 0, 10, 1.0),
    ],
)
def test_a_load_is_what_comes_and_what_is_behind_against_what_one_can_do(
    busy: float, inflow: float, outflow: float, behind: int, load: float
) -> None:
    assert load_of(busy, inflow, outflow, behind) == pytest.approx(load)


def test_the_flow_of_a_pipeline_is_measured_over_some_seconds() -> None:
    flow = WorkerLoad()
    flow.see(0, read=0, behind=0)
    flow.was_busy(FLOW_SECONDS)
    flow.see(FLOW_SECONDS - 1, read=900, behind=900)
    assert flow.load == 0
    flow.see(FLOW_SECONDS, read=1_000, behind=1_000)
    assert flow.load == pytest.approx(2 + 1_000 / 300 / 100)


def test_who_is_congested_gets_as_many_workers_as_the_load_is_within_the_bounds() -> None:
    assert Elasticity().see(0, [report(2.1)], 1) == 3
    assert Elasticity().see(0, [report(1.0), report(1.6)], 2) == 3
    assert Elasticity().see(0, [report(40)], 1) == 10
    assert Elasticity().see(0, [report(0.1, least=2)], 1) == 2


def test_who_is_not_congested_and_who_is_not_elastic_gets_none() -> None:
    assert Elasticity().see(0, [report(2.1, is_asking=False)], 1) == 1
    assert Elasticity().see(0, [report(2.1, least=0, most=0)], 1) == 1
    assert needed_workers([report(2.1, least=0, most=0)]) == 0


def test_a_worker_is_given_up_when_one_fewer_has_enough_to_spare_for_ten_minutes() -> None:
    elasticity = Elasticity()
    assert elasticity.see(0, [report(1.4)], 3) == 3
    assert elasticity.see(SPARE_SECONDS - 1, [report(1.4)], 3) == 3
    assert elasticity.see(SPARE_SECONDS, [report(1.4)], 3) == 2
    other = Elasticity()
    other.see(0, [report(1.4)], 3)
    other.see(300, [report(1.6)], 3)
    assert other.see(SPARE_SECONDS, [report(1.4)], 3) == 3, "not for all that time"


def test_a_process_that_listens_hears_how_many_are_missing_and_waits_for_them() -> None:
    leases, clock = MemoryLeases(), VirtualClock()
    wanted = MissingWorkers(leases, clock)

    def beat(name: str, *reports: FeedReport) -> None:
        leases.beat(WorkerId(name), msgspec.json.encode(reports))

    beat("a", report(2.5))
    assert wanted.missing() == 2
    clock.advance(SETTLE_SECONDS)
    assert wanted.missing() == 0, "they begin"
    beat("a", report(1.0))
    beat("b", report(1.5))
    beat("take-a", report(5.0))
    clock.advance(2)
    assert wanted.missing() == 1, "a run of the function is none of them"


def test_further_processes_are_started_and_let_go_as_many_as_are_wanted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = "import time, sys; open(sys.argv[1], 'w').close(); time.sleep(60)"
    monkeypatch.setattr(further_processes, "PROGRAM", program)
    others = FurtherProcesses(lambda number: [str(tmp_path / f"{number}")], 0)
    try:
        others.change(2)
        end = time.monotonic() + 20
        while len(list(tmp_path.iterdir())) < 2:
            assert time.monotonic() < end
            time.sleep(0.05)
        others.change(-1)
        others.change(-5)
        assert len(others._running) == 0
    finally:
        assert others.end() == 0
    assert sorted(one.name for one in tmp_path.iterdir()) == ["1", "2"]
