"""Queries are sent as messages, and their senders read the results where they were written down."""

import pytest

from tests.dsl.lake_story import LakeStory
from tests.dsl.table_rows import rows

pytestmark = pytest.mark.parametrize("story", ["memory", "directory"], indirect=True)

ALL = {"id": "all", "table": "trips", "ranges": [{}]}
MINUTES = 360
"""After which a queue takes a message that it had before."""


def test_a_query_that_is_sent_twice_is_answered_once(story: LakeStory) -> None:
    story.given_table("trips")
    story.when_ingested("trips", rows(300), job="one")
    story.when_message_is_sent("query", **ALL)
    story.when_queries_are_answered()
    story.then_answer_matches("trips", job="all")
    story.when_ingested("trips", rows(50, seed=1), job="later")
    story.when_time_passes(MINUTES)
    story.when_message_is_sent("query", **ALL)
    story.when_queries_are_answered()
    story.then_answer_matches("trips", job="all", without=["later"])
    reports = story.table("trips").jobs(job="all")
    assert [(report.event, report.rows) for report in reports] == [("finished", 300)] * 2
    assert (story.stage.waiting("query"), story.stage.waiting("query-dead")) == (0, 0)


def test_a_query_message_that_can_never_work_is_refused(story: LakeStory) -> None:
    story.given_table("trips")
    story.when_message_is_sent("query", **ALL | {"id": "bad", "limit": -1})
    story.when_message_is_sent("query", **ALL | {"id": "lost", "table": "tripz"})
    story.when_message_is_sent("query", **ALL)
    story.when_queries_are_answered()
    story.then_answer_matches("trips", job="all")
    rejected = {id_: story.lake.nameless_jobs(job=id_)[0] for id_ in ("bad", "lost")}
    assert {report.event for report in rejected.values()} == {"rejected"}
    assert "limit" in rejected["bad"].reason
    assert "did you mean 'trips'" in rejected["lost"].reason
    assert (story.stage.waiting("query"), story.stage.waiting("query-dead")) == (0, 2)
    (counted,) = story.lake.dead_letters(queues=["query"])
    assert (counted.dead, {of.table for of in counted.tables}) == (2, {"trips", "tripz"})
    (letter,) = story.lake.show_dead_letters(queues=["query"], table="trips")
    assert letter.reason == rejected["bad"].reason
    done = story.lake.redrive(queues=["query"])
    assert done.sent == 0
    assert any("it can never work" in told and "limit" in told for told in done.refused)
    assert story.stage.waiting("query-dead") == 2
