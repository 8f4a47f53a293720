"""Files of which several leaves had a part, and one leaf has the last."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakebed
from lakebed.backends.memory import VirtualClock
from lakebed.bootstrap.local import open_local
from lakebed.lake import Lake
from lakebed.model.names import FileName, JobId, TransactionNumber, file_name, is_shared
from lakebed.model.paths import file_path
from lakebed.statestore.log_entries.codec import decode_entry
from lakebed.statestore.log_entries.file_changes import ReplaceFiles
from lakebed.table import Table

SCHEMA = lakebed.schema_of(row_keys={"k": "int64"})
DAY = 86_400


class Place:
    """A lake on a clock of its own, with a table that merges two files of like sizes."""

    def __init__(self, folder: Path) -> None:
        self.clock = VirtualClock()
        self.folder = folder
        self.lake = Lake(open_local(folder, clock=self.clock))

    def given_table(self, *points: int) -> Table:
        settings = {"job_files_max": 2, "size_ratio": 1, "shared_file_rows_max": 50_000}
        return self.lake.create_table("t", SCHEMA, split_points=points, settings=settings)

    def when_days_have_passed(self, days: int) -> None:
        """Nobody commits meanwhile: the clock is told, and believed ten minutes later."""
        self.clock.advance(days * DAY)
        self.lake.run()
        self.clock.advance(700)
        self.lake.run()

    def parts(self, table: Table) -> list[tuple[int, int]]:
        """Return of each file of each leaf, in key order, the leaf's rows and the file's own."""
        with table._opened.head.reading() as state:
            found = [r for leaf in state.tree().leaves() for r, _ in state.references(leaf)]
        return [(r.rows, self._rows_in(table, r.file.name)) for r in found]

    def _rows_in(self, table: Table, name: FileName) -> int:
        path = self.folder / "objects" / file_path(table._opened.id, name)
        return pq.read_metadata(path).num_rows


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path / "lake")
    with place.lake:
        yield place


def rows(start: int, end: int) -> pa.Table:
    return pa.table({"k": pa.array(range(start, end), pa.int64())})


def entries(table: Table) -> int:
    return table.log().entries[-1].number


def merges_of(table: Table) -> int:
    """Return how many merges were committed, ever."""
    bodies = table._opened.head._log.read_after(TransactionNumber(0))
    done = [t for number, body in bodies for t in decode_entry(body, number).transactions]
    return sum(isinstance(change, ReplaceFiles) for t in done for change in t.changes)


def test_the_last_part_of_a_file_that_an_ingest_shared_is_made_whole_by_compact(
    place: Place,
) -> None:
    table = place.given_table(30, 60)
    table.ingest(rows(0, 90))
    table.compact()
    assert place.parts(table) == [(30, 90)] * 3  # all of the file is in use

    table.ingest(rows(0, 60))
    table.compact()
    assert place.parts(table) == [(60, 60), (60, 60), (30, 30)]
    number = entries(table)
    table.compact()
    assert entries(table) == number
    assert table.query().read_all().num_rows == 150


def test_a_small_last_part_is_rewritten_by_schedule_when_a_day_has_passed(place: Place) -> None:
    table = place.given_table(1_000)
    table.ingest(rows(0, 10_000))
    table.ingest(rows(1_000, 10_000))
    place.lake.run()
    assert place.parts(table) == [(1_000, 10_000), (18_000, 18_000)]

    place.when_days_have_passed(3)
    assert place.parts(table) == [(1_000, 1_000), (18_000, 18_000)]
    merges = merges_of(table)
    place.when_days_have_passed(3)
    assert merges_of(table) == merges
    assert table.query().read_all().num_rows == 19_000


def test_a_last_part_that_is_most_of_its_file_waits_for_compact(place: Place) -> None:
    table = place.given_table(1_000)
    table.ingest(rows(0, 10_000))
    table.ingest(rows(0, 1_000))
    place.lake.run()
    place.when_days_have_passed(3)
    assert place.parts(table) == [(2_000, 2_000), (9_000, 10_000)]
    table.compact()
    assert place.parts(table) == [(2_000, 2_000), (9_000, 9_000)]


def test_small_last_parts_of_a_leaf_are_one_job(place: Place) -> None:
    table = place.given_table(1_000)
    table.change_settings(job_files_max=3, size_ratio=2)  # two files are left as they are
    for _ in range(2):
        table.ingest(rows(0, 10_000))
    table.ingest(rows(1_000, 10_000))
    place.lake.run()
    assert place.parts(table) == [(1_000, 10_000)] * 2 + [(27_000, 27_000)]
    merges = merges_of(table)
    place.when_days_have_passed(3)
    assert place.parts(table) == [(2_000, 2_000), (27_000, 27_000)]
    assert merges_of(table) == merges + 1


def test_a_name_tells_whether_its_file_was_written_for_several_leaves() -> None:
    def name(*, shared: bool) -> FileName:
        base, job = TransactionNumber(7), JobId("j")
        return file_name(base=base, job=job, run=1, sequence=5, shared=shared)

    assert [is_shared(name(shared=shared)) for shared in (False, True)] == [False, True]
    assert name(shared=False) != name(shared=True)
