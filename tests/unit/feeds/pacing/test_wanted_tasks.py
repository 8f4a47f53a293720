"""How many tasks are wanted by what workers say, and which of them may end."""

import msgspec
import pytest

from lakebed.backends.memory import MemoryLeases, VirtualClock
from lakebed.feeds.pacing.wanted_tasks import (
    HeardWorkers,
    Need,
    SaidLoad,
    heard_workers,
    listened_tasks,
    need_of,
    tasks_wanted,
)
from lakebed.feeds.pacing.wanted_workers import WorkerBounds
from lakebed.feeds.worker import FeedReport
from lakebed.model.feeds.tallies import Tally
from lakebed.ports.leases import WorkerBeat, WorkerId

ELASTIC = WorkerBounds(1, 5)
FIXED = WorkerBounds(1, 0)
SECONDS_MAX = 6.0


def asking(load: float) -> SaidLoad:
    return SaidLoad(load, 1, 5, is_asking=True)


def calm(load: float) -> SaidLoad:
    return SaidLoad(load, 1, 5)


def heard(*loads: SaidLoad, tasks: int = 1, others: int = 0) -> HeardWorkers:
    names = tuple(WorkerId(f"task-{number}") for number in range(tasks))
    return HeardWorkers(tasks=names, others=others, loads=loads)


@pytest.mark.parametrize(
    ("bounds", "said", "wanted"),
    [
        (ELASTIC, heard(calm(2.5)), 1),
        (ELASTIC, heard(asking(2.5)), 3),
        (ELASTIC, heard(asking(1.5), calm(1.7), tasks=2), 4),
        (ELASTIC, heard(asking(40)), 5),
        (ELASTIC, heard(asking(2.5), others=1), 2),
        (ELASTIC, heard(asking(0.2), others=4), 1),
        (WorkerBounds(2, 5), heard(asking(0.2)), 2),
        (WorkerBounds(1, 2), heard(asking(2.5)), 2),
        (FIXED, heard(asking(2.5)), 1),
        (WorkerBounds(), heard(asking(2.5)), 0),
    ],
)
def test_tasks_are_wanted_for_a_load_while_a_pipeline_asks_within_the_bounds_of_policies(
    bounds: WorkerBounds, said: HeardWorkers, wanted: int
) -> None:
    assert tasks_wanted(bounds, said) == wanted


def needs(bounds: WorkerBounds, said: HeardWorkers) -> list[Need]:
    return [need_of(task, bounds, said) for task in said.tasks]


@pytest.mark.parametrize(
    ("bounds", "said", "found"),
    [
        (ELASTIC, heard(calm(1.5), tasks=3), ["needed", "needed", "spare"]),
        (ELASTIC, heard(calm(1.6), tasks=3), ["needed", "needed", "needed"]),
        (ELASTIC, heard(calm(0.0), tasks=3), ["needed", "needed", "spare"]),
        (ELASTIC, heard(calm(0.0), tasks=1), ["needed"]),
        (ELASTIC, heard(calm(0.7), tasks=1, others=1), ["needed"]),
        (WorkerBounds(2, 5), heard(calm(0.0), tasks=2), ["needed", "needed"]),
        (WorkerBounds(1, 2), heard(calm(9.0), tasks=3), ["needed", "needed", "unneeded"]),
        (WorkerBounds(1, 3), heard(calm(9.0), tasks=2, others=2), ["needed", "unneeded"]),
        (FIXED, heard(calm(9.0), tasks=2), ["needed", "unneeded"]),
        (WorkerBounds(), heard(calm(9.0), tasks=1), ["unneeded"]),
    ],
)
def test_of_tasks_one_at_a_time_is_spare_where_the_others_have_a_quarter_to_spare(
    bounds: WorkerBounds, said: HeardWorkers, found: list[Need]
) -> None:
    assert needs(bounds, said) == found


@pytest.mark.parametrize("load", [0.0, 0.7, 0.76, 1.4, 2.2, 3.1, 4.9])
@pytest.mark.parametrize("running", range(1, 6))
def test_a_task_that_the_starter_would_start_is_never_one_that_may_end(
    load: float, running: int
) -> None:
    """Else tasks would be started and end for ever."""
    said = heard(asking(load), tasks=running)
    kept = sum(need == "needed" for need in needs(ELASTIC, said))
    assert kept >= min(running, tasks_wanted(ELASTIC, said))


def encoded(load: float, *, is_asking: bool = True) -> bytes:
    report = FeedReport(
        kind="connection",
        name="a",
        version=1,
        splits=1,
        behind=0,
        waiting=0,
        commits=0,
        tally=Tally(),
        load=load,
        workers_min=1,
        workers_max=5,
        is_asking=is_asking,
    )
    return msgspec.json.encode([report])


def test_what_workers_say_is_read_from_their_beats_by_who_needs_little_of_it() -> None:
    beats = [
        WorkerBeat(WorkerId("task-b"), 1, encoded(1.5)),
        WorkerBeat(WorkerId("task-a"), 1, b"{of a newer release"),
        WorkerBeat(WorkerId("task-dead"), 1, encoded(7.0)),
        WorkerBeat(WorkerId("worker-a"), 1, b""),
        WorkerBeat(WorkerId("take-a"), 1, encoded(3.0)),
    ]
    living = [WorkerId(name) for name in ("task-a", "task-b", "take-a", "worker-a")]
    found = heard_workers(beats, living)
    assert found == HeardWorkers(
        tasks=(WorkerId("task-a"), WorkerId("task-b")), others=1, loads=(asking(1.5),)
    )


class BeatingLeases(MemoryLeases):
    """Some of the workers beat with each look."""

    def __init__(self, **beating: bytes) -> None:
        super().__init__()
        self._beating = beating
        self.looks = 0

    def workers(self) -> list[WorkerBeat]:
        self.looks += 1
        for name, report in self._beating.items():
            self.beat(WorkerId(name.replace("_", "-")), report)
        return super().workers()


def test_a_dead_worker_that_asked_for_more_starts_no_task() -> None:
    """Its last beat stays for minutes."""
    leases, clock = BeatingLeases(task_b=encoded(1.5)), VirtualClock()
    leases.beat(WorkerId("task-a"), encoded(4.0))
    assert listened_tasks(ELASTIC, leases, clock) == 2
    assert clock.monotonic() <= SECONDS_MAX
    alone = MemoryLeases()
    alone.beat(WorkerId("task-a"), encoded(4.0))
    assert listened_tasks(ELASTIC, alone, clock) == 1


def test_one_that_listens_does_not_wait_where_no_worker_asks_for_more() -> None:
    leases, clock = BeatingLeases(task_a=encoded(4.0, is_asking=False)), VirtualClock()
    leases.beat(WorkerId("task-b"), b"")
    assert listened_tasks(ELASTIC, leases, clock) == 1
    assert (leases.looks, clock.monotonic()) == (1, 0)
    assert listened_tasks(FIXED, leases, clock) == 1
    assert leases.looks == 1, "no feed is elastic: it needs no look"
