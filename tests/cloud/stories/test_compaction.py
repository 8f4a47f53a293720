"""Compaction jobs that are lost, or given up, hold files for a time and not for ever."""

import pytest

from tests.dsl.lake_story import LakeStory
from tests.dsl.table_rows import rows

pytestmark = pytest.mark.timeout(600)
"""The first story on what is deployed also waits for the synthesis, and for bundles' packages."""

REDISPATCH_SECONDS = 600


@pytest.mark.parametrize("story", ["memory", "directory", "deployed"], indirect=True)
def test_dead_jobs_free_their_files(story: LakeStory) -> None:
    story.given_table("t", job_files_max=4)
    for seed in range(4):
        story.when_ingested("t", rows(20, seed=seed), job=f"day {seed}")
    story.when_jobs_are_created()
    assert story.jobs("t") == 1
    assert story.stage.waiting("compaction") == 1
    story.when_messages_die("compaction")
    assert story.stage.waiting("compaction-dead") == 1
    story.when_dead_jobs_are_given_up()
    assert story.jobs("t") == 0
    assert story.stage.waiting("compaction-dead") == 0
    assert story.summary("t") == "4 files, 80 rows\ngarbage: 0 files"
    story.when_jobs_are_created()
    assert story.jobs("t") == 1
    story.then_queries_match("t")


def test_jobs_whose_messages_were_lost_are_sent_again(story: LakeStory) -> None:
    settings = {
        "job_files_max": 4,
        "shared_file_rows_max": 0,
        "redispatch_seconds": REDISPATCH_SECONDS,
    }
    story.given_table("t", split_points=["k050000"], **settings)
    for seed in range(4):
        story.when_ingested("t", rows(60, seed=seed), job=f"day {seed}")
    story.when_jobs_are_created()
    assert story.stage.waiting("compaction") == 2
    story.when_messages_are_lost("compaction")
    story.when_jobs_are_created()
    assert story.stage.waiting("compaction") == 0
    story.when_time_passes(REDISPATCH_SECONDS + 1)
    story.when_jobs_are_created()
    assert story.stage.waiting("compaction") == 2
    story.when_compacted()
    assert story.summary("t") == "1 file, 128 rows\n1 file, 112 rows\ngarbage: 8 files"
    story.then_queries_match("t")
