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
from tests.dsl.commit_office import TABLE, Office


def test_commits_too_large_for_a_message_travel_as_an_object() -> None:
    office = Office(body_bytes_max=300)
    names = [f"f{n}" for n in range(30)]
    files = office.story.new_files("all", **dict.fromkeys(names, 1))
    office.given_sent(office.adding("small"))
    office.given_sent(office.story.transaction(AddFiles(files), id_="large"))
    assert len(list(office.objects.list(commits_prefix(TABLE)))) == 1
    assert office.committer.run(batches_max=5) == 2
    assert office.events("small", "large") == ["committed", "committed"]
    assert list(office.objects.list(commits_prefix(TABLE))) == []


def test_a_message_whose_object_is_gone_was_answered_or_is_too_old() -> None:
    office = Office(body_bytes_max=300)
    files = office.story.new_files("all", **{f"f{n}": 1 for n in range(30)})
    large = office.story.transaction(AddFiles(files), id_="large")
    office.given_sent(large)
    (message,) = office.queue.receive(messages_max=1, hidden_seconds=0)
    office.committer.step()
    office.queue.send([Message(message.body)])
    assert office.committer.step() == 0
    assert office.queue.depth() == (0, 0)
    assert office.events("large") == ["committed"]


def test_many_commits_go_in_as_few_messages_as_hold_them() -> None:
    office = Office(body_bytes_max=2_000)
    many = [office.story.transaction(AddFiles(()), id_=f"c{n}") for n in range(100)]
    office.given_sent(*many)
    messages, _ = office.queue.depth()
    assert 2 < messages < 10
    assert office.committer.run(batches_max=9) == 100
    assert list(office.objects.list("")) == []


def test_commits_on_their_way_are_swept_when_none_of_them_can_land() -> None:
    office = Office(body_bytes_max=100)
    office.story.when_committed(AddFiles(()))
    names = (dict.fromkeys((f"{x}{n}" for n in range(9)), 1) for x in "ab")
    for id_, files in zip(("old", "new"), names, strict=True):
        adding = AddFiles(office.story.new_files("all", **files))
        office.given_sent(office.story.transaction(adding, id_=id_))
        office.story.when_committed(AddFiles(()))
    table = OpenTable(id_=TABLE, name=TableName("t"), head=office.story.head, rng=random.Random(1))
    office.story.when_committed(RaiseFloor(TransactionNumber(3)))
    assert SweepObjects(objects=office.objects).run(table) == 1
    assert office.committer.run(batches_max=5) == 1
    assert office.events("new") == ["committed"]


@pytest.mark.parametrize("body", [b"", b"\x01", b"\x01nonsense", b"\x02newer", b'{"table": "t1"}'])
def test_a_message_that_says_nothing_ends_among_the_dead_letters(body: bytes) -> None:
    office = Office()
    office.queue.send([Message(body)])
    office.given_sent(office.adding("a"))
    assert office.committer.step() == 1
    for _ in range(3):
        office.when_messages_come_again()
        office.committer.step()
    assert office.queue.depth() == (0, 1)


def test_files_without_the_base_of_their_commit_are_not_taken() -> None:
    office = Office()
    base = TransactionNumber(0)
    name = file_name(base=TransactionNumber(1), job=JobId("x"), run=1, sequence=0)
    stored = StoredFile(name, 10, 5, 1, 1)
    reference = FileReference(stored, office.story.partitions["all"], 1, KeyBounds(b"", None))
    office.given_sent(office.story.transaction(AddFiles((reference,)), id_="odd", base=base))
    assert office.committer.step() == 0
    assert office.tracker.last(TABLE, JobId("odd")) is None
