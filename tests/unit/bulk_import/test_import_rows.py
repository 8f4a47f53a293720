"""Bulk import by a cluster in this process: what becomes visible, and what does not."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakebed
from lakebed.backends.memory import MemoryObjectStore
from lakebed.backends.memory.clock import VirtualClock
from lakebed.bootstrap.bulk_import import BulkImportApp, Tasks
from lakebed.bulk_import import plan
from lakebed.errors import (
    CorruptError,
    GenerationError,
    InvalidError,
    JobIdReusedError,
    TableBusyError,
    UnavailableError,
    UnreadableInputError,
)
from lakebed.model.names import is_shared
from lakebed.sorted_files.sorting import stored_runs
from lakebed.tasks.user_jobs import Ingested
from tests.dsl.in_process_cluster import InProcessCluster, OutcomeOf

ROWS = 3_000
SCHEMA = lakebed.schema_of(
    row_keys={"k": "string"}, sort_keys={"n": "int64"}, values={"v": "float64?"}
)


class Place:
    """A lake with a table of four leaves, and files with rows for it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "lake"
        self.input = folder / "input"
        self.input.mkdir()
        self.lake = lakebed.connect(self.path)
        self.table = self.lake.create_table(
            "t", SCHEMA, split_points=["3", "5", "7"], settings={"shared_file_rows_max": 0}
        )
        self.cluster: InProcessCluster | None = None

    def given_files(self, *, files: int = 3) -> pa.Table:
        tables = []
        for file in range(files):
            numbers = range(file, ROWS, files)
            rows = pa.table(
                {
                    "v": pa.array([n / 2 if n % 5 else None for n in numbers], pa.float64()),
                    "n": pa.array(numbers, pa.int64()),
                    "k": [f"{n * 7 % 10}-{n * 31 % 97}" for n in numbers],
                }
            )
            pq.write_table(rows, self.input / f"{file}.parquet", row_group_size=200)
            tables.append(rows)
        return pa.concat_tables(tables)

    def when_imported(
        self, *paths: Path, job: str | None = "j", outcome_of: OutcomeOf = lambda _s, _n: "done"
    ) -> Ingested:
        def cluster_for(tasks: Tasks) -> InProcessCluster:
            self.cluster = InProcessCluster(tasks, outcome_of)
            return self.cluster

        with BulkImportApp(self.path) as app:
            return app.run("t", list(paths) or [self.input], cluster_for=cluster_for, job=job)

    def rows(self) -> pa.Table:
        return self.table.query().read_all()

    def objects(self, kind: str) -> set[str]:
        return {p.name for p in (self.path / "objects").rglob("*") if p.parent.name == kind}

    def files(self) -> set[str]:
        with self.table._opened.head.reading() as state:
            return {f"{reference.file.name.hex()}.parquet" for reference in state.all_references()}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    for name, small in {"SORT_BYTES": 4_000, "SORT_BYTES_MIN": 4_000, "FILE_ROWS": 300}.items():
        monkeypatch.setattr(plan, name, small)
    monkeypatch.setattr(stored_runs, "BLOCK_ROWS", 50)
    return Place(tmp_path)


def in_order(rows: pa.Table) -> pa.Table:
    return rows.select(["k", "n", "v"]).sort_by([("k", "ascending"), ("n", "ascending")])


def test_all_rows_come_in_sorted_and_runs_go(place: Place) -> None:
    given = place.given_files()
    done = place.when_imported()
    assert done.rows == ROWS
    assert not done.repeated
    assert place.rows().equals(in_order(given).cast(place.table.arrow_schema))
    assert len(place.files()) == done.files > 4  # leaves with many rows have several files
    assert place.objects("files") == place.files()
    assert not place.objects("runs")


def test_the_same_again_is_nothing_to_do_and_asks_no_cluster(place: Place) -> None:
    place.given_files()
    first = place.when_imported()
    again = place.when_imported()
    assert again.repeated
    assert again.number == first.number
    assert place.cluster is not None
    assert not place.cluster.stages
    assert place.rows().num_rows == ROWS


def test_an_id_stands_for_the_same_request_in_ingest_and_bulk_import(place: Place) -> None:
    place.given_files()
    place.table.ingest(place.input, job="j")
    assert place.when_imported().repeated
    place.given_files(files=4)
    with pytest.raises(JobIdReusedError):
        place.when_imported()


@pytest.mark.parametrize("fate", ["doubled", "lost answer"])
def test_attempts_whose_answer_nobody_got_are_never_seen(place: Place, fate: str) -> None:
    given = place.given_files()
    place.when_imported(outcome_of=lambda _stage, number: fate if number % 2 else "done")
    assert place.rows().equals(in_order(given).cast(place.table.arrow_schema))
    left = place.objects("files") - place.files()
    assert left
    assert place.objects("runs")
    report = place.lake.fsck()
    assert {finding.code for finding in report.findings} == {"object-pending"}


def test_what_attempts_left_is_swept(place: Place) -> None:
    place.given_files()
    place.table.change_settings(pending_seconds_max=0)
    place.when_imported(outcome_of=lambda _stage, number: "doubled" if number % 2 else "done")
    assert place.objects("runs")
    for _ in range(3):  # the floor rises above the bases of what was left
        place.table.change_settings(redispatch_seconds=900)
        place.lake.run()
    assert place.objects("files") == place.files()
    assert not place.objects("runs")
    assert place.rows().num_rows == ROWS


