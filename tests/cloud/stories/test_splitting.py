"""Leaves that are too large become smaller ones; their rows stay."""

import pytest

from tests.dsl.lake_story import FunctionStory, LakeStory
from tests.dsl.table_rows import SMALL_LEAVES, rows

pytestmark = pytest.mark.timeout(600)
"""The first story on what is deployed also waits for the synthesis, and for bundles' packages."""


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
