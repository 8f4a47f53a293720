"""Dead letters that nobody can read are counted, shown, and stay."""

import pytest

from lakebed.model.jobs import COMPACTION_QUEUE, INGEST_QUEUE, SPLITTING
from lakebed.model.names import TableId
from lakebed.statestore.queued_commits import COMMIT_QUEUE, CommitsMessage, encode_commits
from tests.unit.inspection.dead_letters_story import NAME, DeadLettersStory, asked

UNDECODABLE = asked(format=1, table=NAME, job="j", id="x").replace(b"trips", b"\xff")
UNDECODABLE_COMMITS = encode_commits(CommitsMessage(TableId("trips"))).replace(
    b"trips", b"trip\xff"
)


@pytest.mark.parametrize("kind", [COMMIT_QUEUE, COMPACTION_QUEUE, SPLITTING, INGEST_QUEUE])
def test_a_letter_that_is_no_text_is_counted_shown_and_stays(kind: str) -> None:
    story = DeadLettersStory()
    story.given_up(kind, UNDECODABLE_COMMITS if kind == COMMIT_QUEUE else UNDECODABLE)
    (queue,) = story.letters.count([kind])
    assert (queue.dead, [of.table for of in queue.tables]) == (1, [""])
    (letter,) = story.letters.show([kind], None, letters_max=10)
    assert letter.reason.startswith("invalid: the message is not ")
    assert letter.body.startswith("base64:")
    assert story.redrive(kind).sent == 0
    assert story.queues.open(kind).depth() == (0, 1)
