"""What the benchmark of an upgrade counts as lost."""

import pyarrow as pa

from tests.cloud.upgrades.upgrade_story import lost_jobs
from tests.dsl.table_rows import rows

GIVEN = {f"job-{seed}": rows(20, seed=seed) for seed in range(3)}


def test_a_job_is_lost_when_one_of_its_rows_is() -> None:
    taken_in = list(GIVEN.values())
    assert lost_jobs(GIVEN, pa.concat_tables(taken_in)) == []
    assert lost_jobs(GIVEN, pa.concat_tables([taken_in[0], taken_in[1].slice(1)])) == [
        "job-1",
        "job-2",
    ]


def test_rows_of_a_job_that_was_done_twice_make_up_for_no_other() -> None:
    assert lost_jobs(GIVEN, pa.concat_tables([GIVEN["job-0"], *GIVEN.values()])) == []
    assert lost_jobs(GIVEN, pa.concat_tables([GIVEN["job-0"]] * 3)) == ["job-1", "job-2"]
