"""Messages that can never work are refused, told to whoever sent them, and change nothing."""

import pytest

from tests.dsl.lake_story import LakeStory
from tests.dsl.table_rows import rows

pytestmark = pytest.mark.timeout(600)
"""The first story on what is deployed also waits for the synthesis, and for bundles' packages."""

ELSEWHERE = "s3://elsewhere/b.parquet"


@pytest.mark.parametrize("story", ["memory", "directory", "deployed"], indirect=True)
def test_an_ingest_message_that_can_never_work_is_refused_and_changes_nothing(
    story: LakeStory,
) -> None:
    story.given_table("landed")
    story.when_files_are_sent("landed", rows(50), job="good")
    story.when_message_is_sent("ingest", id="bad", table="landed", files=[ELSEWHERE])
    story.when_message_is_sent("ingest", id="lost", table="landet", files=[ELSEWHERE])
    story.when_messages_are_ingested()
    told = {report.job: report for report in story.table("landed").jobs()}
    assert told["good"].event == "committed"
    assert told["bad"].event == "rejected"
    assert ELSEWHERE in told["bad"].reason
    (lost,) = story.lake.nameless_jobs(job="lost")
    assert lost.event == "rejected"
    assert "did you mean 'landed'" in lost.reason
    assert story.stage.waiting("ingest") == 0
    assert story.stage.waiting("ingest-dead") == 2
    (letter,) = story.lake.show_dead_letters(queues=["ingest"], table="landed")
    assert letter.reason == told["bad"].reason
    assert story.summary("landed") == "1 file, 50 rows\ngarbage: 0 files"
    story.then_queries_match("landed")
