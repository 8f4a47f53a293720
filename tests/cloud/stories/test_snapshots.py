"""Logs that have grown become snapshots and are emptied below them; nobody who reads notices."""

import random
import string

import pytest

from lakebed.errors import LogTruncatedError
from tests.dsl.lake_story import LakeStory
from tests.dsl.table_rows import SMALL_LEAVES, rows

pytestmark = pytest.mark.timeout(600)
"""The first story on what is deployed also waits for the synthesis, and for bundles' packages."""


def long_points(seed: int) -> list[str]:
    """Return split points that make an entry as large as a log may grow."""
    rng = random.Random(seed)
    return sorted("".join(rng.choices(string.ascii_letters, k=1_000)) for _ in range(1_700))


def test_a_log_is_emptied_below_its_snapshots_while_reads_go_on(story: LakeStory) -> None:
    story.given_table("short")
    story.given_table("long", split_points=long_points(0), batch_seconds_max=0, **SMALL_LEAVES)
    story.when_ingested("long", rows(50), job="first")
    story.given_an_open_query("long")
    story.when_snapshots_are_written()
    assert (story.snapshots("short"), story.snapshots("long")) == (0, 1)
    assert story.table("long").log(after=0).entries[0].number == 1
    story.then_queries_match("long")

    story.when_cleared("long", split_points=long_points(1))
    story.when_ingested("long", rows(700, seed=1), job="second")
    story.when_snapshots_are_written()
    assert story.snapshots("long") == 2
    story.when_cleared("long", split_points=long_points(2))
    story.when_ingested("long", rows(700, seed=2), job="third")
    story.when_snapshots_are_written()
    assert (story.snapshots("short"), story.snapshots("long")) == (0, 2)
    with pytest.raises(LogTruncatedError):
        story.table("long").log(after=2)
    story.then_open_queries_match()
    story.then_queries_match("long")

    leaves = story.leaves("long")
    story.when_split()  # where functions work, this one begins with a snapshot
    assert story.leaves("long") > leaves
    assert story.when_ingested("long", rows(700, seed=2), job="third").repeated
    story.then_queries_match("long")

    story.when_files_are_submitted("long", rows(20, seed=3), under="late")
    story.when_batches_are_made()  # so does this one
    story.then_queries_match("long")
