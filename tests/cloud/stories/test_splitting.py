"""Leaves that are too large become smaller ones; their rows stay."""

import pytest

from tests.dsl.lake_story import FunctionStory, LakeStory
from tests.dsl.table_rows import SMALL_LEAVES, rows

pytestmark = pytest.mark.timeout(600)
"""The first story on what is deployed also waits for the synthesis, and for bundles' packages."""

FIRST, SECOND = "2026-11-21T20:01:00Z", "2026-11-21T20:02:00Z"


@pytest.mark.parametrize("story", ["memory", "directory", "deployed"], indirect=True)
def test_a_leaf_that_is_too_large_is_split(story: LakeStory) -> None:
    story.given_table("large", **SMALL_LEAVES)
    story.given_table("small", **SMALL_LEAVES)
    story.when_ingested("large", rows(700), job="one")
    story.when_ingested("small", rows(50), job="one")
    story.when_split()
    assert story.leaves("large") > 2
    assert story.leaves("small") == 1
    story.then_queries_match("large")
    story.then_queries_match("small")


def test_work_that_is_done_and_not_known_to_be_done_is_done_once(
    function_story: FunctionStory,
) -> None:
    story = function_story
    story.given_a_function_dies("splitting")
    story.given_messages_are_delivered_twice()
    story.given_table("killed", **SMALL_LEAVES)
    story.when_ingested("killed", rows(700), job="one")
    story.when_split()
    entries = story.table("killed").log().entries
    assert story.leaves("killed") > 1
    assert story.stage.waiting("splitting") == 1
    story.when_messages_come_again("splitting")
    assert story.stage.waiting("splitting") == 0
    assert story.table("killed").log().entries == entries
    story.then_queries_match("killed")


def test_a_schedule_that_fires_twice_asks_for_work_once(function_story: FunctionStory) -> None:
    story = function_story
    for name, count in (("large", 700), ("small", 50)):
        story.given_table(name, **SMALL_LEAVES)
        story.when_ingested(name, rows(count), job="one")
    for _ in range(2):
        story.when_a_schedule_fires("splitting", at=FIRST)
        assert story.stage.waiting("splitting") == 2
    story.when_a_schedule_fires("splitting", at=SECOND)
    assert story.stage.waiting("splitting") == 4
    story.when_split()
    numbers = story.number("large"), story.number("small")
    assert story.leaves("large") > 2
    for _ in range(2):
        story.when_a_schedule_fires("splitting", at=FIRST)
    story.when_split()
    assert (story.number("large"), story.number("small")) == numbers
    story.then_queries_match("large")
    story.then_queries_match("small")
