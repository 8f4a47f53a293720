"""The end of a world: nothing fails any more, all work ends, and everything is looked at."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import TYPE_CHECKING

import zstandard

from lakebed.errors import LakebedError, TableBusyError, TableMissingError, UnavailableError
from lakebed.model.names import TableId
from lakebed.model.paths import (
    commits_prefix,
    file_path,
    files_prefix,
    snapshot_of,
    snapshots_prefix,
)
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.snapshots import Snapshots
from lakebed.statestore.table_state.kept_versions import kept_versions, unneeded
from lakebed.statestore.table_state.placing import own_key_range
from lakebed.statestore.table_state.state import TableState
from tests.simulation.actors import damage_snapshot, send
from tests.simulation.auditor import Auditor
from tests.simulation.faults.damaged_cache import proves_itself
from tests.simulation.machine import Machine
from tests.simulation.new_state import state_in
from tests.simulation.queued import check_told, drain
from tests.simulation.rows import rows_asked
from tests.simulation.violation import ENDS, LEAKS, NAMES, REPLAY, ROWS, STARTS, TRUTH, Violation

if TYPE_CHECKING:
    from tests.simulation.world import World

IDLE_ROUNDS_MAX = 12
"""Rounds of housekeeping after which something must have got through that was sent again."""

HOUSE_ROUNDS_MAX = 4
"""Rounds of housekeeping, two days apart, after which nothing is left that must go: after idle
months the clock is told, then believed, and only then do ages begin. A round too many may do harm,
which is looked for as well."""


def end_in_peace(world: World) -> None:
    """Finish what is under way, send again what is unknown, and do all that is due."""
    world.weather.clear_up()
    world.scheduler.finish()
    machine = world.calm_machine(informed=True)
    world.machines.append(machine)
    for table in tables(machine):
        send_until_done(world, machine, table)
    for _ in range(HOUSE_ROUNDS_MAX):
        world.clock.advance(50 * 3_600)
        for table in tables(machine):
            keep_house(world, machine, table)
        machine.catalog.sweep_nameless()
        if world.ends_at_rest and not any(left_over(world, machine)):
            break
    for table in tables(machine):  # what the last jobs replaced
        world.clock.advance(80 * 3_600)
        machine.collect.run(table)
        machine.sweep.run(table)
    if world.rng.random() < 0.5:
        damage_snapshot(world, machine)


def send_until_done(world: World, machine: Machine, table: OpenTable) -> None:
    """Do what is due and send again what is unknown, by turns: a leaf takes some files at a time,
    and where many are open they get through over many rounds."""
    keep_house(world, machine, table)
    left, idle = send_unknown(world, machine, table), 0
    while left:
        keep_house(world, machine, table)
        still = send_unknown(world, machine, table)
        idle = idle + 1 if still >= left else 0
        left = still
        if idle >= IDLE_ROUNDS_MAX:
            raise Violation(ENDS, "a request sent again and again has no end")


def tables(machine: Machine) -> list[OpenTable]:
    """Return all tables that have names and were not dropped."""
    found = []
    for entry in machine.catalog.list():
        try:
            found.append(machine.catalog.find(entry.name))
        except TableMissingError:
            machine.catalog.drop(entry.name)  # a killed drop is finished by the next
    return found


def keep_house(world: World, machine: Machine, table: OpenTable) -> None:
    """Do once what is due."""
    machine.split.run(table)
    machine.create_jobs.run(table)
    world.clock.advance(1_000)
    machine.worker.run(jobs_max=5_000)
    drain(world, machine)
    machine.give_up_dead_jobs.run()
    machine.collect.run(table)
    machine.sweep.run(table)


def send_unknown(world: World, machine: Machine, table: OpenTable) -> int:
    """Send again what may be in or not. Returns how many are still open."""
    left = 0
    for asked in list(world.truth.asked.values()):
        is_open = asked.open and asked.acknowledged is None and not asked.reused
        if asked.table != table.id or asked.job is None or not is_open:
            continue
        if not world.is_remembered(asked):
            continue
        try:
            send(world, machine, table, asked)
        except TableBusyError:
            left += 1
        except LakebedError as error:
            raise Violation(ENDS, f"sent again in peace: {error}") from error
    return left


def check_world(world: World) -> None:
    """Raise a Violation for each promise that was broken."""
    machine = world.calm_machine()
    world.machines.append(machine)
    check_told(world)
    if world.weather.reused_paths:
        raise Violation(NAMES, f"put twice with other bytes: {world.weather.reused_paths}")
    for asked in world.truth.asked.values():
        world.truth.check(asked)
        if asked.acknowledged is not None and world.truth.landing(asked) is None:
            raise Violation(TRUTH, f"{asked.request.id} was acknowledged and is gone")
    try:
        named = tables(machine)
    except UnavailableError as error:
        raise Violation(STARTS, f"a process without a cache: {error}") from error
    for table in named:
        auditor = world.auditors[table.id]
        world.check_rows(machine, table, auditor)
        check_replay(world, table, auditor)
    for left in left_over(world, machine):
        raise left


def check_rows(world: World, machine: Machine, table: OpenTable, auditor: Auditor) -> None:
    """A fresh reader sees each row that was acknowledged, once."""
    wanted = auditor.rows_at(auditor.number)
    seen = [row for b in machine.query.run(table) for row in rows_asked(b, world.schema)]
    lost, more = dict(wanted), {}
    for row in seen:
        if lost.get(row, 0):
            lost[row] -= 1
        else:
            more[row] = more.get(row, 0) + 1
    lost = {row: n for row, n in lost.items() if n and world.is_due_to(machine, row)}
    if lost or more:
        raise Violation(ROWS, f"lost {lost}, too many {more}")
    check_exact(machine, table)


def check_exact(machine: Machine, table: OpenTable) -> None:
    """A reference that says it is exact has as many rows as it says."""
    with table.head.reading() as state:
        schema = state.schema()
        parts = [
            table.part(reference, own_key_range(state, reference.partition))
            for reference in state.all_references()
            if reference.exact
        ]
    for part in parts:
        rows = sum(map(machine.files.rows, machine.files.merge(schema, [part])))
        if rows != part.rows:
            raise Violation(ROWS, f"a reference tells of {part.rows} rows, there are {rows}")


def check_replay(world: World, table: OpenTable, auditor: Auditor) -> None:
    """Machines, and good snapshots with the log after them, say the same: some of each, and all
    states that were opened from damaged bytes and are still in use."""
    wanted = auditor.state.digest()
    known = [m.states[table.id] for m in world.machines if table.id in m.states]
    informed = [state for state in known if proves_itself(state)]
    doubtful = [state for state in informed if state in world.shared.doubtful]
    for state in (world.rng.choice(informed), informed[-1], *doubtful):
        if digest_at_end(auditor, state) != wanted:
            raise Violation(REPLAY, "a machine's state is another than the log's")
    snapshots = Snapshots(table.id, world.shared.objects, scratch=world.shared.scratch)
    paths = list(world.shared.objects.list(snapshots_prefix(table.id)))
    for path in world.rng.sample(paths, min(2, len(paths))):
        parsed = snapshot_of(path)
        if parsed is None or not snapshots.prove(path):
            continue
        state = opened(world, path)
        same = digest_at_end(auditor, state) == wanted
        state.connection.close()
        if not same:
            raise Violation(REPLAY, f"snapshot {parsed[0]} plus the log's tail is another state")


def digest_at_end(auditor: Auditor, state: TableState) -> bytes:
    """Return what a state says once it has all entries; nothing: they do not fit."""
    try:
        auditor.replayed(state)
        return state.digest()
    except (LakebedError, sqlite3.Error):
        return b""


def opened(world: World, path: str) -> TableState:
    """Return a snapshot, read without the code that wrote it."""
    facts = world.shared.objects.facts(path)
    assert facts is not None, "listed without a lag"
    (packed,) = world.shared.objects.read(path, [(0, facts.size)])
    return state_in(zstandard.ZstdDecompressor().decompressobj().decompress(packed))


def left_over(world: World, machine: Machine) -> Iterator[Violation]:
    """Yield what must be gone at the end: claims, and objects that are there without a reason."""
    named = {entry.id for entry in machine.catalog.list()}
    for table, auditor in world.auditors.items():
        left_of = left_of_table if table in named else left_of_dropped
        yield from left_of(world, table, auditor)


def left_of_table(world: World, table: TableId, auditor: Auditor) -> Iterator[Violation]:
    """Yield what is left of a table that has a name."""
    state = auditor.state
    if state.jobs():
        yield Violation(ENDS, f"{len(state.jobs())} jobs never ended")
    known = {file_path(table, r.file.name) for r in state.all_references()}
    floor = state.head().floor
    known |= {file_path(table, g.file) for g in state.garbage()}
    there = set(world.shared.objects.list(files_prefix(table)))
    there |= set(world.shared.objects.list(commits_prefix(table)))
    if there - known:
        yield Violation(LEAKS, f"objects that nothing knows, floor {floor}: {there - known}")
    kept = kept_versions(state, now=world.clock.now())
    left = list(unneeded(state, kept, before=world.clock.now()))
    if left:
        yield Violation(LEAKS, f"garbage was never collected: {left}")


def left_of_dropped(world: World, table: TableId, auditor: Auditor) -> Iterator[Violation]:
    """Yield what is left of a table without a name, beside its tombstone."""
    left = [path for path in world.shared.objects.paths() if table in path]
    if left or (auditor.number and not auditor.state.head().dropped):
        yield Violation(LEAKS, f"of a table without a name there is still: {left}")
