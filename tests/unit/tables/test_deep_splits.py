"""Leaves that the first row key cannot split are split by the next ones, several at once; one
that cannot be split says so (H22)."""

from typing import Any

import pyarrow as pa
import pytest

import lakebed

SCHEMA = lakebed.schema_of(row_keys={"carrier": "string", "flight": "int32"}, values={"n": "int64"})
Row = dict[str, Any]


def rows(carrier: str, flights: range) -> list[Row]:
    return [{"carrier": carrier, "flight": f, "n": place} for place, f in enumerate(flights)]


def made(lake: lakebed.Lake, given: list[Row], **settings: object) -> lakebed.Table:
    table = lake.create_table("t", SCHEMA, settings=settings)
    table.ingest(pa.Table.from_pylist(given, schema=table.arrow_schema))
    return table


def leaves(lake: lakebed.Lake) -> list[tuple[str, str | None, str | None, int]]:
    (status,) = lake.status("t")
    return [(n.field, n.min, n.max, n.rows) for n in status.nodes if n.left is None]


def test_a_leaf_of_one_first_key_is_split_on_the_second(lake: lakebed.Lake) -> None:
    given = rows("UA", range(120))
    table = made(lake, given, leaf_rows_max=100)
    lake.run()
    assert leaves(lake) == [
        ("carrier,flight", None, "UA,60", 60),
        ("carrier,flight", "UA,60", None, 60),
    ]
    assert table.query().read_all().to_pylist() == given
    assert lake.fsck(deep=True).findings == ()


def test_a_leaf_that_is_far_too_big_becomes_many_at_once(lake: lakebed.Lake) -> None:
    given = [*rows("AA", range(5)), *rows("UA", range(790)), *rows("VX", range(5))]
    table = made(lake, given, leaf_rows_max=100)
    assert lake.run().leaves_split == 1
    sizes = [size for *_, size in leaves(lake)]
    assert len(sizes) == 15
    assert sum(sizes) == 800
    assert max(sizes) <= 100
    assert table.query().read_all().to_pylist() == given


def test_a_leaf_of_one_whole_key_is_remembered_and_not_asked_again(lake: lakebed.Lake) -> None:
    table = made(lake, rows("UA", range(5, 6)) * 120, leaf_rows_max=100)
    assert lake.run().leaves_split == 0
    (status,) = lake.status("t")
    assert status.nodes[0].unsplittable
    table.ingest(pa.Table.from_pylist(rows("UA", range(7, 8)) * 200, schema=table.arrow_schema))
    assert lake.run().leaves_split == 1
    assert [(n[1], n[2]) for n in leaves(lake)] == [(None, "UA,7"), ("UA,7", None)]


def test_a_query_by_the_second_field_reads_only_leaves_that_may_hold_it(
    lake: lakebed.Lake,
) -> None:
    given = rows("UA", range(800))
    table = made(lake, given, leaf_rows_max=100)
    lake.run()
    table.compact()
    for asked, wanted in (
        ({"flight": (300, 310)}, range(300, 310)),
        ({"carrier": ("A", "Z"), "flight": (300, 310)}, range(300, 310)),
        ({"flight": (None, 3)}, range(3)),
    ):
        assert table.query(ranges=asked).read_all().to_pylist() == [
            row for row in given if row["flight"] in wanted
        ]
        told = table.explain(ranges=asked)
        assert (told.leaves, told.files) == (15, 15)
        assert told.leaves_reached <= 3
        assert told.files_matching == 1
    assert table.explain(keys=[("UA", 5)]).files_matching == 1
    assert table.explain(ranges={"flight": (5_000, None)}).files_matching == 0


def test_a_table_may_begin_with_points_of_several_fields(lake: lakebed.Lake) -> None:
    points = [("AA",), ("UA", 50), "VX"]
    table = lake.create_table("t", SCHEMA, split_points=points)
    given = [*rows("AA", range(3)), *rows("UA", range(49, 52)), *rows("VX", range(2))]
    table.ingest(pa.Table.from_pylist(given, schema=table.arrow_schema))
    assert [size for *_, size in leaves(lake)] == [0, 4, 2, 2]
    assert table.query().read_all().to_pylist() == given


@pytest.mark.parametrize("shared", [0, 1_000])
def test_splits_go_on_while_rows_come(lake: lakebed.Lake, shared: int) -> None:
    table = lake.create_table(
        "t",
        SCHEMA,
        settings={"leaf_rows_max": 30, "shared_file_rows_max": shared, "job_files_max": 4},
    )
    every: list[Row] = []
    for turn in range(6):
        given = [*rows("UA", range(turn, 60, 6)), *rows("VX" if turn % 2 else "AA", range(4))]
        table.ingest(pa.Table.from_pylist(given, schema=table.arrow_schema))
        every += given
        lake.run()
    found = table.query().read_all().to_pylist()
    assert sorted(map(repr, found)) == sorted(map(repr, every))
    assert [(r["carrier"], r["flight"]) for r in found] == sorted(
        (r["carrier"], r["flight"]) for r in every
    )
    assert len(leaves(lake)) > 2
    assert lake.fsck(deep=True).findings == ()
