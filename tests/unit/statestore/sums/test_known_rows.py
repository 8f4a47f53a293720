"""How many rows are known exactly is kept with the sums of a state: the same as a look at all."""

import random

import pytest

from lakebed.errors import CacheDamagedError
from lakebed.model.names import JobId
from lakebed.statestore.log_entries.file_changes import (
    AddFiles,
    ClaimFiles,
    ReleaseClaim,
    ReplaceFiles,
)
from lakebed.statestore.log_entries.table_changes import Clear
from lakebed.statestore.table_state.figures import inexact_leaves, rows_known_exactly
from lakebed.statestore.table_state.sums import verify_rows
from tests.dsl import TableStory


def of_all_references(story: TableStory) -> tuple[int, set[int]]:
    references = list(story.state.all_references())
    known = sum(r.rows for r in references if r.exact)
    return known, {r.partition for r in references if not r.exact}


def check(story: TableStory) -> tuple[int, set[int]]:
    found = rows_known_exactly(story.state), set(inexact_leaves(story.state))
    assert found == of_all_references(story)
    verify_rows(story.state.connection)
    return found


def test_it_is_kept_through_all_that_happens_to_files() -> None:
    story = TableStory()
    assert check(story) == (0, set())
    story.given_files("all", a=80, b=7)
    story.given_files("all", keys=("a", "c"), low=10)
    assert check(story) == (97, set())
    story.when_split("all", "L | m | R")
    known, estimated = check(story)
    assert (known, len(estimated)) == (10, 2)
    left = story.partitions["L"]
    names = (story.file("a"), story.file("low"))
    story.when_committed(ClaimFiles(JobId("j"), left, names))
    assert check(story) == (known, estimated)
    output = story.new_files("L", keys=("a", "c"), merged=50)[0]
    story.when_committed(ReplaceFiles(JobId("j"), left, names, output))
    assert check(story)[0] == 50
    story.when_committed(ClaimFiles(JobId("k"), story.partitions["R"], (story.file("b"),)))
    story.when_committed(ReleaseClaim(JobId("k")))
    check(story)
    story.when_committed(AddFiles(story.new_files("R", late=5)))
    assert check(story)[0] == 55
    story.when_committed(Clear(None))
    assert check(story) == (0, set())


def test_what_is_undone_is_not_counted() -> None:
    story = TableStory()
    story.given_files("all", a=10)
    refused = story.transaction(AddFiles(story.new_files("all", b=5)), generation=99)
    landed = story.transaction(AddFiles(story.new_files("all", c=3)))
    story.head.commit_group([refused, landed])
    assert check(story) == (13, set())


@pytest.mark.parametrize("column", ["known", "estimated"])
def test_a_damaged_count_is_noticed(column: str) -> None:
    story = TableStory()
    story.given_files("all", a=random.Random(1).randrange(1, 100))
    story.state.connection.execute(f"UPDATE partition_sums SET {column} = {column} + 1")
    with pytest.raises(CacheDamagedError):
        verify_rows(story.state.connection)
