"""Rows are deleted, and what users are told of it is held against what the log says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from lakebed.deletes.requests import RANGES_MAX, Deleted
from lakebed.model.names import TransactionNumber
from lakebed.model.predicates.language import Predicate, field
from lakebed.model.ranges import Range
from lakebed.model.schema import Schema
from lakebed.ports.sorted_files import Selection
from lakebed.query.conditions import condition_of, everything_of
from lakebed.sorted_files.reading.row_tests import row_test
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


def delete_rows(world: World, machine: Machine) -> None:
    """Delete rows by their values, by a key that is not the first, or by many keys."""
    if world.ages:  # rows that are too old go as well, by each machine's clock
        return
    rewrite_without(world, machine, world.some_table(machine), some_rows(world))


def rewrite_without(world: World, machine: Machine, table: OpenTable, wanted: Selection) -> None:
    """Delete rows by rewriting files, and look whether those that were there are gone."""
    auditor = world.auditors[table.id]
    auditor.wanted_gone.append(lambda row: fits(world, wanted, row))
    begun = auditor.number
    done = machine.delete.run(table, lambda schema: in_words_of(world, wanted, schema))
    if auditor.state.head().dropped:
        return
    there = (row for row in auditor.rows_at(begun) if fits(world, wanted, row))
    left = auditor.rows_at(max(done.number, begun))
    if stayed := [row for row in there if row in left]:
        raise Violation(TRUTH, f"told that rows are gone at {done.number}: {stayed}")


def in_words_of(world: World, wanted: Selection, schema: Schema) -> Selection:
    """Return the same of a schema whose fields have other names by now."""
    where = wanted.where
    if where is not None:
        named = {f.number: f.name for f in schema.fields}
        names = {f.name: named[f.number] for f in world.schema.fields}
        text = msgspec.json.encode(where).decode()
        for old, new in names.items():
            text = text.replace(f'"field":"{old}"', f'"field":"{new}"')
        where = msgspec.json.decode(text, type=Predicate)
        where = row_test(where, schema) if world.parquet else where
    return Selection(wanted.boxes, None, where)


def some_rows(world: World) -> Selection:
    """Return rows with some ids; or, by keys, what is not a few ranges of whole keys."""
    rng, schema = world.rng, world.schema
    drawn = rng.random()
    if drawn < 0.3:
        keys = {world.row_maker.key() for _ in range(2 * RANGES_MAX)}
        return condition_of(schema, keys=sorted(keys))
    if drawn < 0.5 and len(schema.row_keys) > 1:
        return condition_of(schema, ranges={"part": (rng.choice("abc"), None)})
    given = {} if rng.random() < 0.6 else {"key": (world.row_maker.key(), None)}
    boxes = condition_of(schema, ranges=given).boxes
    tests = (field("id") > rng.randrange(100), field("id") < rng.randrange(60))
    return Selection(boxes, None, rng.choice(tests))


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
    return condition_of(
        schema, ranges={"key": Range(least, most, max_inclusive=rng.random() < 0.5)}
    )
