"""Leaves that a bulk import plans: they tile what is there, are cut between keys, and are even."""

import random
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakebed.bulk_import.plan import plan_merges
from lakebed.bulk_import.plan_leaves import (
    LEAF_ROWS_MIN,
    FilledLeaf,
    Load,
    allowed_cuts,
    chosen_cuts,
    parts_wanted,
    rows_of,
    targets_of,
    weights_by_key_range,
)
from lakebed.config.settings import TableSettings
from lakebed.model.keys import encode_key, key_value, least_key, prefix_values
from lakebed.model.names import PartitionId
from lakebed.model.partitions import SPLIT_POINTS_MAX
from lakebed.model.ranges import EVERYTHING, KeyRange
from lakebed.model.schema import Schema
from lakebed.sorted_files.sorting.stored_runs import Block, StoredRun
from tests.properties import tables

BLOCK_ROWS = 4


def sorted_run(name: str, keys: Sequence[bytes], points: Sequence[bytes]) -> StoredRun:
    """Return a run of rows with these keys, as `store_run` cuts it."""
    blocks: list[Block] = []
    for index, key_range in enumerate(ranges(points)):
        mine = sorted(key for key in keys if key_range.contains(key))
        for begin in range(0, len(mine), BLOCK_ROWS):
            rows = mine[begin : begin + BLOCK_ROWS]
            blocks.append(Block(index, rows[0], len(rows), 8 * len(blocks), 8, 8, 0))
    return StoredRun(name, tuple(blocks))


def ranges(points: Sequence[bytes]) -> list[KeyRange]:
    return [KeyRange(low or b"", high) for low, high in pairwise((b"", *points, None))]


@st.composite
def loads(draw: st.DrawFn) -> tuple[Schema, list[StoredRun], list[bytes]]:
    """Return a schema, runs of rows with keys of any type, few of which hold most rows, and all
    keys."""
    schema = draw(tables.schemas())
    values = st.tuples(
        *(st.sampled_from(tables.key_values(schema, f.name)) for f in schema.row_keys)
    )
    some = draw(st.lists(values, min_size=1, max_size=30))
    weights = st.integers(0, 12).map(lambda power: 2**power // 64 + 1)
    encoded = [
        encode_key(
            schema.row_keys, [key_value(f, v) for f, v in zip(schema.row_keys, key, strict=True)]
        )
        for key in some
    ]
    keys = [key for key in encoded for _ in range(draw(weights))]
    runs = draw(st.integers(1, 4))
    return schema, [sorted_run(f"{n}", keys[n::runs], ()) for n in range(runs)], sorted(keys)


@given(drawn=loads(), parts=st.integers(1, 40))
def test_parts_tile_the_leaf_and_are_cut_between_keys(
    drawn: tuple[Schema, list[StoredRun], list[bytes]], parts: int
) -> None:
    schema, runs, keys = drawn
    (weights,) = weights_by_key_range(runs, 1)
    assert rows_of(weights) == len(keys)
    leaf = FilledLeaf(PartitionId(1), EVERYTHING, 0, Load(0, len(keys)))
    targets = targets_of(leaf, weights, (), parts, schema.row_keys)
    assert len(targets) <= parts
    assert targets[0].key_range.min == b""
    assert targets[-1].key_range.max is None
    assert all(one.key_range.max == other.key_range.min for one, other in pairwise(targets))
    assert all(one.is_new == (len(targets) > 1) for one in targets)
    for target in targets[1:]:
        prefix_values(schema.row_keys, target.key_range.min)  # of whole fields
    cuts = tuple(one.key_range.min for one in targets[1:])
    assert allowed_cuts(cuts, EVERYTHING, schema.row_keys) == cuts
    assert all(any(target.key_range.contains(key) for key in keys) for target in targets)
    if len(set(keys)) == 1:
        assert len(targets) == 1


@given(drawn=loads(), parts=st.integers(1, 40), shared=st.sampled_from([0, 3, 1_000]))
def test_the_second_stage_reads_each_row_once(
    drawn: tuple[Schema, list[StoredRun], list[bytes]], parts: int, shared: int
) -> None:
    schema, runs, keys = drawn
    (weights,) = weights_by_key_range(runs, 1)
    leaf = FilledLeaf(PartitionId(1), EVERYTHING, 0, Load(0, len(keys)))
    targets = targets_of(leaf, weights, (), parts, schema.row_keys)
    planned = plan_merges(runs, targets, shared_file_rows_max=shared, rows_each=7)
    works = [work for _, work in planned]
    assert works[0].key_range.min == b""
    assert works[-1].key_range.max is None
    assert all(one.key_range.max == other.key_range.min for one, other in pairwise(works))
    for indices, work in planned:
        assert len(indices) == 1 or not any(targets[index].is_new for index in indices)
        blocks = {(run.path, block.offset) for run in work.sorted_runs for block in run.blocks}
        for run in runs:
            for block, after in pairwise([*run.blocks, None]):
                end = None if after is None else after.first + b"\0"
                if block is not None and work.key_range.overlaps(KeyRange(block.first, end)):
                    starts_inside = work.key_range.contains(block.first)
                    assert not starts_inside or (run.path, block.offset) in blocks


@given(
    rows=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), max_size=20),
    leaves=st.integers(1, 40),
    leaf_rows_max=st.integers(2, 10**5),
    leaves_min=st.integers(1, 300),
)
@example(rows=[(0, 2 * SPLIT_POINTS_MAX + 3)], leaves=1, leaf_rows_max=2, leaves_min=1)
def test_leaves_are_as_many_as_rows_or_the_setting_ask_for(
    rows: list[tuple[int, int]], leaves: int, leaf_rows_max: int, leaves_min: int
) -> None:
    settings_ = TableSettings(
        leaf_rows_max=leaf_rows_max, leaves_min=leaves_min, shared_file_rows_max=0
    )
    given_loads = [Load(*pair) for pair in rows]
    parts = parts_wanted(given_loads, leaves=leaves, settings=settings_)
    by_rows = parts_wanted(
        given_loads, leaves=leaves, settings=TableSettings(leaf_rows_max=leaf_rows_max)
    )
    for load, count, least in zip(given_loads, parts, by_rows, strict=True):
        assert count >= least >= 1
        assert load.rows <= least * leaf_rows_max or least == SPLIT_POINTS_MAX + 1
        assert least == 1 or load.rows > leaf_rows_max
        assert count == least or load.rows >= count * LEAF_ROWS_MIN
    total = leaves + sum(parts) - len(parts)
    if total < leaves_min:  # no leaf has rows for more
        assert all(
            load.rows < (count + 1) * LEAF_ROWS_MIN
            for load, count in zip(given_loads, parts, strict=True)
        )
    elif sum(parts) > sum(by_rows):
        assert total == leaves_min


