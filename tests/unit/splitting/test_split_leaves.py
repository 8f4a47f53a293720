import random
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.config.settings import table_settings
from lakebed.errors import InvalidError
from lakebed.model.keys import encode_key
from lakebed.model.partitions import ROOT
from lakebed.model.samples import Sample, split_points
from lakebed.splitting.split_leaves import is_due, rows_with_room
from lakebed.statestore.log_entries.table_changes import Split
from lakebed.statestore.open_table import OpenTable, start_of

SCHEMA = lakebed.schema_of(row_keys={"k": "int64"})
KEYS = SCHEMA.row_keys
MIB = 1 << 20


def point(key: int) -> bytes:
    return encode_key(KEYS, (key,))


def split(table: OpenTable, *points: bytes) -> None:
    """Split the root, its rows shared out evenly: nothing is known of where they lie."""
    with table.head.reading() as state:
        start = start_of(state)
    table.head.commit(table.own(start, Split(ROOT, points)))


def rows_estimated(table: OpenTable) -> list[int]:
    """Return what the state thinks each leaf holds, in key order."""
    with table.head.reading() as state:
        figures = {leaf.partition: leaf.rows for leaf in state.leaf_figures()}
        return [figures[leaf] for leaf in state.tree().leaves()]


def test_a_leaf_is_split_by_the_rows_that_its_samples_tell(tmp_path: Path) -> None:
    with lakebed.connect(tmp_path) as lake:
        made = lake.create_table("t", SCHEMA, settings={"leaf_rows_max": 40})
        made.ingest(pa.table({"k": pa.array(range(100), pa.int64())}))
        table = made._opened
        split(table, point(90))
        assert rows_estimated(table) == [50, 50]  # and it is 90 and 10

        assert lake._app.split_leaves.run(table) == 1
        estimated = rows_estimated(table)
        assert estimated[-1] == 50
        assert len(estimated) == 5  # of 90 rows, with about half of the limit each

        assert lake._app.split_leaves.run(table) == 0
        assert made.query().read_all().num_rows == 100


def test_a_split_leaves_no_leaf_that_no_key_reaches(tmp_path: Path) -> None:
    with lakebed.connect(tmp_path) as lake:
        made = lake.create_table("t", SCHEMA)
        with pytest.raises(InvalidError, match="no key lies below a split point"):
            split(made._opened, point(-(2**63)))
        split(made._opened, point(-(2**63) + 1))


def test_the_least_key_is_no_split_point_of_samples() -> None:
    least = Sample(tuple(point(key) for key in [-(2**63)] * 9 + [5]), 1, 10)
    assert split_points([least], 4, KEYS) == (point(5),)
    assert split_points([Sample((point(-(2**63)),) * 9, 1, 9)], 4, KEYS) == ()


def test_the_last_part_of_a_file_is_made_whole_by_compact(tmp_path: Path) -> None:
    with lakebed.connect(tmp_path) as lake:
        made = lake.create_table("t", SCHEMA)
        made.ingest(pa.table({"k": pa.array(range(100), pa.int64())}))
        table = made._opened
        split(table, point(90))
        made.compact()
        assert parts(table) == [("shared", False), ("shared", False)]  # all of the file is in use

        made.ingest(pa.table({"k": pa.array([5], pa.int64())}))
        made.compact()
        assert parts(table) == [("own", True), ("own", True)]
        assert rows_estimated(table) == [91, 10]
        number = made.log().entries[-1].number
        made.compact()
        assert made.log().entries[-1].number == number
        assert made.query().read_all().num_rows == 101


def parts(table: OpenTable) -> list[tuple[str, bool]]:
    """Return of each file of each leaf whether others share it, and whether its rows are known."""
    with table.head.reading() as state:
        return [
            ("own" if len(state.references_of(r.file.name)) == 1 else "shared", r.exact)
            for r in state.all_references()
        ]


WIDE = lakebed.schema_of(row_keys={"k": "int64"}, values={"body": "binary"})


def wide_rows(keys: range) -> pa.Table:
    """Return rows of 10 KB each, which nothing makes smaller."""
    bodies = [random.Random(key).randbytes(10_000) for key in keys]
    return pa.table({"k": pa.array(keys, pa.int64()), "body": pa.array(bodies, pa.binary())})


def test_a_leaf_is_split_by_its_bytes_however_few_its_rows(tmp_path: Path) -> None:
    with lakebed.connect(tmp_path) as lake:
        made = lake.create_table("t", WIDE, settings={"leaf_bytes_max": MIB})
        table = made._opened
        made.ingest(wide_rows(range(100)))
        assert lake._app.split_leaves.run(table) == 0  # 1.0 MB, as large as a leaf may be

        made.ingest(wide_rows(range(100, 300)))
        assert lake._app.split_leaves.run(table) == 1
        assert len(rows_estimated(table)) == 5  # of 3.0 MB, with about half of the limit each


def test_a_leaf_with_a_part_of_a_large_object_is_not_asked_again(tmp_path: Path) -> None:
    """Else tails are read each minute until compaction wrote a file for the leaf alone."""
    with lakebed.connect(tmp_path) as lake:
        made = lake.create_table("t", WIDE, settings={"leaf_bytes_max": MIB})
        table = made._opened
        made.ingest(wide_rows(range(300)))
        assert lake._app.split_leaves.run(table) == 1
        assert leaves_due(table) == 0  # each refers to all 3.0 MB
        assert lake._app.split_leaves.run(table) == 0


def leaves_due(table: OpenTable) -> int:
    with table.head.reading() as state:
        return sum(is_due(state, leaf, state.settings()) for leaf in state.leaf_figures())


def test_a_leaf_that_only_looks_large_is_left_as_its_tails_tell(tmp_path: Path) -> None:
    with lakebed.connect(tmp_path) as lake:
        made = lake.create_table("t", WIDE, settings={"leaf_bytes_max": MIB})
        table = made._opened
        made.ingest(wide_rows(range(300)))
        split(table, point(290))
        assert leaves_due(table) == 2  # 150 rows each, it thinks, and it is 290 and 10
        assert lake._app.split_leaves.run(table) == 1
        assert rows_estimated(table)[-1] == 150


def test_a_leaf_of_one_key_is_not_asked_again_for_its_bytes(tmp_path: Path) -> None:
    with lakebed.connect(tmp_path) as lake:
        made = lake.create_table("t", WIDE, settings={"leaf_bytes_max": MIB})
        table = made._opened
        same = wide_rows(range(200)).set_column(0, "k", pa.array([7] * 200, pa.int64()))
        made.ingest(same)
        assert lake._app.split_leaves.run(table) == 0
        assert leaves_due(table) == 0
        with table.head.reading() as state:
            assert [leaf.rows_unsplittable for leaf in state.leaf_figures()] == [200]


@pytest.mark.parametrize(
    ("rows", "size", "may_hold"),
    [
        (10, 10 * MIB, 1),
        (100, 8 * MIB, 12),
        (100, MIB, 50),  # not too large
        (1_000_000, 2 * MIB, 50),  # too many rows all the more
        (0, 2 * MIB, 1),  # by an estimate
    ],
)
def test_a_leaf_may_hold_the_rows_that_have_room(rows: int, size: int, may_hold: int) -> None:
    settings = table_settings({"leaf_rows_max": 50, "leaf_bytes_max": MIB})
    assert rows_with_room(rows, size, settings) == may_hold
