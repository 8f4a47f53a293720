"""Files that are submitted become rows by batches, each once, however often it is submitted."""

import pyarrow as pa
import pytest

from lakebed.model.jobs import batch_job
from tests.dsl.lake_story import LakeStory
from tests.dsl.table_rows import rows

pytestmark = pytest.mark.timeout(600)
"""The first story on what is deployed also waits for the synthesis, and for bundles' packages."""


def test_submitted_files_become_one_job_each_file_once(story: LakeStory) -> None:
    story.given_table("batched")
    files = [rows(30 + n, seed=n) for n in range(4)]
    assert story.when_files_are_submitted("batched", *files, under="batch-a").added == 4
    assert story.when_files_are_submitted("batched", *files, under="batch-a").doubles == 4
    story.when_batches_are_made()
    story.then_queries_match("batched", without=["batch-a"])
    story.when_time_passes(301)
    story.when_batches_are_made()
    story.then_queries_match("batched")
    (report,) = story.table("batched").batches()
    assert (report.state, report.files, report.refused) == ("committed", 4, ())
    assert story.when_files_are_submitted("batched", *files, under="batch-a").doubles == 4
    story.when_time_passes(301)
    story.when_batches_are_made()
    story.then_queries_match("batched")


def test_a_job_whose_message_is_lost_is_sent_again(story: LakeStory) -> None:
    story.given_table("lost", batch_seconds_max=0)
    story.when_files_are_submitted("lost", rows(10), under="batch-lost")
    story.stage.work("batching")
    if not story.table("lost").batches()[0].number:  # a directory takes it in at once
        story.when_messages_are_lost("ingest")
        story.when_time_passes(901)
        story.when_batches_are_made()
    story.then_queries_match("lost")


def test_a_file_that_does_not_fit_is_left_out_and_may_be_submitted_again(story: LakeStory) -> None:
    story.given_table("picked", batch_seconds_max=0)
    other = story.stage.put("other-0.parquet", pa.table({"other": [1]}))
    story.stage.submit(story.table("picked"), [other])
    story.when_files_are_submitted("picked", rows(10), under="batch-fits")
    story.when_batches_are_made()
    story.then_queries_match("picked")
    (report,) = story.table("picked").batches()
    assert (report.state, report.files) == ("committed", 2)
    assert [refused.file for refused in report.refused] == [other]
    assert story.stage.submit(story.table("picked"), [other]).added == 1


def test_what_waits_for_a_table_that_is_dropped_is_forgotten(story: LakeStory) -> None:
    story.given_table("gone", batch_seconds_max=0)
    story.when_files_are_submitted("gone", rows(10), under="batch-made")
    story.when_batches_are_made()
    story.when_files_are_submitted("gone", rows(10), rows(20, seed=1), under="batch-waits")
    second = batch_job(story.table("gone")._opened.id, 2)
    story.lake.drop_table("gone")
    story.stage.work("batching")
    (told,) = story.lake.nameless_jobs(job=second)
    assert (told.event, "2 files waited for it" in told.reason) == ("rejected", True)
