"""What goes on in a world of versions: tags, late pins, readers of the past, housekeeping."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from lakebed.errors import InvalidError, UnavailableError, VersionExpiredError
from lakebed.model.names import TransactionNumber
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.kept_versions import is_kept, tags_of
from lakebed.tables.versions import drop_tag, pin_version, put_tag
from tests.simulation import actors
from tests.simulation.machine import Machine
from tests.simulation.rows import Row, rows_asked
from tests.simulation.violation import KEPT, READERS, Violation

if TYPE_CHECKING:
    from tests.simulation.actors import Actor
    from tests.simulation.versions.versioned_world import VersionedWorld
    from tests.simulation.world import World

PIN_SECONDS = 30 * 3_600


def some_number(world: World, table: OpenTable) -> TransactionNumber:
    """Return a version of a table, mostly a young one."""
    with table.head.reading() as state:
        last = state.head().number
    back = world.rng.randrange(10) if world.rng.random() < 0.7 else world.rng.randrange(last)
    return TransactionNumber(max(1, last - back))


def tag(world: VersionedWorld, machine: Machine) -> None:
    """Give a version a name, the newest or an older one."""
    table = world.some_table(machine)
    number = None if world.rng.random() < 0.2 else some_number(world, table)
    with world.expected_errors(VersionExpiredError, InvalidError):
        try:
            put_tag(table, world.fresh_name(), number)
        except VersionExpiredError as error:
            check_refusal(world, table, number, error)
            raise


def check_refusal(
    world: World, table: OpenTable, number: int | None, error: VersionExpiredError
) -> None:
    """A version that is whole by the newest state was so before: the horizon only rises."""
    state = world.auditors[table.id].state
    if number is None or (not state.head().dropped and is_kept(state, TransactionNumber(number))):
        raise Violation(READERS, f"version {number} is whole and refused: {error}") from error


def untag(world: World, machine: Machine) -> None:
    table = world.some_table(machine)
    with table.head.reading() as state:
        found = tags_of(state)
    if found:
        with world.expected_errors(InvalidError):  # dropped meanwhile
            drop_tag(table, world.rng.choice(found).name)


def read_tag(world: World, machine: Machine) -> None:
    """Read a version that has a tag, slowly. Who gets it whole, or is told that the tag is gone."""
    table = world.some_table(machine)
    with table.head.reading() as state:
        found = tags_of(state)
    if found:
        tag = world.rng.choice(found)
        with world.expected_errors(InvalidError):
            read_version(world, machine, table, tag.number, tag=tag.name)


def read_past(world: World, machine: Machine) -> None:
    """Read an older version, without anything that keeps it."""
    table = world.some_table(machine)
    read_version(world, machine, table, some_number(world, table))


def read_pinned_late(world: VersionedWorld, machine: Machine) -> None:
    """Pin an older version, then read it."""
    table = world.some_table(machine)
    number = some_number(world, table)
    name = world.fresh_name()
    try:
        pin_version(table, name, number, seconds=PIN_SECONDS)
    except VersionExpiredError as error:
        check_refusal(world, table, number, error)
        raise
    read_version(world, machine, table, number, pin=name)


def read_version(
    world: World,
    machine: Machine,
    table: OpenTable,
    number: TransactionNumber,
    *,
    tag: str | None = None,
    pin: str | None = None,
) -> None:
    """Read a version, and compare. tag, pin: the name of what keeps it."""
    auditor = world.auditors[table.id]
    condition = actors.some_condition(world)
    wanted = auditor.rows_at(number)
    wanted = Counter({r: n for r, n in wanted.items() if actors.fits(world, condition, r)})
    seen: Counter[Row] = Counter()
    slowly = world.rng.choice((0.0, 60.0, 20_000.0))
    try:
        plan = machine.query.plan(table, lambda _: condition, as_of=tag or int(number))
        for batch in machine.query.read(table, plan):
            seen.update(rows_asked(batch, world.schema))
            if world.weather.rates:
                world.scheduler.pause(slowly * world.rng.random())
    except VersionExpiredError as error:
        kept = {one.name for one in tags_of(auditor.state)} | {p.id for p in auditor.state.pins()}
        if {tag, pin} & kept:
            raise Violation(
                KEPT, f"version {number} is kept by {tag or pin} and expired"
            ) from error
        if seen - wanted:
            raise Violation(READERS, f"version {number} gave rows that it has not") from error
        return
    except UnavailableError:
        return
    lost, more = wanted - seen, seen - wanted
    lost = Counter({row: n for row, n in lost.items() if world.is_due_to(machine, row)})
    if lost or more:
        raise Violation(READERS, f"version {number} lacks {dict(lost)}, has {dict(more)} too much")


VERSION_ACTORS: dict[Actor, int] = {
    actors.ingest: 25,
    actors.create_jobs: 12,
    actors.work: 15,
    actors.split: 3,
    actors.collect: 18,
    actors.sweep: 4,
    actors.snapshot: 3,
    actors.snapshot_twice: 6,
    actors.clear: 2,
    tag: 14,  # type: ignore[dict-item]  # of this kind of world
    untag: 5,
    read_tag: 8,
    read_past: 6,
    read_pinned_late: 4,  # type: ignore[dict-item]  # of this kind of world
}
