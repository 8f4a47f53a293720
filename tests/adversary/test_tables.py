"""What the random tester holds answers against sees a lost job, a doubled one, half of one."""

from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.lake import Lake
from tests.adversary.tables import landed, make_tables, problems, rows_of, table_of

JOBS = [f"write-a-{number}" for number in range(6)]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = lakebed.connect(tmp_path / "lake")
    make_tables(lake, {})
    return lake


def ingest(lake: Lake, job: str, rows: pa.Table | None = None, *, under: str | None = None) -> None:
    lake.table(table_of(job)).ingest(rows_of(job) if rows is None else rows, job=under or job)


def test_whole_jobs_are_right_and_known(lake: Lake) -> None:
    for job in JOBS:
        ingest(lake, job)
    assert problems(lake, JOBS) == []
    assert landed(lake) == set(JOBS) - {"write-a-2"}  # write-a-5 has newer versions


@pytest.mark.parametrize("lost", JOBS[3:])
def test_a_lost_job_is_seen(lake: Lake, lost: str) -> None:
    for job in JOBS:
        if job != lost:
            ingest(lake, job)
    assert any(lost in problem for problem in problems(lake, JOBS))


@pytest.mark.parametrize("doubled", [job for job in JOBS if table_of(job) != "newest"])
def test_a_doubled_job_is_seen(lake: Lake, doubled: str) -> None:
    for job in JOBS:
        ingest(lake, job)
    ingest(lake, doubled, under="again")
    assert any(doubled in problem for problem in problems(lake, JOBS))


@pytest.mark.parametrize("job", JOBS[3:])
def test_half_of_a_job_is_seen(lake: Lake, job: str) -> None:
    before = f"write-a-{int(job[-1]) - 3}"
    ingest(lake, before)
    rows = rows_of(job)
    assert len(rows) > 1
    ingest(lake, job, rows.slice(0, len(rows) // 2))
    assert problems(lake, [])
