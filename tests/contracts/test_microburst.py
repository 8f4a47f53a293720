"""Faults that microburst tells, of which the worst is a lost answer: what was asked for is done,
and who asked does not know. Nothing is lost by it, and nothing is there twice.

Faults that lose no answer are the backend `stormy` of the contracts.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TypeVar

import pytest

from lakebed.backends.aws.job_queues import SqsJobQueue
from lakebed.backends.system import system_random
from lakebed.errors import ObjectExistsError, UnavailableError, UnknownOutcomeError
from lakebed.ports.job_queue import Message
from tests.contracts.amazon.test_s3_objects import facts, put
from tests.contracts.crowd import Place, check_all_there, commit_some, new_place, spawn
from tests.servers.microburst import (
    CONNECTION_UNANSWERED,
    DYNAMODB,
    RESET,
    SLOW,
    SQS,
    UNANSWERED,
    Microburst,
    busy_object_store,
    refused,
    weather,
)
from tests.servers.s3 import S3Server
from tests.servers.sqs import make_queue

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

WRITERS, COMMITS = 6, 12
SENDERS, RECEIVERS, MESSAGES = 3, 3, 40
HIDDEN_SECONDS = 20
"""After which messages of an answer that was lost come again, and those that are in hand for longer
than that, as they may be on a busy machine."""
RECEIVES_MAX = 100
WAIT_SECONDS_MAX = 300

T = TypeVar("T")


def test_commits_whose_answers_are_lost_are_in_the_log_once(
    ministack: S3Server, faulty_requests: Microburst, faulty_connections: Microburst
) -> None:
    calm = new_place(ministack, ministack)
    faulty_requests.follow(
        weather([UNANSWERED, refused("ThrottlingException", 400), RESET, SLOW], service=DYNAMODB)
    )
    faulty_connections.follow(weather([CONNECTION_UNANSWERED, busy_object_store(), RESET, SLOW]))
    log = S3Server("log", faulty_requests.url)
    place = Place(log, calm.name, S3Server("objects", faulty_connections.url), calm.prefix)
    jobs = [(place, worker, COMMITS) for worker in range(WRITERS)]
    with spawn.Pool(WRITERS) as pool:
        done = pool.starmap(commit_some, jobs, chunksize=1)
    acknowledged = {id_: number for one in done for id_, number in one.items()}
    assert len(acknowledged) == WRITERS * COMMITS
    check_all_there(calm, acknowledged)
    faults = {"response", "error:ThrottlingException", "reset", "latency"}
    assert faults == set(faulty_requests.met())
    assert {"cut_reply", "respond", "reset", "latency"} == set(faulty_connections.met())


@pytest.fixture
def calm_queue(ministack: S3Server) -> Iterator[SqsJobQueue]:
    with closing(ministack.clients()) as clients:
        url = make_queue(clients, ministack.new_prefix(), receives_max=RECEIVES_MAX)
        yield SqsJobQueue(clients, url, rng=system_random())


def test_messages_whose_answers_are_lost_are_handled_once(
    ministack: S3Server, faulty_requests: Microburst, calm_queue: SqsJobQueue
) -> None:
    rules = [UNANSWERED, refused("ThrottlingException", 400), refused("ServiceUnavailable", 503)]
    faulty_requests.follow(weather([*rules, RESET, SLOW], service=SQS))
    sent = {f"{sender}-{n}".encode() for sender in range(SENDERS) for n in range(MESSAGES)}
    handled: list[bytes] = []
    late: set[bytes] = set()
    end = time.monotonic() + WAIT_SECONDS_MAX

    def send(queue: SqsJobQueue, sender: int) -> None:
        for n in range(MESSAGES):
            name = f"{sender}-{n}"
            until_answered(lambda name=name: queue.send([Message(name.encode(), once=name)]))

    def handle(queue: SqsJobQueue) -> None:
        while len(set(handled)) < len(sent) and time.monotonic() < end:
            began = time.monotonic()
            for message in until_answered(
                lambda: queue.receive(messages_max=4, hidden_seconds=HIDDEN_SECONDS, wait_seconds=1)
            ):
                handled.append(message.body)
                until_answered(lambda receipt=message.receipt: queue.delete(receipt))
                if time.monotonic() - began >= HIDDEN_SECONDS:
                    late.add(message.body)

    with closing(ministack.clients(url=faulty_requests.url)) as clients:
        queue = SqsJobQueue(clients, calm_queue._url, rng=system_random())
        work = [threading.Thread(target=send, args=(queue, n)) for n in range(SENDERS)]
        work += [threading.Thread(target=handle, args=(queue,)) for _ in range(RECEIVERS)]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
    assert set(handled) == sent
    assert {body for body, times in Counter(handled).items() if times > 1} <= late
    assert late or calm_queue.depth() == (0, 0)
    refusals = {"error:ThrottlingException", "error:ServiceUnavailable"}
    assert {"response", "reset", "latency"} | refusals == set(faulty_requests.met())


def until_answered(call: Callable[[], T]) -> T:
    """Ask again until there is an answer."""
    end = time.monotonic() + WAIT_SECONDS_MAX
    while True:
        try:
            return call()
        except (UnavailableError, UnknownOutcomeError):
            if time.monotonic() > end:
                raise


def test_a_put_whose_answer_was_lost_is_found_by_its_own_second_try(
    ministack: S3Server, faulty_connections: Microburst
) -> None:
    store = ministack.store(ministack.new_prefix(), url=faulty_connections.url)
    faulty_connections.follow([{**CONNECTION_UNANSWERED, "payload": "^PUT ", "times": 1}])
    with pytest.raises(ObjectExistsError):
        put(store, "a")
    assert store.look("a") == facts("a", b"body")
    assert faulty_connections.met() == {"cut_reply": 1}
