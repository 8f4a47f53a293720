"""A plan in slices: read one after the other they give its rows, and no key lies in two."""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.backends.memory.clock import VirtualClock
from lakebed.bootstrap.local import open_local
from lakebed.errors import VersionExpiredError
from lakebed.lake import Lake
from lakebed.query.conditions import condition_of
from lakebed.query.run_query import QueryPlan
from lakebed.query.slices import Slice, plan_of_slice, slices_of

SCHEMA = lakebed.schema_of(row_keys={"a": "int64", "b": "string"}, values={"v": "int64"})
ROWS = 4_000
SPLIT_POINTS = [100, 200, 300]


@pytest.fixture
def table(tmp_path: Path) -> Iterator[lakebed.Table]:
    """A table of four leaves; each of two ingests has a file in each."""
    with Lake(open_local(tmp_path / "lake", clock=VirtualClock())) as lake:
        made = lake.create_table(
            "t", SCHEMA, split_points=SPLIT_POINTS, settings={"shared_file_rows_max": 1}
        )
        for first in (0, 1):
            made.ingest(rows_from(first))
        yield made


def rows_from(first: int) -> pa.Table:
    numbers = range(first, ROWS, 2)
    return pa.table(
        {
            "a": [n // 10 for n in numbers],
            "b": [f"{n % 10}" for n in numbers],
            "v": list(numbers),
        }
    )


def planned(table: lakebed.Table, **asked: object) -> QueryPlan:
    return table._app.query.plan(table._opened, partial(condition_of, **asked))


def cut(table: lakebed.Table, plan: QueryPlan, bytes_max: int) -> list[Slice]:
    sample_of = partial(table._app.query.sample, table._opened, plan)
    return list(slices_of(plan, sample_of, bytes_max=bytes_max))


def read(table: lakebed.Table, plan: QueryPlan) -> list[tuple[int, str, int]]:
    batches = table._app.query.read(table._opened, plan)
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def size_of(plan: QueryPlan) -> int:
    return sum(part.file.size for leaf in plan.leaves for part in leaf)


@pytest.mark.parametrize("pieces", [1, 2, 3, 4, 9, 40, 1_000])
@pytest.mark.parametrize(
    "asked", [{}, {"ranges": {"a": (50, 350), "b": ("2", "7")}}, {"keys": [(7,), (399, "9")]}]
)
def test_slices_in_their_order_give_the_rows_of_the_plan(
    table: lakebed.Table, pieces: int, asked: dict[str, object]
) -> None:
    plan = planned(table, **asked)
    slices = cut(table, plan, max(1, size_of(plan) // pieces))
    assert [one.number for one in slices] == list(range(len(slices)))
    found = [read(table, plan_of_slice(plan, one)) for one in slices]
    assert [row for rows in found for row in rows] == read(table, plan) != []
    for before, after in pairwise(slices):
        assert before.key_range.max is not None
        assert before.key_range.max <= after.key_range.min


def test_a_slice_takes_neighbouring_leaves_until_it_is_full(table: lakebed.Table) -> None:
    plan = planned(table)
    leaf = size_of(plan) // 4
    assert [len(one.leaves) for one in cut(table, plan, 4 * size_of(plan))] == [4]
    assert [len(one.leaves) for one in cut(table, plan, leaf * 5 // 2)] == [2, 2]
    assert [len(one.leaves) for one in cut(table, plan, leaf * 5 // 4)] == [1, 1, 1, 1]


def test_a_leaf_is_cut_only_where_it_is_more_than_two_slices(table: lakebed.Table) -> None:
    plan = planned(table)
    leaf = size_of(plan) // 4
    assert len(cut(table, plan, leaf * 3 // 5)) == 4
    slices = cut(table, plan, leaf * 2 // 5)
    assert len(slices) == 12
    assert max(one.rows for one in slices) < ROWS // 8
    assert sum(one.rows for one in slices) == pytest.approx(ROWS, rel=0.1)


def test_a_file_of_many_leaves_counts_once(tmp_path: Path) -> None:
    with lakebed.connect(tmp_path) as lake:
        made = lake.create_table("t", SCHEMA, split_points=SPLIT_POINTS)
        made.ingest(rows_from(0))
        plan = planned(made)
        (size,) = {part.file.size for leaf in plan.leaves for part in leaf}
        (one,) = cut(made, plan, size)
        assert (one.rows, one.bytes // 4) == (ROWS // 2, size // 4)


def test_nothing_to_read_is_no_slice(table: lakebed.Table) -> None:
    assert cut(table, planned(table, keys=[]), 1) == []


def test_a_sample_of_a_collected_file_says_that_the_version_is_gone(
    table: lakebed.Table,
) -> None:
    plan = planned(table)
    table.compact()
    clock = table._app.clock
    assert isinstance(clock, VirtualClock)
    clock.advance(8 * 86_400)
    lake = Lake(table._app)
    assert lake.run().files_collected == 8
    with pytest.raises(VersionExpiredError):
        cut(table, plan, 1)
