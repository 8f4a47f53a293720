"""What people get who invoke the query function, or send it a message."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakebed
from lakebed.backends.aws.job_queues import _text_of, received_record
from lakebed.backends.local import LocalObjectStore
from lakebed.backends.memory import MemoryJobQueue, VirtualClock
from lakebed.backends.system import SystemClock
from lakebed.bootstrap.functions import query_answers
from lakebed.bootstrap.functions.query_answers import App, QueuedQueries, answers_over
from lakebed.bootstrap.functions.sent_messages import RETRY_SECONDS
from lakebed.bootstrap.local import open_local
from lakebed.config.job_queues import QUERY_HELD_SECONDS
from lakebed.errors import UnavailableError
from lakebed.lake import Lake
from lakebed.model.names import Micros
from lakebed.ports.job_queue import Message, Received, message_job
from lakebed.query.answer_messages import AnswerMessages
from lambdas.query.answer import answer
from lambdas.query.handle import keep
from lambdas.shape import invoked_handler, sent_handler
from tests.dsl.memory_instance import Run, once

ASKED = {"id": "q", "table": "trips", "ranges": [{}]}


@pytest.fixture
def build(tmp_path: Path) -> Iterator[Callable[[], App]]:
    app = open_local(tmp_path / "lake")
    schema = lakebed.schema_of(row_keys={"id": "string"})
    Lake(app).create_table("trips", schema).ingest(pa.table({"id": ["a", "b"]}))
    (tmp_path / "results").mkdir()
    results = LocalObjectStore(tmp_path / "results", SystemClock())
    yield once(
        answers_over(
            query=app.query,
            find_table=app.catalog.find,
            tracker=app.tracker,
            clock=app.clock,
            results=results,
            location="location",
        )
    )
    app.close()


class Queued:
    """A queue with messages, and who works on them."""

    def __init__(self, answers: App) -> None:
        self.clock = VirtualClock()
        self.queue = MemoryJobQueue(self.clock)
        self.answers = QueuedQueries(answers, self.queue, received=received_record)
        self.handler = sent_handler(lambda: self.answers, keep)

    def send(self, *bodies: str) -> list[str]:
        """Send messages, and let the function work on them. Returns which were not done."""
        self.queue.send(
            [Message(body.encode(), message_group=f"{n}") for n, body in enumerate(bodies)]
        )
        return self.run()

    def run(self) -> list[str]:
        found = self.queue.receive(messages_max=10, hidden_seconds=1_800)
        records = [record(message, came_at=self.clock.now()) for message in found]
        answer = self.handler({"Records": records}, Run())
        assert answer is not None
        failed = [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]
        self.queue.delete(*(m.receipt for m in found if m.receipt not in failed))
        return failed


def record(message: Received, *, came_at: Micros) -> dict[str, Any]:
    """Return a message as SQS hands it over. came_at: when it came into the queue, which is later
    than it was sent if it was given up meanwhile."""
    attributes = {
        "MessageGroupId": message.message_group,
        "SentTimestamp": f"{came_at // 1_000}",
        "ApproximateReceiveCount": str(message.receives),
    }
    return {
        "messageId": message.receipt,
        "receiptHandle": message.receipt,
        "body": _text_of(message.body),
        "attributes": attributes,
        "messageAttributes": {"sent": {"dataType": "Number", "stringValue": f"{message.sent_at}"}},
    }


def test_who_invokes_it_gets_rows_or_a_reason(build: Callable[[], App]) -> None:
    handler = invoked_handler(build, answer)
    found = handler(ASKED, Run())
    assert found is not None
    assert found["data"].splitlines() == ['{"id":"a"}', '{"id":"b"}']
    refused = handler(ASKED | {"limit": "many"}, Run())
    assert refused is not None
    assert refused["error"] == "invalid"
    assert "limit" in refused["reason"]


def test_what_can_never_work_is_a_dead_letter_at_once(
    build: Callable[[], App], tmp_path: Path
) -> None:
    queued = Queued(build())
    assert queued.send(json.dumps(ASKED), "{") == []
    assert queued.queue.depth() == (0, 1)
    (letter,) = queued.queue.dead_letters(messages_max=10)
    assert letter.body == b"{"
    (manifest,) = (tmp_path / "results").rglob("manifest.json")
    assert json.loads(manifest.read_text())["rows"] == 2


def test_a_message_without_an_id_that_is_sent_again_is_the_same_job(
    build: Callable[[], App], tmp_path: Path
) -> None:
    queued = Queued(build())
    body = json.dumps({"table": "trips", "ranges": [{}], "columns": ["id"]}).encode()
    sent_at = queued.clock.now()
    for _ in range(2):
        queued.queue.send([Message(body, sent_at=sent_at)])
        assert queued.run() == []
        queued.clock.advance(3_600)
    (manifest,) = (tmp_path / "results").rglob("manifest.json")
    assert message_job(body, sent_at) == json.loads(manifest.read_text())["id"]


def test_a_query_whose_function_died_comes_back_soon(
    build: Callable[[], App], monkeypatch: pytest.MonkeyPatch
) -> None:
    queued = Queued(build())

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(AnswerMessages, "keep", killed)
        with pytest.raises(KeyboardInterrupt):
            queued.send(json.dumps(ASKED))
    assert queued.queue.receive(messages_max=1, hidden_seconds=1) == []
    queued.clock.advance(QUERY_HELD_SECONDS)
    assert queued.run() == []
    assert queued.queue.depth() == (0, 0)


def test_a_query_that_takes_long_stays_out_of_sight(
    build: Callable[[], App], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_answers, "QUERY_HELD_SECONDS", 0.03)
    queued = Queued(build())
    extended, again = queued.queue.extend, threading.Event()
    seen: list[float] = []

    def noted(receipt: str, *, hidden_seconds: float) -> None:
        extended(receipt, hidden_seconds=hidden_seconds)
        seen.append(hidden_seconds)
        if len(seen) == 3:
            again.set()

    monkeypatch.setattr(queued.queue, "extend", noted)
    monkeypatch.setattr(AnswerMessages, "keep", lambda *_, **__: again.wait(60))
    assert queued.send(json.dumps(ASKED)) == []
    assert seen[:3] == [0.03] * 3


def test_what_fails_comes_back_soon(
    build: Callable[[], App], monkeypatch: pytest.MonkeyPatch
) -> None:
    queued = Queued(build())

    def busy(*_: object, **__: object) -> None:
        raise UnavailableError("the store is busy")

    with monkeypatch.context() as patch:
        patch.setattr(AnswerMessages, "keep", busy)
        assert len(queued.send(json.dumps(ASKED))) == 1
    assert queued.queue.receive(messages_max=1, hidden_seconds=1) == []
    queued.clock.advance(RETRY_SECONDS)
    assert queued.run() == []
    assert queued.queue.depth() == (0, 0)
