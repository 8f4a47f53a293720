"""The files of a table, read by plain pyarrow inside of their ranges, are exactly its rows."""

import datetime
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lakebed
from lakebed.table import Table
from tests.properties.test_queries import IN_MEMORY, SETTINGS

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
TEXTS = ["", "\x00", "a", "a\x00", "b", "\U0001f600", "p" * 30, "p" * 30 + "q"]
NAMES = ("id", "at", "raw", "n")
ACTIONS = ("ingest", "ingest", "split", "compact", "merge", "run")
SCHEMA = lakebed.schema_of(
    row_keys={"id": "string", "at": "timestamp[us, UTC]"},
    sort_keys={"raw": "binary"},
    values={"n": "int64"},
)
ROWS = st.lists(
    st.tuples(
        st.sampled_from(TEXTS),
        st.sampled_from([-(10**15), -1, 0, 1, 10**15]),
        st.sampled_from([b"", b"\x00", b"\xff"]),
        st.integers(0, 9),
    ),
    min_size=1,
    max_size=12,
)


def read_by_others(table: Table) -> list[tuple[object, ...]]:
    """Read all parts as a program would that knows Parquet and nothing of Lakebed."""
    found = []
    for file in table.files():
        stored = pq.read_table(file.path)
        columns = [plain(stored.column(name)) for name in NAMES]
        own = [
            row
            for row in zip(*columns, strict=True)
            if file.whole or lies_in(row[:2], file.min, file.max)
        ]
        assert len(own) == file.rows or not file.exact
        found += own
    return found


def plain(column: pa.ChunkedArray) -> list[object]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    return list(column.to_pylist())


def lies_in(
    key: Sequence[object], least: tuple[object, ...] | None, end: tuple[object, ...] | None
) -> bool:
    above = least is None or in_order(key[: len(least)]) >= in_order(least)
    return above and (end is None or in_order(key[: len(end)]) < in_order(end))


def in_order(key: Sequence[object]) -> tuple[object, ...]:
    return tuple(part.encode() if isinstance(part, str) else part for part in key)


@settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data())
def test_files_are_the_rows_of_a_table(data: st.DataObject) -> None:
    with (
        tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder,
        lakebed.connect(Path(folder, "lake")) as lake,
    ):
        files_max = data.draw(st.sampled_from([0, 5, 1_000]))
        options = SETTINGS | {"shared_file_rows_max": files_max}
        points = data.draw(st.sampled_from([[], ["a"], ["a", "p" * 30]]))
        table = lake.create_table("t", SCHEMA, split_points=points, settings=options)
        rows: list[tuple[object, ...]] = []
        for action in data.draw(st.lists(st.sampled_from(ACTIONS), min_size=2, max_size=10)):
            match action:
                case "ingest":
                    some = data.draw(ROWS)
                    columns = dict(
                        zip(("id", "at", "raw", "n"), zip(*some, strict=True), strict=True)
                    )
                    at = pa.array(columns.pop("at"), pa.int64()).cast(pa.timestamp("us", "UTC"))
                    table.ingest(pa.table({**columns, "at": at}))
                    rows += some
                case "split":
                    lake._app.split_leaves.run(table._opened)
                case "compact":
                    lake._app.create_jobs.run(table._opened, everything=data.draw(st.booleans()))
                case "merge":
                    with table._opened.head.reading() as state:
                        jobs = state.jobs()
                    for job in jobs[:1]:
                        lake._app.run_job.run(table._opened, job.id)
                case _:
                    lake.run()
            assert Counter(read_by_others(table)) == Counter(rows)
            assert table.count() == len(rows)
            drawn = table.sample(3, seed=data.draw(st.integers(0, 5)))
            assert drawn.num_rows == min(3, len(rows))
            columns = [plain(drawn.column(name)) for name in NAMES]
            assert not Counter(zip(*columns, strict=True)) - Counter(rows)
