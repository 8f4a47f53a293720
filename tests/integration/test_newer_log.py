"""A newer release writes to a log: each function and task of ours gives its message back, and no
user is told that a good request was rejected."""

import json
from functools import partial
from pathlib import Path

import pytest

from lakebed.backends.aws.job_queues import received_record
from lakebed.backends.local import LocalObjectStore
from lakebed.backends.memory import MemoryObjectStore
from lakebed.backends.system import SystemClock
from lakebed.bootstrap.functions import committer, dead_letters
from lakebed.bootstrap.functions.bulk_import_start import App as BulkImportApp
from lakebed.bootstrap.functions.query_answers import QueuedQueries, answers_over
from lakebed.bootstrap.tasks.compaction_task import compact_from
from lakebed.bulk_import.requests import ImportRequests
from lakebed.bulk_import.start_runs import StartRuns
from lakebed.errors import NewerFormatError
from lakebed.ingest.allowed_files import AllowedFiles
from lakebed.ingest.ingest_message import IngestFromMessages
from lakebed.model.jobs import (
    BULK_IMPORT_QUEUE,
    COMPACTION_QUEUE,
    INGEST_QUEUE,
    QUERY_QUEUE,
    TICK_KINDS,
    TableMessage,
    encode_table_message,
)
from lakebed.model.names import JobId, TableId, TransactionNumber
from lakebed.ports.job_queue import UPGRADE_WAIT_SECONDS, Message
from lakebed.ports.job_tracker import JobEvent
from lakebed.statestore.log_entries.codec import ENTRY_FORMAT
from lakebed.statestore.queued_commits import COMMIT_QUEUE
from lakebed.tasks.task_loop import TaskLoop
from lakebed.tasks.worker import FailurePolicy, Worker
from lambdas.bulk_import.start import start
from lambdas.committer.commit import commit
from lambdas.dead_letters.give_up import give_up
from lambdas.query.answer import answer
from lambdas.query.handle import keep
from lambdas.shape import batch_handler, invoked_handler, scheduled_handler, sent_handler
from tests.dsl.memory_instance import MemoryInstance, Run, once
from tests.dsl.spark_platform import SparkPlatform

QUERY = {"id": "q", "table": "trips", "ranges": [{}]}


class Newer:
    """An instance whose table `trips` has an entry of a newer release at its log's end."""

    def __init__(self, instance: MemoryInstance, folder: Path) -> None:
        self.instance = instance
        self.folder = folder
        instance.given_table("trips")
        instance.given_rows("trips", 10, job="one")
        instance.given_rows("trips", 10, job="two")

    @property
    def table(self) -> TableId:
        (entry,) = self.instance.registry.list()
        return entry.id

    def when_a_newer_release_commits(self) -> None:
        number = TransactionNumber(self.instance.number("trips") + 1)
        body = bytes([ENTRY_FORMAT + 1, 0]) + b"what only it can read"
        self.instance.logs.open(self.table).append(number, body)

    def send(self, kind: str, asked: object) -> None:
        body = asked if isinstance(asked, bytes) else json.dumps(asked).encode()
        self.instance.queues.open(kind).send([Message(body, message_group="g")])

    def depth(self, kind: str) -> tuple[int, int]:
        return self.instance.queues.open(kind).depth()

    def told(self, job: str) -> list[tuple[JobEvent, bool]]:
        """Return what was told of a job, and whether each says that we are too old."""
        tracker = self.instance.tracker
        reports = [
            report
            for table in (self.table, TableId("none"))
            for report in tracker.history(table, JobId(job))
        ]
        return [(r.event, r.reason.startswith(NewerFormatError.code())) for r in reports]

    def queries(self) -> QueuedQueries:
        lake = self.instance.lake
        (self.folder / "results").mkdir()
        answers = answers_over(
            query=lake.query,
            find_table=lake.catalog.find,
            tracker=self.instance.tracker,
            clock=self.instance.clock,
            results=LocalObjectStore(self.folder / "results", SystemClock()),
            location="location",
        )
        return QueuedQueries(
            answers, self.instance.queues.open(QUERY_QUEUE), received=received_record
        )


@pytest.fixture
def newer(instance: MemoryInstance, tmp_path: Path) -> Newer:
    return Newer(instance, tmp_path)


@pytest.mark.parametrize("kind", TICK_KINDS)
def test_scheduled_work_gives_its_message_back(newer: Newer, kind: str) -> None:
    newer.when_a_newer_release_commits()
    body = encode_table_message(TableMessage(newer.table))
    newer.send(kind, body)
    handler = newer.instance.handler_of(kind)
    assert newer.instance.when_worked(kind, handler) == [body.decode()]
    assert newer.depth(kind) == (1, 0)


def test_a_query_that_waits_is_not_rejected(newer: Newer) -> None:
    newer.when_a_newer_release_commits()
    newer.send(QUERY_QUEUE, QUERY)
    handler = sent_handler(once(newer.queries()), keep)
    assert len(newer.instance.when_worked(QUERY_QUEUE, handler)) == 1
    assert newer.depth(QUERY_QUEUE) == (1, 0), "it waits, and is no dead letter"
    assert newer.told("q") == [("failed", True)]


def test_who_waits_for_an_answer_gets_an_error_of_the_run(newer: Newer) -> None:
    newer.when_a_newer_release_commits()
    handler = invoked_handler(once(newer.queries()._answers), answer)
    with pytest.raises(NewerFormatError, match="upgrade"):
        handler(QUERY, Run())
    assert newer.told("q") == [("failed", True)]


