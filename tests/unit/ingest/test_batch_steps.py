"""Jobs of batches are sent, lost and sent again, and each step of a batch may fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lakebed.bootstrap.batching import run_batches
from lakebed.errors import JobIdReusedError, UnavailableError, UnknownOutcomeError
from lakebed.model.jobs import (
    BATCHES_QUEUE,
    BatchMessage,
    batch_job,
    batch_message_in,
    encode_batch_message,
)
from lakebed.model.names import Micros, TableId, TableName, TransactionNumber
from lakebed.ports.file_batches import BatchHead, SubmittedFile
from lakebed.ports.job_queue import Message
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries.transactions import Transaction
from tests.unit.ingest.batch_story import BatchStory


@pytest.fixture
def story(tmp_path: Path) -> Iterator[BatchStory]:
    story = BatchStory(tmp_path)
    yield story
    story.app.close()


# messages


def test_a_job_whose_message_was_lost_is_sent_again_in_time(story: BatchStory) -> None:
    story.submit(story.given("a.parquet", "a"))
    story.tick(300)
    assert story.lose_messages() == 1
    story.tick(899)
    assert story.lose_messages() == 0
    story.tick(1)
    assert story.lose_messages() == 1
    story.tick(1_700)
    assert story.lose_messages() == 0, "the wait doubles"
    story.run(100)
    assert story.ids == ["a"]
    assert story.newest.sends == 3
    assert story.run(100_000).is_nothing
    assert story.newest.sends == 3, "the log has it"


def test_a_message_that_comes_twice_is_done_once(story: BatchStory) -> None:
    story.submit(story.given("a.parquet", "a"))
    story.tick(300)
    queue = story.app.queues.open(BATCHES_QUEUE)
    (message,) = queue.receive(messages_max=1, hidden_seconds=0)
    found = batch_message_in(message.body)
    assert found == BatchMessage(
        id=batch_job(story.id, 1), table=TableName("trips"), table_id=story.id, batch=1
    )
    assert [one.repeated for one in (*story.take_in(), *story.take_in())] == [False]
    queue.send([Message(message.body)])
    assert [one.repeated for one in story.take_in()] == [True]
    assert story.ids == ["a"]


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"\xff",
        b'{"batch": 1}',
        b'{"id": "x", "table": "t", "table_id": "..", "batch": 1}',
        b'{"id": "x", "table": "t", "files": ["a.csv"], "batch": 1}',
        b'{"id":"x","table":"t","table_id":"0123456789abcdef0123456789abcdef","batch":"1"}',
    ],
)
def test_other_messages_are_none_of_batches(body: bytes) -> None:
    assert batch_message_in(body) is None


def test_a_message_says_the_same_when_it_is_read() -> None:
    table = TableId("0123456789abcdef0123456789abcdef")
    message = BatchMessage(
        id=batch_job(table, 7), table=TableName("trips"), table_id=table, batch=7
    )
    assert batch_message_in(encode_batch_message(message)) == message


# steps


STEPS = ("plan", "take", "remove", "finish", "end")


@pytest.mark.parametrize("error", [UnavailableError, UnknownOutcomeError])
@pytest.mark.parametrize("step", STEPS)
def test_each_step_may_fail_and_is_done_by_the_next_run(
    story: BatchStory,
    step: str,
    error: type[UnavailableError | UnknownOutcomeError],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story.submit(story.given("a.parquet", "a"), story.given("b.parquet", "b"))
    true = getattr(story.batches, step)

    def fails(*args: object, **given: object) -> None:
        if error is UnknownOutcomeError:
            true(*args, **given)
        raise error("no answer")

    with monkeypatch.context() as patched:
        patched.setattr(story.batches, step, fails)
        assert story.run_failing(300)
    story.run(4_000)
    assert story.ids == ["a", "b"]
    assert story.run(10_000).is_nothing
    assert story.batches.head(story.id) == BatchHead(1, 1, 1)


def test_numbers_that_the_log_knows_are_not_used_again(story: BatchStory) -> None:
    for key in "ab":
        story.submit(story.given(f"{key}.parquet", key))
        story.run(300)
    story.batches.drop(story.id)  # as after a restore of what waits, and not of the log
    story.submit(story.given("c.parquet", "c"))
    story.run(300)
    assert story.newest.batch == 3
    assert story.ids == ["a", "b", "c"]


def test_a_job_that_is_not_committed_in_time_is_told_as_lost(tmp_path: Path) -> None:
    story = BatchStory(tmp_path, job_id_seconds_min=5_000)
    name = story.given("a.parquet", "a")
    story.submit(name)
    story.tick(300)
    story.lose_messages()
    story.tick(5_000)
    assert story.lose_messages() == 0
    assert story.table.jobs()[0].event == "lost"
    assert story.newest.state == "ended"
    assert story.submit(name).added == 1
    story.run(300)
    assert story.ids == ["a"]


def test_an_id_that_stands_for_something_else_takes_nothing_in(story: BatchStory) -> None:
    name = story.given("a.parquet", "a")
    story.submit(name)
    story.tick(300)
    story.table.ingest([{"id": "x", "n": 1}], job=batch_job(story.id, 1))
    assert story.take_in()[0].repeated
    story.tick()
    assert story.newest.state == "ended"
    assert story.submit(name).added == 1
    story.run(300)
    assert story.ids == ["a", "x"]


def test_files_are_told_apart_by_name_and_version() -> None:
    one = SubmittedFile("ab", 1, "c", Micros(0))
    assert one.digest != SubmittedFile("a", 1, "bc", Micros(0)).digest
    assert one.digest == SubmittedFile("ab", 9, "c", Micros(5)).digest


def two_runs(story: BatchStory, monkeypatch: pytest.MonkeyPatch, *, reader_is_first: bool) -> str:
    """Change a file while its job runs: a run that has read it, and one that leaves it out, come to
    their commits, one after the other. Returns the file's name."""
    names = [story.given("a.parquet", "a"), story.given("b.parquet", "b")]
    story.submit(*names)
    story.tick(300)
    message = BatchMessage(
        id=batch_job(story.id, 1), table=TableName("trips"), table_id=story.id, batch=1
    )
    commit, held = TableHead.commit, list[Callable[[], object]]()

    def hold(self: TableHead, transaction: Transaction) -> TransactionNumber:
        held.append(lambda: commit(self, transaction))
        raise UnavailableError("it hangs before its commit")

    with monkeypatch.context() as patched:
        patched.setattr(TableHead, "commit", hold)
        for _ in ("the reader", "the one that leaves it out"):
            with pytest.raises(UnavailableError):
                run_batches(story.app).run(message)
            story.given("a.parquet", "changed")
    reader, other = held
    (reader if reader_is_first else other)()
    with pytest.raises(JobIdReusedError):
        (other if reader_is_first else reader)()
    assert run_batches(story.app).run(message).repeated
    story.tick()
    return names[0]


def test_the_run_that_leaves_a_file_out_is_first_and_the_file_is_shown_as_refused(
    story: BatchStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = two_runs(story, monkeypatch, reader_is_first=False)
    assert story.ids == ["b"]
    assert [one.file for one in story.newest.refused] == [name]
    assert story.batches.head(story.id) == BatchHead(1, 1, 1)


def test_the_run_that_read_a_file_is_first_and_the_file_is_shown_as_taken_in(
    story: BatchStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_runs(story, monkeypatch, reader_is_first=True)
    assert story.ids == ["a", "b"]
    assert story.newest.refused == ()
    batch = story.batches.batch(story.id, 1)
    assert batch is not None
    assert len(batch.refused) == 1, "it was refused by a run that came too late"
    assert story.batches.submit(story.id, batch.files).doubles == 2
