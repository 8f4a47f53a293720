"""Each test is the proof of one row of docs/map.md, and fails when what the row says is taken out:
tests/mutations tries that."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import lakebed
from lakebed.backends.memory.clock import VirtualClock
from lakebed.bootstrap.local import open_local
from lakebed.errors import CorruptError, UnavailableError
from lakebed.lake import Lake
from lakebed.model.shared_files import SHARED_FILE_MULTIPLE, plan_files
from tests.unit.tables.lakes import SCHEMA, ids, rows

HOUR = 3_600
KEYS = [f"{n:04d}" for n in range(400)]
APART = {"compaction_strategy": "basic", "job_files_max": 2, "garbage_seconds_min": HOUR}


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def lake(tmp_path: Path, clock: VirtualClock) -> Iterator[Lake]:
    with Lake(open_local(tmp_path / "lake", clock=clock)) as opened:
        yield opened


def paths(lake: Lake) -> set[Path]:
    """Return the table's files on the disk."""
    return set(Path(lake._app.location).glob("objects/tables/*/files/**/*.parquet"))


def of_two_files(lake: Lake, **settings: object) -> lakebed.Table:
    """Return a table of two files, whose rows take turns."""
    table = lake.create_table("t", SCHEMA, settings=APART | settings)
    table.ingest(rows(KEYS[::2]))
    table.ingest(rows(KEYS[1::2]))
    return table


def create_jobs(lake: Lake, table: lakebed.Table) -> int:
    return lake._app.create_jobs.run(table._opened)


def test_row_30_a_split_reads_samples_and_no_rows(lake: Lake) -> None:
    """All bytes before the tail are overwritten: who reads rows fails."""
    table = of_two_files(lake)
    with table._opened.head.reading() as state:
        files = {r.file.name.hex(): r.file for r in state.all_references()}
    for path in paths(lake):
        body = bytearray(path.read_bytes())
        tail = files[path.stem].tail_offset
        body[4:tail] = b"\0" * (tail - 4)
        path.write_bytes(body)
    table.change_settings(leaf_rows_max=100)
    assert lake._app.split_leaves.run(table._opened) == 1
    assert len(table.split_points) >= 3
    with pytest.raises(CorruptError):
        table.query().read_all()


def test_row_31_a_split_takes_and_doubles_no_row(lake: Lake) -> None:
    table = of_two_files(lake, leaf_rows_max=100)
    before = table.query()
    assert lake._app.split_leaves.run(table._opened) == 1
    assert ids(table) == KEYS
    assert before.read_all()["id"].to_pylist() == KEYS
    for key in KEYS[::40]:
        assert table.query(keys=[key]).read_all()["id"].to_pylist() == [key]
    assert table.compact().jobs_done > 1  # each leaf takes its part of the shared files
    assert (lake.status("t")[0].rows, ids(table)) == (len(KEYS), KEYS)


def test_row_41_a_merge_replaces_its_inputs_in_one_step(lake: Lake) -> None:
    table = of_two_files(lake)
    before = table.query()
    number = lake.status("t")[0].number
    assert table.compact().jobs_done == 1
    (status,) = lake.status("t")
    assert status.number == number + 2, "a claim, and one entry that replaces"
    assert (status.files, status.rows, status.jobs) == (1, len(KEYS), ())
    assert ids(table) == before.read_all()["id"].to_pylist() == KEYS


def test_row_43_inputs_of_a_merge_are_garbage_and_outputs_are_not(lake: Lake) -> None:
    table = of_two_files(lake)
    assert lake.status("t")[0].garbage_files == 0
    table.compact()
    (status,) = lake.status("t")
    assert (status.files, status.garbage_files) == (1, 2)


def test_rows_103_and_104_garbage_is_deleted_after_its_delay_and_not_before(
    lake: Lake, clock: VirtualClock
) -> None:
    table = of_two_files(lake)
    inputs = paths(lake)
    table.compact()
    for seconds in (0, HOUR - 1):
        clock.advance(seconds)
        assert lake.run().files_collected == 0
        assert inputs < paths(lake)
    clock.advance(2)
    assert lake.run().files_collected == 2
    assert not inputs & paths(lake)
    assert len(paths(lake)) == 1
    assert lake.status("t")[0].garbage_files == 0
    assert ids(table) == KEYS


