"""Queries are sent as messages, and their senders read the results where they were written down."""

import pytest

from tests.dsl.lake_story import LakeStory
from tests.dsl.table_rows import rows

pytestmark = pytest.mark.timeout(600)
"""The first story on what is deployed also waits for the synthesis, and for bundles' packages."""

SECONDS = 360
"""After which a queue takes a message that it had before. It outlives a story's tables: each story
has messages of its own."""


def of_all(id_: str, table: str, **others: object) -> dict[str, object]:
    """Return a message that asks for all rows of a table."""
    return {"id": id_, "table": table, "ranges": [{}], **others}


def test_a_query_that_is_sent_twice_is_answered_once(story: LakeStory) -> None:
    story.given_table("trips")
    story.when_ingested("trips", rows(300), job="one")
    story.when_message_is_sent("query", **of_all("trips-all", "trips"))
    story.when_queries_are_answered()
    story.then_answer_matches("trips", job="trips-all")
    story.when_ingested("trips", rows(50, seed=1), job="later")
    story.when_time_passes(SECONDS)
    story.when_message_is_sent("query", **of_all("trips-all", "trips"))
    story.when_queries_are_answered()
    story.then_answer_matches("trips", job="trips-all", without=["later"])
    reports = story.table("trips").jobs(job="trips-all")
    assert [(report.event, report.rows) for report in reports] == [("finished", 300)] * 2
    assert (story.stage.waiting("query"), story.stage.waiting("query-dead")) == (0, 0)


def test_a_query_message_that_can_never_work_is_refused(story: LakeStory) -> None:
    story.given_table("stays")
    story.when_message_is_sent("query", **of_all("bad-query", "stays", limit=-1))
    story.when_message_is_sent("query", **of_all("lost-query", "stayz"))
    story.when_message_is_sent("query", **of_all("stays-all", "stays"))
    story.when_queries_are_answered()
    story.then_answer_matches("stays", job="stays-all")
    rejected = {id_: story.lake.nameless_jobs(job=id_)[0] for id_ in ("bad-query", "lost-query")}
    assert {report.event for report in rejected.values()} == {"rejected"}
    assert "limit" in rejected["bad-query"].reason
    assert "did you mean 'stays'" in rejected["lost-query"].reason
    assert (story.stage.waiting("query"), story.stage.waiting("query-dead")) == (0, 2)
    (counted,) = story.lake.dead_letters(queues=["query"])
    assert (counted.dead, {of.table for of in counted.tables}) == (2, {"stays", "stayz"})
    (letter,) = story.lake.show_dead_letters(queues=["query"], table="stays")
    assert letter.reason == rejected["bad-query"].reason
    done = story.lake.redrive(queues=["query"])
    assert done.sent == 0
    assert any("it can never work" in told and "limit" in told for told in done.refused)
    assert story.stage.waiting("query-dead") == 2
