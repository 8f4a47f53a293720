"""A table whose log is damaged waits until it is mended, and holds up no other."""

import pytest

from lakebed.config.job_queues import SPLITTING
from lakebed.errors import CorruptError
from tests.dsl.lake_story import FunctionStory, LakeStory
from tests.dsl.memory_instance import HIDDEN_SECONDS
from tests.dsl.table_rows import SMALL_LEAVES, rows

pytestmark = pytest.mark.timeout(600)
"""The first story on what is deployed also waits for the synthesis, and for bundles' packages."""

QUEUES = ("commits", "query")


def test_a_damaged_table_harms_no_other_and_is_worked_on_once_it_is_mended(
    story: LakeStory,
) -> None:
    for name in ("bad", "good"):
        story.given_table(name, **SMALL_LEAVES)
        story.when_ingested(name, rows(300), job="one")
        story.when_ingest_is_queued(name, rows(50, seed=1), job="queued")
    with story.given_a_damaged_log("bad"):
        story.when_split()
        story.when_queued_commits_are_made()
        for name in ("bad", "good"):
            story.when_message_is_sent("query", id=f"of-{name}", table=name, ranges=[{}])
        story.when_queries_are_answered()
        assert story.leaves("good") > 1
        story.then_queries_match("good")
        story.then_answer_matches("good", job="of-good")
        assert [story.stage.waiting(queue) for queue in QUEUES] == [1, 1]
        with pytest.raises(CorruptError):
            story.table("bad").count()
    assert story.leaves("bad") == 1
    story.then_queries_match("bad", without=["queued"])

    story.when_time_passes(HIDDEN_SECONDS + 1)
    story.when_split()
    story.when_queued_commits_are_made()
    story.when_queries_are_answered()
    assert story.leaves("bad") > 1
    story.then_queries_match("bad")
    assert story.table("bad").jobs(job="of-bad")[-1].event == "finished"
    for queue in QUEUES:
        assert (story.stage.waiting(queue), story.stage.waiting(f"{queue}-dead")) == (0, 0)


def test_the_tick_of_a_table_that_stays_damaged_is_redriven_once_it_is_mended(
    function_story: FunctionStory,
) -> None:
    story = function_story
    for name in ("bad", "good"):
        story.given_table(name, **SMALL_LEAVES)
        story.when_ingested(name, rows(300), job="one")
    with story.given_a_damaged_log("bad"):
        story.when_split()
        assert story.leaves("good") > 1
        for _ in range(SPLITTING.receives_max):
            assert story.stage.waiting("splitting") == 1
            story.when_messages_come_again("splitting")
        assert story.stage.waiting("splitting-dead") == 1
    assert story.leaves("bad") == 1
    (letter,) = story.lake.show_dead_letters(queues=["splitting"])
    assert letter.table == "bad"
    assert letter.receives >= SPLITTING.receives_max
    assert story.lake.redrive(queues=["splitting"], table="bad").sent == 1
    story.when_split()
    assert story.leaves("bad") > 1
    assert (story.stage.waiting("splitting"), story.stage.waiting("splitting-dead")) == (0, 0)
    story.then_queries_match("bad")
