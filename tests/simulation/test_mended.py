"""Seeds that failed once, told as what happened; each was mended."""

from __future__ import annotations

from pathlib import Path

from lakebed.backends.faulty import CALM
from lakebed.statestore.open_table import OpenTable
from tests.simulation.machine import Machine
from tests.simulation.rows import Request, TupleRequest
from tests.simulation.world import World


def calm_world(scratch: Path, seed: int = 1) -> World:
    world = World(seed, scratch)
    world.weather.rates = CALM
    return world


def take(world: World, machine: Machine, table: OpenTable, request: Request) -> None:
    machine.ingest.run(table, TupleRequest(world.schema, request))


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
        take(world, machine, table, world.ask(table.id).request)

    assert machine.create_jobs.run(table) == 1
    assert machine.worker.run(jobs_max=5) == 1

    take(world, machine, table, world.ask(table.id).request)
    world.close()
