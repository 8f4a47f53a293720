"""A process without queues loses what it sends, and refuses what any queue refuses."""

import pytest

from lakebed.backends.aws.absent_queues import AbsentQueues
from lakebed.errors import InvalidError
from lakebed.ports.job_queue import BODY_BYTES_MAX, Message


def test_what_is_sent_to_an_absent_queue_is_lost() -> None:
    queues = AbsentQueues()
    queues.open("compaction").send([Message(b"a")])
    again = queues.open("compaction")
    assert again.receive(messages_max=10, hidden_seconds=1.0, wait_seconds=60.0) == []
    assert again.dead_letters(messages_max=10) == []
    assert again.depth() == (0, 0)
    assert queues.names() == []


def test_a_message_that_no_queue_takes_is_refused_by_an_absent_one_too() -> None:
    with pytest.raises(InvalidError, match="too large"):
        AbsentQueues().open("compaction").send([Message(bytes(BODY_BYTES_MAX + 1))])
