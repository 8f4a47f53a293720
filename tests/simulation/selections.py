"""What readers of a world ask for, and which rows that is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebed.backends.memory.row_processing import TupleWork
from lakebed.model.keys import encode_key
from lakebed.model.names import Micros
from lakebed.model.predicates.language import Predicate
from lakebed.model.processing import Processing, ProcessingPass
from lakebed.model.ranges import KeyRange, Range
from lakebed.model.schema import Schema
from lakebed.ports.sorted_files import Selection
from lakebed.query.conditions import condition_of
from tests.simulation.rows import Row

if TYPE_CHECKING:
    from tests.simulation.world import World


def some_condition(world: World) -> Selection | None:
    """Return a range, a key, or nothing."""
    if world.rng.random() < 0.6:
        return None
    least, most = sorted((world.row_maker.key(), world.row_maker.key()))
    if world.rng.random() < 0.3:
        return condition_of(world.schema, keys=[least])
    given = {"key": Range(least, most, max_inclusive=world.rng.random() < 0.5)}
    if len(world.schema.row_keys) > 1 and world.rng.random() < 0.6:
        part = {"part": Range(world.rng.choice("abc"), None)}
        given = part if world.rng.random() < 0.5 else given | part
    return condition_of(world.schema, ranges=given)


def fits(world: World, condition: Selection | None, row: Row) -> bool:
    """Whether a condition wants a row."""
    if condition is None:
        return True
    if condition.where is not None and not keeps(world.schema, condition.where, row):
        return False
    fields = world.schema.row_keys
    key = [encode_key([field], [value]) for field, value in zip(fields, row, strict=False)]
    return any(all(map(KeyRange.contains, box, key)) for box in condition.boxes)


def keeps(schema: Schema, where: object, row: Row) -> bool:
    """Whether a predicate keeps a row."""
    assert isinstance(where, Predicate)
    work = TupleWork(schema, ProcessingPass(Processing(filter=where), Micros(0), "query"))
    return bool(work.selected([row]))