def test_a_queued_commit_waits_until_the_committer_is_upgraded(newer: Newer) -> None:
    newer.instance.given_rows("trips", 10, job="late", queued=True)
    newer.when_a_newer_release_commits()
    queue = newer.instance.queues.open(COMMIT_QUEUE)
    app = committer.App(
        newer.instance.stores,
        queue=queue,
        tracker=newer.instance.tracker,
        received=received_record,
    )
    assert len(newer.instance.when_worked(COMMIT_QUEUE, batch_handler(once(app), commit))) == 1
    assert newer.depth(COMMIT_QUEUE) == (1, 0)
    assert [event for event, _ in newer.told("late")] == ["started", "finished"]
    newer.instance.clock.advance(UPGRADE_WAIT_SECONDS[0] - 1)
    assert queue.receive(messages_max=1, hidden_seconds=1) == []
    newer.instance.clock.advance(2)
    assert len(queue.receive(messages_max=1, hidden_seconds=1)) == 1


def test_a_message_of_commits_in_a_newer_form_waits(newer: Newer) -> None:
    newer.send(COMMIT_QUEUE, b"\xff of a newer release")
    app = committer.App(
        newer.instance.stores,
        queue=newer.instance.queues.open(COMMIT_QUEUE),
        tracker=newer.instance.tracker,
        received=received_record,
    )
    assert len(newer.instance.when_worked(COMMIT_QUEUE, batch_handler(once(app), commit))) == 1
    newer.instance.clock.advance(UPGRADE_WAIT_SECONDS[0] + 1)
    assert newer.instance.queues.open(COMMIT_QUEUE).receive(messages_max=1, hidden_seconds=1)


def test_a_bulk_import_is_not_rejected(newer: Newer) -> None:
    newer.when_a_newer_release_commits()
    newer.send(BULK_IMPORT_QUEUE, {"id": "b", "table": "trips", "files": ["s3://landing/a.csv"]})
    instance, queue = newer.instance, newer.instance.queues.open(BULK_IMPORT_QUEUE)
    service = StartRuns(
        find_table=instance.lake.catalog.find,
        find_id=instance.lake.catalog.find_id,
        batches=instance.batches,
        check_file=lambda _: None,
        requests=ImportRequests(MemoryObjectStore(instance.clock)),
        platforms={"serverless": SparkPlatform()},
        tracker=instance.tracker,
        clock=instance.clock,
    )
    app = BulkImportApp(service, queue, received=received_record)
    assert len(instance.when_worked(BULK_IMPORT_QUEUE, sent_handler(once(app), start))) == 1
    assert newer.depth(BULK_IMPORT_QUEUE) == (1, 0)
    assert ("rejected", True) not in newer.told("b")


def test_an_ingest_task_ends_and_the_job_is_not_rejected(newer: Newer, tmp_path: Path) -> None:
    newer.when_a_newer_release_commits()
    lake, queue = newer.instance.lake, newer.instance.queues.open(INGEST_QUEUE)
    newer.send(INGEST_QUEUE, {"id": "i", "table": "trips", "files": [str(tmp_path / "a.csv")]})
    service = IngestFromMessages(
        ingest=lake.ingest,
        find_table=lake.catalog.find,
        files=AllowedFiles([str(tmp_path)], objects=None, local=None),
        tracker=newer.instance.tracker,
        clock=newer.instance.clock,
    )
    worker = Worker(
        queue=queue,
        handle=service.run,
        failures=FailurePolicy(refused=(), retry_seconds=120, bugs=True),
    )
    assert TaskLoop(worker, clock=newer.instance.clock).run() == "outdated"
    assert newer.depth(INGEST_QUEUE) == (1, 0)
    assert newer.told("i") == [("failed", True)]


def test_a_compaction_job_that_only_a_newer_release_can_run_keeps_its_files(newer: Newer) -> None:
    instance = newer.instance
    queue = instance.queues.open(COMPACTION_QUEUE)
    instance.lake.create_jobs.run(instance.lake.catalog.find("trips"), everything=True)
    with instance.lake.catalog.find("trips").head.reading() as state:
        (job,) = state.jobs()
    number = TransactionNumber(instance.number("trips") + 1)
    newer.when_a_newer_release_commits()
    worker = Worker(queue=queue, handle=partial(compact_from, instance.lake))
    for seconds in UPGRADE_WAIT_SECONDS:
        assert TaskLoop(worker, clock=instance.clock).run() == "outdated"
        instance.clock.advance(seconds + 1)
    assert worker.step() is None
    assert newer.depth(COMPACTION_QUEUE) == (0, 1)

    upgraded = instance.function_stores("upgraded")
    del instance.logs.open(newer.table)._bodies[number]  # now it is one that we can read
    app = dead_letters.app_over(
        upgraded,
        jobs=queue,
        commits=instance.queues.open(COMMIT_QUEUE),
        tracker=instance.tracker,
    )
    scheduled_handler(once(app), give_up)({"time": "now"}, Run())
    assert newer.depth(COMPACTION_QUEUE) == (0, 0)
    with instance.lake.catalog.find("trips").head.reading() as state:
        assert state.jobs() == [job], "it is sound, and will be sent again"
    assert ("given up", False) not in newer.told(job.id)
