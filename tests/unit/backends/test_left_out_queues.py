"""Queues of an instance that was deployed without some stacks."""

import random
from collections.abc import Iterator

import pytest

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.job_queues import SqsJobQueues
from lakebed.backends.memory.job_queues import MemoryJobQueues
from lakebed.backends.memory.job_tracker import MemoryJobTracker
from lakebed.backends.memory.table_registry import MemoryTableRegistry
from lakebed.config.deployments.optional_stacks import STACK_NAMES, left_out_of
from lakebed.errors import InvalidError
from lakebed.inspection.dead_letters import DeadLetters
from lakebed.ports.job_queue import JobQueues
from tests.unit.backends.amazon_clients import made_up_clients

URLS = {"commits": "https://queue/commits.fifo", "query": "https://queue/query.fifo"}


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> Iterator[AmazonClients]:
    with made_up_clients(monkeypatch, tries_max=1) as made:
        yield made


def letters_of(queues: JobQueues, clients: AmazonClients) -> DeadLetters:
    return DeadLetters(
        queues=queues,
        registry=MemoryTableRegistry(),
        tracker=MemoryJobTracker(),
        clock=clients.clock,
    )


def test_a_queue_that_was_left_out_says_so_and_what_to_do(clients: AmazonClients) -> None:
    left_out = left_out_of("dev", set(STACK_NAMES) - {"ingest"})
    queues = SqsJobQueues(clients, URLS, rng=random.Random(0), refuse=left_out.refuse_queue)
    assert queues.open("query") is not None
    with pytest.raises(InvalidError, match=r"without ingest \(instance=dev\): .*`lakebed ingest`"):
        queues.open("ingest")
    with pytest.raises(InvalidError, match=r"no such queue \(queue=comits\): did you mean 'comm"):
        queues.open("comits")
    letters = letters_of(queues, clients)
    assert letters.known(["query"]) == ["query"]
    with pytest.raises(InvalidError, match="this instance was deployed without ingest"):
        letters.known(["ingest"])


def test_a_lake_that_never_had_it_does_not_know_it(clients: AmazonClients) -> None:
    letters = letters_of(MemoryJobQueues(clients.clock), clients)
    with pytest.raises(InvalidError, match="there is no such queue"):
        letters.known(["ingest"])
