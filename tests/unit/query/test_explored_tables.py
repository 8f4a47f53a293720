"""Rows by lot, files for other programs, and DuckDB: what people expect of a table at hand."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakebed
from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.backends.memory import MemoryObjectStore, VirtualClock
from lakebed.errors import CorruptError, InvalidError, QueryTooLargeError, VersionExpiredError
from lakebed.lake import Lake
from lakebed.model.versions import time_of
from lakebed.query import sample_rows
from lakebed.sorted_files.format import row_groups
from lakebed.sorted_files.parquet_files import ParquetFiles
from lakebed.table import Table

SCHEMA = lakebed.schema_of(row_keys={"id": "int64"}, values={"n": "int64", "text": "string?"})
SMALL = {"shared_file_rows_max": 100, "leaf_rows_max": 1_000, "job_files_max": 100}


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with lakebed.connect(tmp_path / "lake") as lake:
        yield lake


@pytest.fixture(autouse=True)
def drawn_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_rows, "READ_WHOLE_ROWS", 50)


def rows(ids: range) -> pa.Table:
    texts = [None if i % 3 == 0 else f"text {i}" for i in ids]
    return pa.table({"id": list(ids), "n": [i % 10 for i in ids], "text": texts})


def refuse_to_read_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: object) -> Iterator[pa.RecordBatch]:
        raise AssertionError("the whole table was read")

    monkeypatch.setattr(ParquetFiles, "read", read)


def cut_table(lake: Lake) -> Table:
    """Return a table of files that leaves share, and that a split has cut."""
    table = lake.create_table("cut", SCHEMA, split_points=[1_500], settings=SMALL)
    for first in range(4):
        table.ingest(rows(range(first, 4_000, 4)))
    lake._app.split_leaves.run(table._opened)
    assert len([node for node in lake.status("cut")[0].nodes if node.left is None]) > 2
    return table


def bag(table: pa.Table) -> Counter[tuple[object, ...]]:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.mark.parametrize("wanted", [0, 1, 7, 128, 300])
def test_a_sample_is_so_many_rows_of_the_table(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, wanted: int
) -> None:
    table = cut_table(lake)
    all_rows = bag(table.to_arrow())
    refuse_to_read_all(monkeypatch)
    found = table.sample(wanted, seed=5)
    assert found.schema == table.arrow_schema
    assert found.num_rows == wanted
    assert not bag(found) - all_rows
    assert bag(found) == bag(table.sample(wanted, seed=5))
    if wanted:
        assert bag(found) != bag(table.sample(wanted, seed=6))


def test_all_rows_where_there_are_fewer(lake: Lake) -> None:
    table = lake.create_table("t", SCHEMA)
    assert table.sample(5).num_rows == 0
    table.ingest(rows(range(40)))
    assert bag(table.sample(100)) == bag(table.to_arrow())
    assert table.sample(7).num_rows == 7


def test_each_row_has_the_same_chance(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lake.create_table("t", SCHEMA, split_points=[130, 700])
    for ids in (range(600), range(600, 650), range(650, 900)):
        table.ingest(rows(ids))
    for reading_all in (False, True):
        monkeypatch.setattr(sample_rows, "READ_WHOLE_ROWS", 10**9 if reading_all else 50)
        tallies = Counter[int]()
        for seed in range(400):
            tallies.update(table.sample(20, seed=seed)["id"].to_pylist())
        by_tenth = np.add.reduceat([tallies[i] for i in range(900)], range(0, 900, 90))
        assert by_tenth.sum() == 8_000
        assert 650 < by_tenth.min() <= by_tenth.max() < 950, "800 each, five standard deviations"


def test_few_row_groups_are_read(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_groups, "ROW_GROUP_ROWS_MAX", 100)
    table = lake.create_table("t", SCHEMA)
    table.ingest(rows(range(5_000)))
    whole = table.explain(keys=[0]).row_groups
    read: list[object] = []
    original = ParquetFiles.draw

    def draw(*given: object, **named: object) -> Iterator[pa.RecordBatch]:
        batches = list(original(*given, **named))  # type: ignore[arg-type]  # as it is
        read.extend(batches)
        yield from batches

    monkeypatch.setattr(ParquetFiles, "draw", draw)
    assert table.sample(3, seed=1).num_rows == 3
    assert len(read) <= 3 < whole


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_sample_reads_no_more_than_its_table_allows(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, *, is_cut: bool
) -> None:
    monkeypatch.setattr(row_groups, "ROW_GROUP_ROWS_MAX", 100)
    table = lake.create_table("t", SCHEMA, split_points=[1_050] if is_cut else [])
    table.ingest(rows(range(5_000)))
    refuse_to_read_all(monkeypatch)
    bytes_read, read = 0, LocalObjectStore.read

    def counted(store: LocalObjectStore, path: str, ranges: Sequence[tuple[int, int]]) -> object:
        nonlocal bytes_read
        bytes_read += sum(end - start for start, end in ranges)
        return read(store, path, ranges)

    monkeypatch.setattr(LocalObjectStore, "read", counted)
    for cap in (1, 100_000):
        table.change_settings(scan_bytes_max=cap)
        bytes_read = 0
        with pytest.raises(QueryTooLargeError, match="reads more bytes than it may") as raised:
            table.sample(450, seed=1)
        assert raised.value.facts["table"] == "t"
        assert raised.value.hint == "draw fewer rows, or raise the table's scan_bytes_max"
        assert bytes_read <= cap
    assert bytes_read, f"{cap} bytes are enough to begin with"
    assert table.sample(1, seed=1).num_rows == 1
    table.change_settings(scan_bytes_max=1 << 30)
    assert table.sample(450, seed=1).num_rows == 450


def test_rows_that_are_left_out_are_not_drawn(lake: Lake) -> None:
    table = lake.create_table("t", SCHEMA)
    table.ingest(rows(range(1_000)))
    table.change_processing(lakebed.Processing(filter=lakebed.field("n") == 3))
    kept = bag(table.to_arrow())
    for wanted in (5, 60, 100, 200):
        found = table.sample(wanted, seed=wanted)
        assert found.num_rows == min(wanted, 100)
        assert not bag(found) - kept


def test_rows_that_are_merged_are_drawn_as_they_are_read(lake: Lake) -> None:
    processing = lakebed.Processing(aggregate={"n": "sum", "text": "max"})
    table = lake.create_table("t", SCHEMA, processing=processing)
    for _ in range(2):
        table.ingest(rows(range(300)))
    found = table.sample(30)
    assert found.num_rows == 30
    assert not bag(found) - bag(table.to_arrow())


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "5", None])
def test_what_is_no_sample_is_refused(lake: Lake, wrong: object) -> None:
    table = lake.create_table("t", SCHEMA)
    with pytest.raises(InvalidError, match="not a number of rows"):
        table.sample(wrong)  # type: ignore[arg-type]  # it is refused
    if wrong is not None:
        with pytest.raises(InvalidError, match="not a seed"):
            table.sample(1, seed=wrong)  # type: ignore[arg-type]  # it is refused


def test_a_version_that_was_collected_is_told(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lake.create_table("t", SCHEMA, settings={"garbage_seconds_min": 0})
    for start in (0, 1_000):
        table.ingest(rows(range(start, start + 1_000)))
    original = ParquetFiles.draw

    def draw(*given: object, **named: object) -> Iterator[pa.RecordBatch]:
        table.compact()
        lake.run()
        return original(*given, **named)  # type: ignore[arg-type]  # as it is

    monkeypatch.setattr(ParquetFiles, "draw", draw)
    with pytest.raises(VersionExpiredError, match="run the query again"):
        table.sample(1)


def test_a_file_that_is_missing_is_damage(lake: Lake) -> None:
    table = lake.create_table("t", SCHEMA)
    table.ingest(rows(range(1_000)))
    (file,) = table.files()
    Path(file.path).unlink()
    with pytest.raises(CorruptError, match="a file of the table is missing"):
        table.sample(1)


def test_files_say_what_is_whose(lake: Lake) -> None:
    table = lake.create_table("t", SCHEMA, split_points=[100, 5_000], settings=SMALL)
    table.ingest(rows(range(10, 160)))
    first, second = table.files()
    assert (first.path, first.whole, second.whole) == (second.path, False, False)
    assert [(f.min, f.max, f.rows, f.exact) for f in (first, second)] == [
        (None, (100,), 90, True),
        ((100,), (5_000,), 60, True),
    ]
    assert first.bytes + second.bytes <= Path(first.path).stat().st_size
    table.ingest(rows(range(200, 2_000)))
    (other,) = [file for file in table.files() if file.path != first.path]
    assert (other.whole, other.rows, other.bytes) == (True, 1_800, Path(other.path).stat().st_size)


def test_what_is_left_of_a_shared_file_is_not_whole(lake: Lake) -> None:
    table = lake.create_table("t", SCHEMA, split_points=[100], settings=SMALL)
    table.ingest(rows(range(10, 160)))
    shared = table.files()[0].path
    with table._opened.head.reading() as state:
        leaf = next(iter(state.leaf_figures())).partition
        (name,) = [reference.file.name for reference, _ in state.references(leaf)]
    from lakebed.model.names import JobId
    from lakebed.statestore.log_entries.file_changes import ClaimFiles
    from lakebed.statestore.open_table import start_of

    with table._opened.head.reading() as state:
        start = start_of(state)
    claim = ClaimFiles(JobId("j"), leaf, (name,))
    table._opened.head.commit(table._opened.own(start, claim))
    assert lake._app.run_job.run(table._opened, JobId("j"))
    (rest,) = [file for file in table.files() if file.path == shared]
    assert not rest.whole


def test_an_older_version_is_looked_at(lake: Lake) -> None:
    table = lake.create_table("t", SCHEMA, settings={"garbage_seconds_min": 0})
    first = table.ingest(rows(range(10))).number
    table.tag("q3", as_of=first)
    old = table.files()
    table.ingest(rows(range(10, 500)))
    table.compact()
    lake.run()
    at = lake._app.clock.now()
    for as_of in (first, str(first), "q3"):
        assert table.head(3, as_of=as_of)["id"].to_pylist() == [0, 1, 2]
        assert table.head(99, as_of=as_of).num_rows == 10
        assert sorted(table.sample(99, as_of=as_of)["id"].to_pylist()) == list(range(10))
        assert table.sample(4, as_of=as_of).num_rows == 4
        assert table.files(as_of=as_of) == old != table.files()
        assert sum(pq.read_metadata(f.path).num_rows for f in table.files(as_of=as_of)) == 10
    assert table.files(as_of=time_of(at)) == table.files()
    assert table.head(99, as_of=time_of(at)).num_rows == 99


def test_rows_of_an_older_version_are_drawn(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lake.create_table("t", SCHEMA)
    first = table.ingest(rows(range(1_000))).number
    table.ingest(rows(range(1_000, 2_000)))
    refuse_to_read_all(monkeypatch)
    assert max(table.sample(90, seed=1, as_of=first)["id"].to_pylist()) < 1_000
    assert max(table.sample(90, seed=1)["id"].to_pylist()) >= 1_000


def test_a_version_that_cannot_be_looked_at_is_refused(lake: Lake) -> None:
    table = lake.create_table("t", SCHEMA, settings={"garbage_seconds_min": 0})
    first = table.ingest(rows(range(10))).number
    table.ingest(rows(range(10, 20)))
    table.compact()
    lake.run()
    for look in (table.head, partial(table.sample, 3), table.files):
        with pytest.raises(InvalidError, match="the version lies ahead"):
            look(as_of=99)
        with pytest.raises(InvalidError, match="no such tag"):
            look(as_of="thn")
        with pytest.raises(VersionExpiredError, match="the oldest that can still be read"):
            look(as_of=first)


def test_files_of_a_store_of_the_program_have_no_address(tmp_path: Path) -> None:
    with lakebed.connect(tmp_path / "lake", objects=MemoryObjectStore(VirtualClock())) as lake:
        table = lake.create_table("t", SCHEMA)
        with pytest.raises(InvalidError, match="have no address"):
            table.files()


def test_a_relation_of_duckdb_asks_anew_each_time(lake: Lake) -> None:
    table = lake.create_table("t", SCHEMA)
    table.ingest(rows(range(10)))
    relation = table.to_duckdb()
    assert relation.aggregate("count(*)").fetchall() == [(10,)]
    table.ingest(rows(range(10, 15)))
    assert relation.aggregate("count(*)").fetchall() == [(15,)]
    with duckdb.connect() as connection:
        few = table.to_duckdb(connection, keys=[3, 4], columns=["n"])
        few.create_view("few")
        assert connection.sql("SELECT sum(n) FROM few").fetchall() == [(7,)]
    with pytest.raises(InvalidError, match="no such field"):
        table.to_duckdb(columns=["m"])


def test_duckdb_that_is_not_installed_is_named(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    with pytest.raises(InvalidError, match=r"pip install 'lakebed\[sql\]'"):
        lake.create_table("t", SCHEMA).to_duckdb()
