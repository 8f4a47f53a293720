"""What only queues in SQS can meet: lost answers, texts of others, queues that are not there."""

from collections.abc import Iterator

import pytest

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.job_queues import SqsJobQueue, SqsJobQueues
from lakebed.backends.system import SystemClock, system_random
from lakebed.errors import InvalidError, UnavailableError, UnknownOutcomeError
from lakebed.ports.job_queue import Message
from lakebed.tasks.keep_hidden import keep_hidden
from tests.servers.faulty_proxy import LOST, UNANSWERED, Answer, FaultyProxy
from tests.servers.s3 import S3Server
from tests.servers.sqs import make_queue

BUSY = Answer(400, "ThrottlingException")


@pytest.fixture
def clients(ministack: S3Server, proxy: FaultyProxy) -> Iterator[AmazonClients]:
    clients = ministack.clients(url=proxy.url)
    yield clients
    clients.close()


@pytest.fixture
def queue(ministack: S3Server, clients: AmazonClients) -> SqsJobQueue:
    url = make_queue(clients, ministack.new_prefix(), receives_max=3)
    return SqsJobQueue(clients, url, rng=system_random())


def bodies(queue: SqsJobQueue) -> list[bytes]:
    return sorted(m.body for m in queue.receive(messages_max=10, hidden_seconds=60))


@pytest.mark.parametrize("fault", [LOST, UNANSWERED, BUSY, Answer(503, "ServiceUnavailable")])
def test_a_send_that_is_repeated_is_in_once(
    queue: SqsJobQueue, proxy: FaultyProxy, fault: str | Answer
) -> None:
    proxy.times(1, "POST", fault)
    queue.send([Message(b"a"), Message(b"\xff", "group")])
    assert bodies(queue) == [b"a", b"\xff"]


def test_a_send_without_any_answer_is_unknown_and_one_that_is_refused_is_not(
    queue: SqsJobQueue, proxy: FaultyProxy
) -> None:
    proxy.times(99, "POST", UNANSWERED)
    with pytest.raises(UnknownOutcomeError):
        queue.send([Message(b"a")])
    proxy.times(99, "POST", BUSY)
    with pytest.raises(UnavailableError):
        queue.send([Message(b"b")])
    proxy.times(0, "POST", BUSY)
    assert bodies(queue) == [b"a"]


def test_who_sends_with_another_program_is_understood(
    queue: SqsJobQueue, clients: AmazonClients
) -> None:
    texts = ['{"table": "trips"}', "base64:not so", "base64:YQ=="]
    for text in texts:
        clients.sqs.send_message(
            QueueUrl=queue._url,
            MessageBody=text,
            MessageGroupId="theirs",
            MessageDeduplicationId=text.replace(" ", ""),
        )
    found = queue.receive(messages_max=10, hidden_seconds=60)
    assert [m.body for m in found] == [texts[0].encode(), texts[1].encode(), b"a"]
    assert {m.message_group for m in found} == {"theirs"}
    assert all(m.sent_at > 1_700_000_000_000_000 for m in found)


@pytest.mark.parametrize("body", [b"", b"base64:YQ==", b"\x00", "\ufffe".encode(), b"\xff\xfe"])
def test_bytes_that_are_no_text_arrive_as_they_were(queue: SqsJobQueue, body: bytes) -> None:
    queue.send([Message(body)])
    assert bodies(queue) == [body]


def test_what_is_text_can_be_read_by_anyone(queue: SqsJobQueue, clients: AmazonClients) -> None:
    queue.send([Message('{"table": "flüge"}\n'.encode())])
    (message,) = clients.sqs.receive_message(QueueUrl=queue._url)["Messages"]
    assert message["Body"] == '{"table": "flüge"}\n'


def test_a_long_poll_waits_for_a_first_message(queue: SqsJobQueue) -> None:
    assert queue.receive(messages_max=1, hidden_seconds=1, wait_seconds=1) == []
    queue.send([Message(b"a")])
    (message,) = queue.receive(messages_max=1, hidden_seconds=1, wait_seconds=20)
    assert message.body == b"a"


def test_a_queue_that_is_not_there_is_named(clients: AmazonClients, queue: SqsJobQueue) -> None:
    gone = SqsJobQueue(clients, queue._url.replace("test-", "no-"), rng=system_random())
    with pytest.raises(InvalidError, match="no such queue"):
        gone.send([Message(b"a")])
    queues = SqsJobQueues(clients, {"compaction": queue._url}, rng=system_random())
    with pytest.raises(InvalidError, match="no such queue") as refused:
        queues.open("compactoin")
    assert "compaction" in str(refused.value)
    with pytest.raises(InvalidError, match="FIFO"):
        SqsJobQueue(clients, "http://there/queue", rng=system_random())


def test_a_queue_without_dead_letters_is_refused(
    clients: AmazonClients, ministack: S3Server
) -> None:
    name = f"{ministack.new_prefix()}.fifo"
    made = clients.sqs.create_queue(QueueName=name, Attributes={"FifoQueue": "true"})
    with pytest.raises(InvalidError, match="without dead letters"):
        SqsJobQueue(clients, made["QueueUrl"], rng=system_random()).depth()


def test_a_job_longer_than_its_time_out_of_sight_is_kept_hidden(queue: SqsJobQueue) -> None:
    queue.send([Message(b"a")])
    (message,) = queue.receive(messages_max=1, hidden_seconds=2)
    with keep_hidden(queue, message.receipt, hidden_seconds=2):
        SystemClock().sleep(3.5)
        assert bodies(queue) == []
    queue.delete(message.receipt)
    assert queue.depth() == (0, 0)