@pytest.mark.parametrize("dies", ["before the objects are deleted", "before the entry"])
def test_row_105_a_collection_that_died_is_ended_by_the_next(
    lake: Lake, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch, dies: str
) -> None:
    table = of_two_files(lake)
    table.compact()
    clock.advance(HOUR + 1)
    collect, opened = lake._app.collect, table._opened

    def die(*_: object) -> None:
        raise UnavailableError("killed")

    with monkeypatch.context() as patch:
        if dies == "before the entry":
            patch.setattr(opened.head, "commit", die)
        else:
            patch.setattr(lake._app.objects, "delete", die)
        with pytest.raises(UnavailableError):
            collect.run(opened)
    assert lake.status("t")[0].garbage_files == 2, "what is not told is not forgotten"
    assert collect.run(opened) == 2
    assert len(paths(lake)) == 1
    assert lake.status("t")[0].garbage_files == 0
    assert ids(table) == KEYS


def test_row_125_a_query_goes_on_while_its_files_are_merged_and_collected(
    lake: Lake, clock: VirtualClock
) -> None:
    table = of_two_files(lake, leaf_rows_max=100)
    reader = table.query()
    lake.run()
    table.compact()
    clock.advance(HOUR - 10)
    lake.run()
    assert lake.status("t")[0].files > 1
    assert reader.read_all()["id"].to_pylist() == KEYS


def test_row_58_small_parts_of_neighbours_share_a_file(lake: Lake) -> None:
    points = KEYS[50::50]
    table = lake.create_table(
        "t", SCHEMA, split_points=points, settings={"shared_file_rows_max": 1_000}
    )
    table.ingest(rows(KEYS))
    (status,) = lake.status("t")
    assert (status.leaves, status.files, len(paths(lake))) == (8, 1, 1)
    assert [node.files for node in status.nodes if node.left is None] == [1] * 8
    assert ids(table) == KEYS
    most = SHARED_FILE_MULTIPLE * 10
    groups = plan_files([9] * 40, shared_file_rows_max=10)
    assert len(groups) > 1
    assert max(9 * len(group) for group in groups) <= most + 9


def test_row_59_a_part_that_is_large_enough_has_its_own_file(lake: Lake) -> None:
    points = KEYS[50::50]
    table = lake.create_table(
        "t", SCHEMA, split_points=points, settings={"shared_file_rows_max": 50}
    )
    table.ingest(rows(KEYS))
    assert len(paths(lake)) == 8
    assert plan_files([10, 10, 500, 10, 0], shared_file_rows_max=100) == [(0, 1), (2,), (3,)]
    assert plan_files([10, 100, 10], shared_file_rows_max=100) == [(0,), (1,), (2,)]


def test_rows_82_and_81_files_of_unlike_size_are_merged_by_basic_and_not_by_size_ratio(
    lake: Lake,
) -> None:
    for name, strategy in (("by_ratio", "size_ratio"), ("by_count", "basic")):
        settings = {"compaction_strategy": strategy, "job_files_max": 4, "size_ratio": 3}
        table = lake.create_table(name, SCHEMA, settings=settings)
        for n in (1, 10, 100, 300):
            table.ingest(rows(KEYS[:n]))
    assert lake.run().jobs_done == 1
    assert {s.name: s.files for s in lake.status()} == {"by_count": 1, "by_ratio": 4}
    for _ in range(3):
        lake.table("by_ratio").ingest(rows(KEYS[:300]))
    assert lake.run().jobs_done == 1, "four alike"


@pytest.mark.parametrize(("of_table", "of_leaf", "expected"), [(3, 9, 3), (99, 1, 4), (99, 2, 8)])
def test_row_84_no_more_jobs_are_created_than_a_table_and_a_leaf_may_have(
    lake: Lake, of_table: int, of_leaf: int, expected: int
) -> None:
    """Four leaves, each with files for four jobs."""
    settings = APART | {
        "table_jobs_max": of_table,
        "leaf_jobs_max": of_leaf,
        "shared_file_rows_max": 1,
    }
    table = lake.create_table("t", SCHEMA, split_points=KEYS[100::100], settings=settings)
    for n in range(8):
        table.ingest(rows(KEYS[n::8]))
    assert create_jobs(lake, table) == expected
    assert create_jobs(lake, table) == 0, "those that run count, too"
    assert len(lake.status("t")[0].jobs) == expected


def test_row_113_a_query_gives_rows_before_it_has_read_the_last_file(lake: Lake) -> None:
    table = lake.create_table("t", SCHEMA, split_points=["5"], settings={"shared_file_rows_max": 1})
    for first in ("1", "9"):
        table.ingest(rows([f"{first}{n:06d}" for n in range(200_000)]))
    last = max(paths(lake), key=lambda path: path.name)
    body = bytearray(last.read_bytes())
    body[4 : len(body) // 2] = b"\0" * (len(body) // 2 - 4)
    last.write_bytes(body)
    reader = table.query()
    assert reader.read_next_batch()["id"][0].as_py() == "1000000"
    with pytest.raises(CorruptError):
        reader.read_all()
