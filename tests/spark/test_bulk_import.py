"""Bulk import by real Spark: all rows once, whatever is killed, and others read them."""

import json
import os
import signal
from collections.abc import Collection
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakebed
from tests.readers.rows import plain
from tests.spark.shell import SparkShell, descendants, kill, wait_for

pytestmark = pytest.mark.timeout(1800)
LINES = ["4", pytest.param("3.5", marks=pytest.mark.slow)]
"""The second line is for `make test-all`."""

FILES, FILE_ROWS, WIDTH = 6, 500, 10_000
"""Of 5 MB each, so that each is a task's work: two are under way, two wait, two are done."""

LEFT = ("object-pending", "unfinished-upload", "spill-left")
"""Kinds of what killed processes leave, which is swept later."""

SCHEMA = lakebed.schema_of(
    row_keys={"k": "string"},
    sort_keys={"n": "int64"},
    values={
        "wide": "binary",
        "price": "decimal128(9,2)?",
        "day": "date32?",
        "tags": {"list": "string"},
        "counts": {"map": ["string", "int64"]},
    },
)


def files_in(folder: Path) -> pa.Table:
    """Write files with rows in no order; return all rows in order."""
    folder.mkdir()
    tables = []
    for file in range(FILES):
        numbers = range(file, FILES * FILE_ROWS, FILES)
        rows = pa.table(
            {
                "k": [f"{n * 7 % 10}-{n * 31 % 97}" for n in numbers],
                "n": numbers,
                "wide": [os.urandom(WIDTH) for _ in numbers],
                "price": [None if n % 7 == 0 else n for n in numbers],
                "day": [None if n % 5 == 0 else n for n in numbers],
                "tags": [["a", "b"][: n % 3] for n in numbers],
                "counts": [[("x", n)][: n % 2] for n in numbers],
            },
            schema=pa.schema(
                [
                    ("k", pa.string()),
                    ("n", pa.int64()),
                    ("wide", pa.binary()),
                    ("price", pa.int32()),
                    ("day", pa.int32()),
                    ("tags", pa.list_(pa.string())),
                    ("counts", pa.map_(pa.string(), pa.int64())),
                ]
            ),
        )
        rows = rows.set_column(
            3, "price", rows["price"].cast(pa.decimal128(12, 0)).cast(pa.decimal128(9, 2))
        )
        rows = rows.set_column(4, "day", rows["day"].cast(pa.date32()))
        pq.write_table(rows, folder / f"{file}.parquet", compression="none")
        tables.append(rows)
    return pa.concat_tables(tables).sort_by([("k", "ascending"), ("n", "ascending")])


class Story:
    """A lake with a table of three leaves, files for it, and a shell with Spark."""

    def __init__(self, line: str, folder: Path) -> None:
        self.lake = folder / "lake"
        self.input = folder / "input"
        self.shell = SparkShell(line, str(self.lake), folder)
        self.rows = files_in(self.input)
        with lakebed.connect(self.lake) as lake:
            lake.create_table("t", SCHEMA, split_points=["3", "6"])

    def runs(self) -> list[Path]:
        return list((self.lake / "objects").rglob("runs/*"))

    def check(self, *, visible: bool = True, left: Collection[str] = ()) -> None:
        """All rows are there once, or none; and the lake is whole. left: kinds of what nobody
        sees."""
        with lakebed.connect(self.lake) as lake:
            found = lake.table("t").query().read_all()
            findings = lake.fsck(deep=True).findings
        wanted = self.rows if visible else self.rows.slice(0, 0)
        assert plain(found) == plain(wanted)
        assert {finding.code for finding in findings} <= set(left)

    def repeated(self) -> bool:
        run = self.shell.imported("t", str(self.input), "--job", "j", "--json")
        assert run.returncode == 0, run.stderr
        return bool(json.loads(run.stdout)["repeated"])


@pytest.mark.parametrize("line", LINES)
def test_files_come_in_once_and_others_read_them(line: str, tmp_path: Path) -> None:
    story = Story(line, tmp_path)
    bad = story.input / "9.parquet"
    bad.write_bytes(b"PAR1 and nothing else")
    refused = story.shell.imported("t", str(story.input), "--job", "j")
    assert refused.returncode == 2, refused.stderr
    assert str(bad) in refused.stderr
    assert "unreadable-input" in refused.stderr
    story.check(visible=False)
    bad.unlink()

    assert not story.repeated()
    story.check()
    assert not story.runs()
    assert story.repeated()
    story.check()

    with lakebed.connect(story.lake) as lake:
        told = [(report.event, report.kind) for report in lake.table("t").jobs(job="j")]
    assert ("rejected", "bulk import") in told
    assert told[-1] == ("committed", "bulk import")
    files = sorted(str(path) for path in (story.lake / "objects").rglob("files/*.parquet"))
    by_arrow = pa.concat_tables([pq.read_table(file, partitioning=None) for file in files])
    wanted = sorted(plain(story.rows))
    assert sorted(plain(by_arrow)) == wanted
    assert sorted(plain(pl.read_parquet(files).to_arrow())) == wanted
    with duckdb.connect() as connection:
        found = connection.sql("SELECT * FROM read_parquet(?)", params=[files]).to_arrow_table()
    assert sorted(plain(found)) == wanted
    story.shell.copied(files, tmp_path / "by-spark")
    by_spark = pq.read_table(tmp_path / "by-spark").cast(by_arrow.schema)
    assert sorted(plain(by_spark)) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("line", ["4", "3.5"])
def test_killed_workers_are_made_up_for(line: str, tmp_path: Path) -> None:
    story = Story(line, tmp_path)
    with story.shell.importing("t", str(story.input), "--job", "j") as process:
        wait_for(story.runs, process)
        killed = descendants(process.pid, "pyspark.daemon")[1:]  # the first one forks the others
        for pid in killed:
            kill(pid)
        _, told = process.communicate()
        assert process.returncode == 0, told
    assert killed
    story.check(left=LEFT)


@pytest.mark.slow
@pytest.mark.parametrize("line", ["4", "3.5"])
def test_a_killed_executor_is_made_up_for(line: str, tmp_path: Path) -> None:
    story = Story(line, tmp_path)
    arguments = ("t", str(story.input), "--job", "j")
    with story.shell.importing(*arguments, master="local-cluster[2,1,1024]") as process:
        wait_for(story.runs, process)
        executor, *_ = descendants(process.pid, "CoarseGrainedExecutorBackend")
        kill(executor)
        _, told = process.communicate()
        assert process.returncode == 0, told
    story.check(left=LEFT)


@pytest.mark.slow
@pytest.mark.parametrize("line", ["4", "3.5"])
def test_a_killed_driver_leaves_nothing_that_is_seen_and_its_job_can_be_run_again(
    line: str, tmp_path: Path
) -> None:
    story = Story(line, tmp_path)
    with story.shell.importing("t", str(story.input), "--job", "j") as process:
        wait_for(story.runs, process)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    left = story.runs()
    assert left
    story.check(visible=False, left=LEFT)
    assert not story.repeated()
    story.check(left=LEFT)
    assert story.repeated()
    with lakebed.connect(story.lake) as lake:
        lake.table("t").change_settings(pending_seconds_max=0)
        for _ in range(3):  # the floor rises above the base of what was left
            lake.table("t").change_settings(redispatch_seconds=900)
            lake.run()
    assert not story.runs()
    story.check(left=LEFT)