@given(
    rows=st.lists(st.integers(1, 100), min_size=1, max_size=30),
    parts=st.integers(1, 40),
)
def test_cuts_are_chosen_among_begins_of_files(rows: list[int], parts: int) -> None:
    below = [sum(rows[:index]) for index in range(len(rows))]
    candidates = [(bytes([index]), below[index]) for index in range(1, len(rows))]
    cuts = chosen_cuts(candidates, sum(rows), parts)
    assert list(cuts) == sorted(set(cuts))
    assert set(cuts) <= {key for key, _ in candidates}
    assert len(cuts) == min(parts - 1, len(candidates))


@settings(max_examples=50)
@given(
    exponent=st.floats(1.0, 6.0),
    runs=st.integers(1, 12),
    parts=st.integers(2, 30),
    number=st.integers(0, 2**32),
)
def test_no_leaf_of_skewed_keys_gets_twice_the_mean(
    exponent: float, runs: int, parts: int, number: int
) -> None:
    seed = random.Random(number)
    schema = Schema(row_keys=FIELDS.row_keys)
    numbers = {int(seed.random() ** exponent * 2**40) for _ in range(4_000)}
    keys = [encode_key(schema.row_keys, (number % 3, number)) for number in numbers]
    cut = [sorted_run(f"{n}", keys[n::runs], ()) for n in range(runs)]
    (weights,) = weights_by_key_range(cut, 1)
    leaf = FilledLeaf(PartitionId(1), EVERYTHING, 0, Load(0, len(keys)))
    targets = targets_of(leaf, weights, (), parts, schema.row_keys)
    counts = [sum(target.key_range.contains(key) for key in keys) for target in targets]
    assert sum(counts) == len(keys)
    assert max(counts) <= 2 * len(keys) / len(targets)


FIELDS = tables.schema_of(row_keys={"a": "int32", "b": "int64"})


@given(drawn=loads(), data=st.data())
def test_no_cut_makes_a_leaf_that_can_hold_no_key(
    drawn: tuple[Schema, list[StoredRun], list[bytes]], data: st.DataObject
) -> None:
    schema, _, keys = drawn
    distinct = sorted(set(keys))
    low, high = sorted(data.draw(st.tuples(st.sampled_from(distinct), st.sampled_from(distinct))))
    within = KeyRange(low, None if low == high else high)
    cuts = allowed_cuts(distinct, within, schema.row_keys)
    for before, cut in pairwise((low, *cuts)):
        assert before < cut
        assert least_key(schema.row_keys, before) < cut
        assert within.contains(cut)
