"""Rows that came directly, by queued commits and by messages are merged, split and tidied."""

import pytest

from tests.dsl.lake_story import LakeStory
from tests.dsl.table_rows import rows

pytestmark = pytest.mark.timeout(600)
"""The first story on what is deployed also waits for the synthesis, and for bundles' packages."""

HOUR = 3_600
SETTINGS = {
    "leaf_rows_max": 150,
    "compaction_strategy": "basic",
    "job_files_max": 3,
    "garbage_seconds_min": HOUR,
}


def test_rows_of_every_way_in_stay_the_same_whatever_becomes_of_their_files(
    story: LakeStory,
) -> None:
    story.given_table("t", **SETTINGS)
    story.when_ingested("t", rows(60), job="direct")
    story.when_ingest_is_queued("t", rows(60, seed=1), job="queued")
    story.when_files_are_sent("t", rows(30, seed=2), rows(30, seed=3), job="sent")
    story.then_queries_match("t", without=["queued", "sent"])
    story.when_queued_commits_are_made()
    story.when_messages_are_ingested()
    assert story.summary("t") == "3 files, 180 rows\ngarbage: 0 files"
    story.then_queries_match("t")

    story.when_compacted()
    assert story.summary("t") == "1 file, 180 rows\ngarbage: 3 files"
    story.then_queries_match("t")

    story.when_split()
    halves = "1 file, about 90 rows\n1 file, about 90 rows"
    assert story.summary("t") == f"{halves}\ngarbage: 3 files"
    story.then_queries_match("t")

    story.when_time_passes(60)
    story.when_garbage_is_collected()
    assert story.stored_files("t") == 4
    story.when_time_passes(HOUR + 600)
    story.when_garbage_is_collected()
    assert story.stored_files("t") == 1
    assert story.summary("t") == f"{halves}\ngarbage: 0 files"
    story.then_queries_match("t")


def test_a_job_whose_answer_was_lost_is_sent_again_and_done_once(story: LakeStory) -> None:
    story.given_table("t")
    story.when_ingested("t", rows(50), job="direct")
    assert story.when_ingested("t", rows(50), job="direct").repeated
    for _ in range(2):
        story.when_ingest_is_queued("t", rows(50, seed=1), job="queued")
        story.when_files_are_sent("t", rows(50, seed=2), job="sent")
    story.when_queued_commits_are_made()
    story.when_messages_are_ingested()
    story.then_queries_match("t")
    assert story.summary("t") == "3 files, 150 rows\ngarbage: 0 files"


@pytest.mark.parametrize("story", ["memory", "directory", "deployed"], indirect=True)
def test_queued_commits_of_many_go_into_one_entry(story: LakeStory) -> None:
    story.given_table("t")
    for seed in range(3):
        story.when_ingest_is_queued("t", rows(20, seed=seed), job=f"day {seed}")
    before = story.number("t")
    assert story.stage.waiting("commits") == 3
    story.when_queued_commits_are_made()
    assert story.stage.waiting("commits") == 0
    assert story.number("t") == before + 1
    story.then_queries_match("t")
