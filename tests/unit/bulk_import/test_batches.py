"""Batches of submitted files that a bulk import takes in, all or none; then an ingest follows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lakebed.bootstrap.batching import batches_of, run_batches
from lakebed.bulk_import.requests import batch_in, body_of_batch
from lakebed.errors import InvalidError, UnreadableInputError
from lakebed.ingest.batch_files import BatchFiles
from lakebed.model.jobs import BULK_IMPORT_QUEUE, INGEST_QUEUE, batch_message_in
from lakebed.model.names import Micros
from lakebed.ports.file_batches import BatchTarget, SubmittedFile
from lakebed.ports.job_queue import JobQueue
from tests.dsl.bulk_import_story import BulkImportStory
from tests.unit.tables.lakes import ids

TARGETS: tuple[tuple[BatchTarget, str], ...] = (
    ("ingest", INGEST_QUEUE),
    ("bulk-import", BULK_IMPORT_QUEUE),
)


class BatchImportStory(BulkImportStory):
    """Files are submitted, and become bulk imports."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.table.change_settings(batch_target="bulk-import", batch_seconds_max=0)
        self.queues: dict[BatchTarget, JobQueue] = {
            target: self.app.queues.open(queue) for target, queue in TARGETS
        }

    def when_batched(self, seconds: float = 1) -> None:
        self.clock.advance(seconds)
        BatchFiles(
            batches=batches_of(self.app),
            queues=self.queues,
            tracker=self.app.tracker,
            clock=self.clock,
        ).run(self.table._opened)

    def sent_to(self, target: BatchTarget) -> list[bytes]:
        """Take what waits."""
        queue = self.queues[target]
        found = queue.receive(messages_max=10, hidden_seconds=60)
        queue.delete(*(one.receipt for one in found))
        return [one.body for one in found]

    def when_submitted(self, *names: str) -> bytes:
        """Submit files and batch them. Returns the message for the bulk import."""
        self.table.submit(names)
        self.when_batched()
        (body,) = self.sent_to("bulk-import")
        return body


@pytest.fixture
def story(tmp_path: Path) -> BatchImportStory:
    return BatchImportStory(tmp_path)


def test_a_batch_is_taken_in_by_one_run_of_spark(story: BatchImportStory) -> None:
    body = story.when_submitted(*(story.given_file(f"{k}.parquet", k) for k in "ab"))
    story.when_sent(body)
    story.when_sent(body)
    assert story.platform.started() == 1
    story.when_driven()
    assert ids(story.table) == ["a", "b"]
    story.when_batched()
    (report,) = story.table.batches()
    assert (report.target, report.state, report.refused) == ("bulk-import", "committed", ())
    assert story.app.batches is not None
    assert story.app.batches.tables() == []
    story.when_sent(body, at=2)
    assert story.platform.started() == 1, "the log has it"
    assert story.sent_to("ingest") == []


def test_a_file_that_was_changed_is_left_out_by_the_ingest_that_follows(
    story: BatchImportStory,
) -> None:
    names = [story.given_file(f"{k}.parquet", k) for k in "ab"]
    body = story.when_submitted(*names)
    story.when_sent(body)
    story.given_file("a.parquet", "changed")
    os.utime(names[0], ns=(1, 1))
    with pytest.raises(UnreadableInputError):
        story.when_driven()
    assert story.events(story.table.batches()[0].job)[-1] == "rejected"
    story.when_batched()
    (again,) = story.sent_to("ingest")
    message = batch_message_in(again)
    assert message is not None
    run_batches(story.app).run(message)
    assert ids(story.table) == ["b"]
    (report,) = story.table.batches()
    assert report.state == "committed"
    assert [one.file for one in report.refused] == [names[0]]
    story.when_batched()
    assert story.sent_to("bulk-import") == []
    with pytest.raises(InvalidError, match="another request"):
        story.when_driven()
    assert ids(story.table) == ["b"], "the run that was refused comes too late"


def test_a_run_that_is_not_heard_of_is_sent_again_as_a_bulk_import(
    story: BatchImportStory,
) -> None:
    body = story.when_submitted(story.given_file("a.parquet", "a"))
    story.when_batched(5 * 3_600)
    assert story.sent_to("bulk-import") == []
    story.when_batched(3_600)
    assert story.sent_to("bulk-import") == [body]


def test_a_batch_of_a_dropped_table_starts_nothing(story: BatchImportStory) -> None:
    body = story.when_submitted(story.given_file("a.parquet", "a"))
    story.lake.drop_table("trips")
    story.when_sent(body)
    assert not story.platform.started()


def test_what_a_request_says_of_a_batch_is_read_again() -> None:
    files = (SubmittedFile("s3://b/ä.csv", 1, "etag", Micros(5)),)
    assert batch_in(body_of_batch(files)) == files
    for other in ('{"table": "t", "files": ["a"]}', '{"batch":7}', "", "{"):
        assert batch_in(other) is None
