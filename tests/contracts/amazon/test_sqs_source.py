"""What a queue does to its messages: it hides them for a while, shows some twice, and forgets none
that was not deleted."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from lakebed.backends.aws.sqs_source import SqsReader
from lakebed.errors import InvalidError
from lakebed.ports.record_source import Records
from tests.contracts.sources.trials import SqsTrial
from tests.servers.s3 import S3Server


@pytest.fixture
def trial(ministack: S3Server) -> Iterator[SqsTrial]:
    trial = SqsTrial(ministack)
    yield trial
    trial.clients.close()


def opened(trial: SqsTrial, **settings: int) -> SqsReader:
    source = trial.connect(**settings)
    return source.open(source.splits()[0], 0)


def read(reader: SqsReader, count: int) -> Records[Any]:
    """Return the next records, which are so many."""
    records = reader.read(bytes_max=1 << 20, wait_seconds=2)
    assert records is not None
    assert records.count == count
    return records


def left(trial: SqsTrial) -> int:
    """Return how many messages the queue has, seen or hidden."""
    names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
    answer = trial.clients.sqs.get_queue_attributes(QueueUrl=trial.url, AttributeNames=names)
    return sum(int(answer["Attributes"][name]) for name in names)


def test_acknowledging_deletes_what_was_committed_and_nothing_else(trial: SqsTrial) -> None:
    trial.write("a", *(b"%d" % number for number in range(25)))
    reader = opened(trial)
    records = read(reader, 25)
    assert left(trial) == 25
    reader.acknowledge(12)
    assert left(trial) == 13
    reader.acknowledge(12)
    reader.acknowledge(records.end)
    assert left(trial) == 0
    assert reader.behind() == 0


def test_what_is_received_beyond_the_bound_waits_for_the_next_read(trial: SqsTrial) -> None:
    trial.write("a", *(b"x" * 10 for _ in range(10)))
    reader = opened(trial)
    first = reader.read(bytes_max=35, wait_seconds=2)
    assert first is not None
    assert first.count == 3
    reader.acknowledge(first.end)
    assert left(trial) == 7
    assert read(reader, 7).begin == 3


def test_a_message_that_is_shown_again_while_it_is_in_hand_is_given_once(trial: SqsTrial) -> None:
    trial.write("a", b"one")
    reader = opened(trial, hidden_seconds=2)
    records = read(reader, 1)
    time.sleep(2.2)  # a commit that takes longer than a message is hidden
    assert reader.read(bytes_max=100, wait_seconds=1) is None
    reader.acknowledge(records.end)  # by the receipt that came last
    assert left(trial) == 0


def test_messages_stay_hidden_while_their_reader_lives(trial: SqsTrial) -> None:
    trial.write("a", b"one")
    reader, other = opened(trial, hidden_seconds=2), opened(trial, hidden_seconds=2)
    read(reader, 1)
    for _ in range(6):
        time.sleep(0.5)
        reader.acknowledge(0)
        assert other.read(bytes_max=100) is None


def test_whoever_closes_a_reader_shows_its_messages_again(trial: SqsTrial) -> None:
    trial.write("a", b"one")
    reader = opened(trial)
    first = read(reader, 1)
    reader.close()
    reader.close()
    again = read(opened(trial), 1)
    assert again.items == first.items


def test_a_message_that_was_committed_and_comes_again_is_deleted(
    trial: SqsTrial, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial.write("a", b"one")
    reader = opened(trial, hidden_seconds=2)
    records = read(reader, 1)
    with monkeypatch.context() as patch:
        patch.setattr(SqsReader, "_delete", lambda _self, _receipts: None)  # the request is lost
        reader.acknowledge(records.end)
    time.sleep(2.2)
    assert reader.read(bytes_max=100, wait_seconds=1) is None
    assert left(trial) == 0


def test_attributes_are_headers_and_the_group_of_a_message_is_its_key(trial: SqsTrial) -> None:
    url = trial.clients.sqs.create_queue(
        QueueName=f"{trial.url.rpartition('/')[2]}.fifo",
        Attributes={"FifoQueue": "true", "ContentBasedDeduplication": "true"},
    )["QueueUrl"]
    trial.clients.sqs.send_message(
        QueueUrl=url,
        MessageBody="one",
        MessageGroupId="g",
        MessageAttributes={
            "b": {"DataType": "Binary", "BinaryValue": b"\x00"},
            "n": {"DataType": "Number.int", "StringValue": "7"},
        },
    )
    trial.url = url
    records = read(opened(trial), 1)
    (row,) = records.batch.to_pylist()
    assert (row["value"], row["key"]) == (b"one", b"g")
    assert row["headers"] == [("b", b"\x00"), ("n", b"7")]
    assert abs(row["time"].timestamp() - time.time()) < 60
    assert records.size == len(b"onegb\x00n7")


def test_a_queue_that_is_not_there_is_refused(trial: SqsTrial) -> None:
    trial.url += "-absent"
    with pytest.raises(InvalidError):
        opened(trial).read(bytes_max=1)
