"""Half a minute of `make soak`, and the rule by which a line rises."""

import random
from pathlib import Path

import pytest

import lakebed
from tests.soak.lines import Line
from tests.soak.soak import Pace, Soak
from tests.soak.tables import Known, job_of, make_tables, problems, rows_of, table_of


@pytest.mark.parametrize(
    ("values", "rises"),
    [
        ([], False),
        ([10, 900], False),
        ([10, 100, 101, 99, 102], False),
        ([10, 100, 130, 160, 190], True),
        ([500, 100, 101, 99, 102], False),  # what had just begun does not count
        ([10, 10, 11, 20, 21], False),  # less than a rise is worth
        ([10, 100, 100, 100, 400], True),
    ],
)
def test_a_line_rises_when_its_second_half_is_higher(values: list[float], rises: bool) -> None:
    assert Line("memory", "MiB", [float(value) for value in values]).rises() is rises


def test_the_model_sees_jobs_that_are_lost_and_jobs_that_are_doubled(tmp_path: Path) -> None:
    jobs = [job_of("send-a", number) for number in range(15)]
    now = 1_800_000_000.0
    due = dict.fromkeys(jobs, now)
    known = Known()
    known.add(jobs)
    with lakebed.connect(tmp_path / "lake") as lake:
        make_tables(lake)
        for job in jobs[:-5]:
            lake.table(table_of(job)).ingest(rows_of(job, now), job=job)
        lost = problems(lake, known, due=due, now=now, exact=False)
        assert {line.partition(":")[0] for line in lost} >= {"sums", "texts", "newest", "aged"}
        for job in jobs[-5:]:
            lake.table(table_of(job)).ingest(rows_of(job, now), job=job)
        assert problems(lake, known, due=due, now=now, exact=True) == []
        for job in jobs[-5:]:
            lake.table(table_of(job)).ingest(rows_of(job, now), job=f"{job}-again")
        doubled = problems(lake, known, due=due, now=now, exact=True)
        assert {line.partition(":")[0] for line in doubled} == {"sums", "texts", "aged"}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_short_soak_loses_nothing(tmp_path: Path) -> None:
    soak = Soak(tmp_path, random.Random(1), Pace(rate=4.0, kill_seconds=4.0, look_seconds=8.0))
    soak.run(24.0, print)
    assert soak.counts["kills"] >= 1
    assert soak.counts["looks"] >= 2
    assert soak.counts["jobs"] > 20
    assert soak.counts["reads"] > 0
    assert soak.counts["compactions"] > 0
    assert len(soak.lines) == 10
