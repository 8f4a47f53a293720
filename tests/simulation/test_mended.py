"""Seeds that failed once, told as what happened; each was mended."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from lakebed.backends.faulty import CALM, Crash, Fault
from lakebed.errors import TableMissingError
from lakebed.model.names import MICROS_PER_SECOND
from lakebed.ports.table_registry import TableEntry
from lakebed.statestore.answers import Retry
from lakebed.statestore.committer import HIDDEN_SECONDS
from lakebed.statestore.log_entries.table_changes import Clear
from lakebed.statestore.open_table import start_of
from tests.simulation.actors import send
from tests.simulation.faults.lies import DAY_SECONDS
from tests.simulation.queued import drain, hear, queue_request
from tests.simulation.world import World


def calm_world(scratch: Path, seed: int = 1) -> World:
    world = World(seed, scratch)
    world.weather.rates = CALM
    return world


def test_a_new_process_learns_from_the_tombstone_that_a_table_was_dropped(tmp_path: Path) -> None:
    # seed 2: no snapshot is left of a dropped table, and its log begins at the tombstone; a process
    # without a cache called that damage, in every sweep of nameless logs from then on
    world = calm_world(tmp_path)
    machine = world.calm_machine()
    table = machine.catalog.find("main")
    machine.catalog.drop("main")

    fresh = world.calm_machine()
    assert fresh.catalog.sweep_nameless() == 0
    with fresh.head(table.id).reading() as state:
        assert state.head().dropped
    world.close()


def test_ingest_is_not_told_busy_for_ever_where_no_size_ratio_holds(tmp_path: Path) -> None:
    # seed 18: with two files a job and a ratio of 2 no group ever held the ratio, so the leaf
    # stayed above `leaf_files_max`, and every ingest was told to wait for compaction
    world = calm_world(tmp_path)
    machine = world.calm_machine()
    settings = {"compaction_strategy": "size_ratio", "job_files_max": 2, "size_ratio": 2}
    machine.catalog.create("busy", world.schema, settings=settings | {"leaf_files_max": 4})
    table = machine.catalog.find("busy")
    for _ in range(4):
        send(world, machine, table, world.ask(table.id))

    assert machine.create_jobs.run(table) == 1
    assert machine.worker.run(jobs_max=5) == 1

    send(world, machine, table, world.ask(table.id))
    world.close()


def test_what_killed_jobs_left_is_swept_from_a_table_that_nobody_uses(tmp_path: Path) -> None:
    # seed 13: of entries within one minute only the first one's time is kept, so on an idle table
    # no number was ever known to be old enough, and files with the last base stayed for ever
    world = calm_world(tmp_path)
    machine = world.calm_machine()
    table = machine.catalog.find("main")
    send(world, machine, table, world.ask(table.id))
    world.machines.append(killed := world.killed_machine(effect=2))
    with pytest.raises(Crash):
        send(world, killed, killed.catalog.find("main"), world.ask(table.id))

    for _ in range(3):
        world.clock.advance(50 * 3_600)
        machine.sweep.run(table)

    world.check()
    world.close()


def test_work_on_a_table_that_is_dropped_meanwhile_is_told_so(tmp_path: Path) -> None:
    # seeds 920, 1357: a reader and an ingest met a state without partitions, and failed on it
    world = calm_world(tmp_path)
    machine, other = world.calm_machine(), world.calm_machine()
    table = machine.catalog.find("main")
    send(world, machine, table, world.ask(table.id))
    other.catalog.drop("main")

    with pytest.raises(TableMissingError):
        send(world, machine, table, world.ask(table.id))
    with pytest.raises(TableMissingError):
        machine.query.run(table)
    fresh = world.calm_machine()
    late = fresh.catalog.opened(TableEntry(id=table.id, name=table.name))
    with pytest.raises(TableMissingError):
        fresh.query.run(late)
    with pytest.raises(TableMissingError):
        send(world, fresh, late, world.ask(table.id))
    assert machine.split.run(table) == machine.create_jobs.run(table) == 0
    assert machine.collect.run(table) == machine.sweep.run(table) == 0
    world.close()


def test_a_queued_request_is_not_refused_for_an_entry_of_time_without_an_answer(
    tmp_path: Path,
) -> None:
    # seeds 545, 1250, 1367: after idle days the committer told the log of time, got no answer
    # within its time, and refused the commits behind it; a user's id was then used up, and claims
    # that were told "failed" landed when their message came again
    world = calm_world(tmp_path)
    sender, machine = world.calm_machine(), world.calm_machine()
    table = sender.catalog.find("main")
    asked = world.ask(table.id)
    queue_request(world, sender, table, asked)
    world.clock.advance(3 * DAY_SECONDS)
    machine.head(table.id)._retry = Retry(seconds_max=0.0)

    world.weather.rates = {Fault.APPEND_LOST: 1.0}
    machine.committer.run(batches_max=1)
    world.weather.rates = CALM
    hear(world)
    assert asked.open, "nobody was told anything"

    world.clock.advance(HIDDEN_SECONDS)
    drain(world, machine)
    hear(world)
    assert asked.acknowledged
    world.check()
    world.close()


def test_garbage_that_was_due_before_a_leap_may_be_deleted_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # seed 91 of the theme "clocks": a collector found a file due and stalled; log time leapt, which
    # makes garbage as young as the leap; the file was a month old when the collector went on
    settings = {"garbage_seconds_min": 3 * DAY_SECONDS}
    world = World(1, tmp_path, theme="clocks", settings=settings)
    world.weather.rates = CALM
    machine = world.calm_machine()
    table = machine.catalog.find("main")
    send(world, machine, table, world.ask(table.id))
    with table.head.reading() as state:
        start = start_of(state)
    table.head.commit(table.own(start, Clear(None)))
    world.clock.advance(4 * DAY_SECONDS)
    late = [world.calm_machine(informed=True).head(table.id) for _ in range(2)]

    found_due = world.clock.now()

    def delete_after_a_leap(paths: list[str]) -> None:
        world.clock.advance(2 * DAY_SECONDS)
        for head in late:
            head.follow()
            head.record_time()
        with late[0].reading() as state:
            assert state.head().at > found_due + DAY_SECONDS * MICROS_PER_SECOND
        machine.objects.delete(paths)

    monkeypatch.setattr(machine.collect, "_objects", SimpleNamespace(delete=delete_after_a_leap))
    assert machine.collect.run(table) == 1
    world.close()
