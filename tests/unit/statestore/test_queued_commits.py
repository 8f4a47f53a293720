"""Messages of commits: packed, or in an object; what a committer does with those it cannot read."""

import random

import pytest

from lakebed.garbage.sweep import SweepObjects
from lakebed.model.files import FileReference, KeyBounds, StoredFile
from lakebed.model.names import JobId, TableName, TransactionNumber, file_name
from lakebed.model.paths import commits_prefix
from lakebed.ports.job_queue import Message
from lakebed.statestore.log_entries.file_changes import AddFiles, RaiseFloor
from lakebed.statestore.open_table import OpenTable
from tests.dsl.commit_queue_story import TABLE, CommitQueueStory


def test_commits_too_large_for_a_message_travel_as_an_object() -> None:
    commits = CommitQueueStory(body_bytes_max=300)
    names = [f"f{n}" for n in range(30)]
    files = commits.table.new_files("all", **dict.fromkeys(names, 1))
    commits.given_sent(commits.adding("small"))
    commits.given_sent(commits.table.transaction(AddFiles(files), id_="large"))
    assert len(list(commits.objects.list(commits_prefix(TABLE)))) == 1
    assert commits.committer.run(batches_max=5) == 2
    assert commits.events("small", "large") == ["committed", "committed"]
    assert list(commits.objects.list(commits_prefix(TABLE))) == []


def test_a_message_whose_object_is_gone_was_answered_or_is_too_old() -> None:
    commits = CommitQueueStory(body_bytes_max=300)
    files = commits.table.new_files("all", **{f"f{n}": 1 for n in range(30)})
    large = commits.table.transaction(AddFiles(files), id_="large")
    commits.given_sent(large)
    (message,) = commits.queue.receive(messages_max=1, hidden_seconds=0)
    commits.committer.step()
    commits.queue.send([Message(message.body)])
    assert commits.committer.step() == 0
    assert commits.queue.depth() == (0, 0)
    assert commits.events("large") == ["committed"]


def test_many_commits_go_in_as_few_messages_as_hold_them() -> None:
    commits = CommitQueueStory(body_bytes_max=2_000)
    many = [commits.table.transaction(AddFiles(()), id_=f"c{n}") for n in range(100)]
    commits.given_sent(*many)
    messages, _ = commits.queue.depth()
    assert 2 < messages < 10
    assert commits.committer.run(batches_max=9) == 100
    assert list(commits.objects.list("")) == []


def test_commits_on_their_way_are_swept_when_none_of_them_can_land() -> None:
    commits = CommitQueueStory(body_bytes_max=100)
    commits.table.when_committed(AddFiles(()))
    names = (dict.fromkeys((f"{x}{n}" for n in range(9)), 1) for x in "ab")
    for id_, files in zip(("old", "new"), names, strict=True):
        adding = AddFiles(commits.table.new_files("all", **files))
        commits.given_sent(commits.table.transaction(adding, id_=id_))
        commits.table.when_committed(AddFiles(()))
    table = OpenTable(id_=TABLE, name=TableName("t"), head=commits.table.head, rng=random.Random(1))
    commits.table.when_committed(RaiseFloor(TransactionNumber(3)))
    assert SweepObjects(objects=commits.objects).run(table) == 1
    assert commits.committer.run(batches_max=5) == 1
    assert commits.events("new") == ["committed"]


@pytest.mark.parametrize("body", [b"", b"\x01", b"\x01nonsense", b"\x02newer", b'{"table": "t1"}'])
def test_a_message_that_says_nothing_ends_among_the_dead_letters(body: bytes) -> None:
    commits = CommitQueueStory()
    commits.queue.send([Message(body)])
    commits.given_sent(commits.adding("a"))
    assert commits.committer.step() == 1
    for _ in range(3):
        commits.when_messages_come_again()
        commits.committer.step()
    assert commits.queue.depth() == (0, 1)


def test_files_without_the_base_of_their_commit_are_not_taken() -> None:
    commits = CommitQueueStory()
    base = TransactionNumber(0)
    name = file_name(base=TransactionNumber(1), job=JobId("x"), run=1, sequence=0)
    stored = StoredFile(name, 10, 5, 1, 1)
    reference = FileReference(stored, commits.table.partitions["all"], 1, KeyBounds(b"", None))
    commits.given_sent(commits.table.transaction(AddFiles((reference,)), id_="odd", base=base))
    assert commits.committer.step() == 0
    assert commits.tracker.last(TABLE, JobId("odd")) is None