@pytest.mark.parametrize("stage", ["sort", "merge"])
def test_a_job_that_the_cluster_gives_up_is_failed_and_can_be_run_again(
    place: Place, stage: str
) -> None:
    place.given_files()
    with pytest.raises(UnavailableError, match="gave the job up"):
        place.when_imported(outcome_of=lambda at, _number: "given up" if at == stage else "done")
    assert place.rows().num_rows == 0
    assert [report.event for report in place.table.jobs(job="j")] == ["started", "failed"]
    assert place.when_imported().rows == ROWS
    assert place.rows().num_rows == ROWS


def test_a_refused_commit_leaves_the_table_as_it_was(place: Place) -> None:
    place.given_files()

    def cleared_meanwhile(stage: str, number: int) -> str:
        if (stage, number) == ("merge", 0):
            place.table.clear()
        return "done"

    with pytest.raises(GenerationError):
        place.when_imported(outcome_of=cleared_meanwhile)
    assert place.rows().num_rows == 0
    report = place.table.jobs(job="j")[-1]
    assert report.event == "failed"
    assert report.reason.startswith("generation: ")
    assert report.kind == "bulk import"


@pytest.mark.parametrize("shared_file_rows_max", [0, 5_000])
def test_names_of_files_tell_whether_leaves_share_them(
    place: Place, shared_file_rows_max: int
) -> None:
    place.table.change_settings(shared_file_rows_max=shared_file_rows_max)
    place.given_files()
    place.when_imported()
    with place.table._opened.head.reading() as state:
        references = list(state.all_references())
    leaves = Counter(r.file.name for r in references)
    assert {name: is_shared(name) for name in leaves} == {n: leaves[n] > 1 for n in leaves}
    assert any(map(is_shared, leaves)) == bool(shared_file_rows_max)


def test_leaves_that_were_split_meanwhile_get_the_rows(place: Place) -> None:
    given = place.given_files()
    place.when_imported(job="first")
    place.table.change_settings(leaf_rows_max=100)

    def split_meanwhile(stage: str, number: int) -> str:
        if (stage, number) == ("merge", 0):
            place.lake.run(["t"])
        return "done"

    leaves = len(place.table.split_points)
    place.when_imported(job="second", outcome_of=split_meanwhile)
    assert len(place.table.split_points) > leaves
    twice = in_order(pa.concat_tables([given, given]))
    assert place.rows().equals(twice.cast(place.table.arrow_schema))


def test_a_file_that_cannot_be_read_is_named(place: Place) -> None:
    place.given_files()
    bad = place.input / "1.parquet"
    bad.write_bytes(bad.read_bytes()[:-100])
    with pytest.raises(UnreadableInputError) as caught:
        place.when_imported()
    assert str(caught.value.facts["path"]) == str(bad)
    assert place.rows().num_rows == 0
    assert place.table.jobs(job="j")[-1].event == "rejected"


def test_a_file_that_is_missing_is_named(place: Place) -> None:
    with pytest.raises(InvalidError, match="no such file") as caught:
        place.when_imported(place.input / "gone.parquet")
    assert caught.value.facts["path"] == place.input / "gone.parquet"


def test_rows_that_do_not_fit_are_refused_with_their_file(place: Place) -> None:
    place.given_files()
    pq.write_table(pa.table({"k": ["a"], "n": ["one"], "v": [1.0]}), place.input / "9.parquet")
    with pytest.raises(InvalidError) as caught:
        place.when_imported()
    assert str(caught.value.facts["path"]) == str(place.input / "9.parquet")
    assert caught.value.facts["field"] == "n"


def test_a_run_whose_bytes_changed_is_found_out(place: Place) -> None:
    place.given_files()

    def damaged(stage: str, number: int) -> str:
        if (stage, number) == ("sort", 0):
            for path in (place.path / "objects").rglob("runs/*"):
                stored = bytearray(path.read_bytes())
                stored[len(stored) // 2] ^= 1
                path.chmod(0o600)
                path.write_bytes(stored)
        return "done"

    with pytest.raises(CorruptError, match="sorted run"):
        place.when_imported(outcome_of=damaged)
    assert place.rows().num_rows == 0


def test_a_busy_leaf_is_refused_before_files_are_written(place: Place) -> None:
    place.given_files()
    place.table.change_settings(leaf_files_max=4)
    for job in range(4):
        place.table.ingest(
            pa.table({"k": ["0"], "n": [job], "v": [None]}, place.table.arrow_schema)
        )
    before = place.objects("files")
    with pytest.raises(TableBusyError):
        place.when_imported()
    assert place.objects("files") == before


def test_no_rows_are_a_job_that_is_done(place: Place) -> None:
    pq.write_table(SCHEMA and place.table.arrow_schema.empty_table(), place.input / "0.parquet")
    assert place.when_imported().rows == 0
    assert place.when_imported().repeated


def test_csv_and_json_lines_come_in_too(place: Place) -> None:
    (place.input / "a.csv").write_text("k,n,v\n5,1,0.5\n2,2,\n")
    (place.input / "b.jsonl").write_text('{"k": "9", "n": 3}\n')
    place.when_imported()
    assert place.rows().column("k").to_pylist() == ["2", "5", "9"]


def test_a_lake_whose_objects_only_a_program_reaches_is_refused(tmp_path: Path) -> None:
    store = MemoryObjectStore(VirtualClock())
    with lakebed.connect(tmp_path / "lake", objects=store) as lake:
        lake.create_table("t", SCHEMA)
    with pytest.raises(InvalidError), BulkImportApp(tmp_path / "lake") as app:
        app.run("t", [tmp_path], cluster_for=InProcessCluster)
