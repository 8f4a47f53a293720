"""Rows that a table's filter or age-off leaves out: they are counted and told, wherever rows come
in."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.backends.local.source_files import LocalSourceFiles
from lakebed.bootstrap.bulk_import import BulkImportApp, Tasks
from lakebed.bootstrap.local import open_local
from lakebed.bootstrap.tasks.ingest_task import ingest_from
from lakebed.ingest.allowed_files import AllowedFiles
from lakebed.lake import Lake
from lakebed.model.names import Micros
from lakebed.ports.job_queue import Received
from lakebed.ports.job_tracker import JobReport
from tests.dsl.in_process_cluster import InProcessCluster

SCHEMA = lakebed.schema_of(row_keys={"id": "string"}, values={"n": "int64"})
POSITIVE = lakebed.Processing(filter=lakebed.field("n") > 0)
SUMS = lakebed.Processing(filter=lakebed.field("id") != "x", aggregate={"n": "sum"})


class Place:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.app = open_local(folder / "lake")
        self.lake = Lake(self.app)
        self.table = self.lake.create_table("t", SCHEMA, processing=POSITIVE)

    def told(self, job: str) -> JobReport:
        return self.table.jobs(job=job)[-1]

    def given_file(self, *rows: tuple[str, int]) -> str:
        path = self.folder / "rows.csv"
        path.write_text("id,n\n" + "".join(f"{key},{n}\n" for key, n in rows), "utf-8")
        return str(path)


def rows(*found: tuple[str, int]) -> pa.Table:
    return pa.table({"id": [key for key, _ in found], "n": [n for _, n in found]})


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    place.app.close()


def test_ingest_tells_what_was_left_out(place: Place) -> None:
    done = place.table.ingest(rows(("a", 1), ("b", -1), ("c", 0)), job="j")
    assert (done.read, done.filtered, done.rows) == (3, 2, 1)
    assert not done.all_left_out
    assert (place.told("j").rows, place.told("j").filtered) == (1, 2)


def test_rows_that_become_one_are_not_left_out(place: Place) -> None:
    sums = place.lake.create_table("sums", SCHEMA, processing=SUMS)
    done = sums.ingest(rows(("a", 1), ("a", 2), ("x", 3)))
    assert (done.read, done.filtered, done.rows) == (3, 1, 1)


def test_a_plain_table_leaves_out_nothing(place: Place) -> None:
    plain = place.lake.create_table("plain", SCHEMA)
    done = plain.ingest(rows(("a", 1), ("a", 2)))
    assert (done.read, done.filtered, done.rows) == (2, 0, 2)
    nothing = plain.ingest(rows())
    assert (nothing.read, nothing.all_left_out) == (0, False)


def test_a_job_whose_rows_are_all_left_out_warns(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "lakebed"):
        place.table.ingest(rows(("a", 1), ("b", -1)))
        assert not caplog.records, "some were taken"
        done = place.table.ingest(rows(("a", -1), ("b", -2)), job="none")
    assert done.all_left_out
    (warning,) = caplog.records
    assert warning.getMessage() == "rows_left_out table=t job=none filtered_count=2"


def test_a_job_that_was_done_before_does_not_warn_again(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    place.table.ingest(rows(("a", -1)), job="none")
    caplog.clear()
    again = place.table.ingest(rows(("a", -1)), job="none")
    assert (again.repeated, again.all_left_out) == (True, False)
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]


def test_a_queued_job_is_told_with_what_was_left_out(place: Place) -> None:
    sent = place.table.ingest(rows(("a", 1), ("b", -1)), job="j", queued=True)
    assert (sent.filtered, place.told("j").event) == (1, "finished")
    place.lake.run()
    report = place.told("j")
    assert (report.event, report.rows, report.filtered) == ("committed", 1, 1)


def test_a_message_tells_what_was_left_out(place: Place) -> None:
    files = AllowedFiles([str(place.folder)], objects=None, local=LocalSourceFiles())
    named = {"table": "t", "files": [place.given_file(("a", 1), ("b", -1))], "id": "j"}
    service = ingest_from(place.app, files)
    done = service.run(Received(json.dumps(named).encode(), "r", 1, sent_at=Micros(1)))
    assert (done.read, done.filtered, place.told("j").filtered) == (2, 1, 1)


def test_a_bulk_import_tells_what_was_left_out(place: Place) -> None:
    path = Path(place.given_file(("a", 1), ("b", -1), ("c", -1)))
    with BulkImportApp(place.folder / "lake") as app:

        def cluster_for(tasks: Tasks) -> InProcessCluster:
            return InProcessCluster(tasks, lambda _s, _n: "done")

        done = app.run("t", [path], cluster_for=cluster_for, job="j")
    assert (done.read, done.filtered, done.rows) == (3, 2, 1)
    assert place.told("j").filtered == 2
