"""A story notices when a table does not hold what it was given."""

import pytest

from tests.dsl.lake_story import LakeStory
from tests.dsl.table_rows import rows

pytestmark = pytest.mark.parametrize("story", ["memory"], indirect=True)


def test_rows_that_were_not_given_are_noticed(story: LakeStory) -> None:
    story.given_table("t")
    story.when_ingested("t", rows(50), job="given")
    story.then_queries_match("t")
    story.table("t").ingest(rows(1, seed=1))
    with pytest.raises(AssertionError):
        story.then_queries_match("t")


def test_rows_that_are_lost_are_noticed(story: LakeStory) -> None:
    story.given_table("t")
    story.when_ingested("t", rows(50), job="given")
    story.table("t").clear()
    with pytest.raises(AssertionError):
        story.then_queries_match("t")


def test_a_doubled_job_is_noticed(story: LakeStory) -> None:
    story.given_table("t")
    story.when_ingested("t", rows(50), job="given")
    story.table("t").ingest(rows(50), job="again")
    with pytest.raises(AssertionError):
        story.then_queries_match("t")
