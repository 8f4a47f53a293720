"""Rows are deleted, and what users are told of it is held against what the log says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebed.deletes.requests import Deleted
from lakebed.model.names import TransactionNumber
from lakebed.model.ranges import Range
from lakebed.ports.sorted_files import Selection
from lakebed.query.run_query import condition_of, everything_of
from lakebed.statestore.open_table import OpenTable
from tests.simulation.machine import Machine
from tests.simulation.selections import fits
from tests.simulation.violation import TRUTH, Violation

if TYPE_CHECKING:
    from tests.simulation.world import World


def delete_range(world: World, machine: Machine) -> None:
    """Delete one range of keys or a few, now and then all."""
    delete_from(world, machine, world.some_table(machine), some_range(world))


def delete_from(world: World, machine: Machine, table: OpenTable, selection: Selection) -> None:
    """Delete rows, and look whether so many went as its user is told."""
    done = machine.delete.run(table, lambda _: selection)
    if done.exact and not world.ages:
        check_told(world, table, selection, done)


def check_told(world: World, table: OpenTable, selection: Selection, done: Deleted) -> None:
    """So many rows of the version before went, and none of the selection is left."""
    auditor = world.auditors[table.id]
    if auditor.state.head().dropped:
        return
    at = done.number if not done.rows else TransactionNumber(done.number - 1)
    before = sum(n for row, n in auditor.rows_at(at).items() if fits(world, selection, row))
    if before != done.rows:
        story = f"told that {done.rows} rows went at {done.number}, there were {before}"
        raise Violation(TRUTH, story)


def some_range(world: World) -> Selection:
    """Return ranges of whole keys: a few keys, what lies between two, or, rarely, all."""
    rng, schema = world.rng, world.schema
    drawn = rng.random()
    if drawn < 0.03:
        return Selection((everything_of(schema),))
    if drawn < 0.6:
        keys = [world.row_maker.key() for _ in range(rng.choice((1, 1, 2)))]
        if len(schema.row_keys) > 1 and rng.random() < 0.5:
            return condition_of(schema, keys=[(key, rng.choice("abc")) for key in keys])
        return condition_of(schema, keys=keys)
    least = world.row_maker.key()
    most = world.row_maker.key_behind(least)
    return condition_of(schema, ranges={"key": Range(least, most, max_inclusive=rng.random() < 0.5)})
