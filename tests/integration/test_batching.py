"""Batching as it is deployed: a tick for each table with submitted files, jobs for tasks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lakebed.backends.local.source_files import LocalSourceFiles
from lakebed.bootstrap.tasks.ingest_task import ingest_from
from lakebed.errors import InvalidError
from lakebed.ingest.allowed_files import AllowedFiles
from lakebed.ingest.submit_files import SubmitFiles, Submitted
from lakebed.lake import Lake
from lakebed.model.jobs import BATCHING, INGEST_QUEUE
from lakebed.ports.job_tracker import NO_TABLE
from lakebed.tasks.worker import FailurePolicy, Worker
from tests.dsl.memory_instance import MemoryInstance, Run


class BatchingStory:
    """An instance in memory, a folder that is allowed, and its functions."""

    def __init__(self, instance: MemoryInstance, folder: Path) -> None:
        self.instance = instance
        self.landing = folder / "landing"
        self.landing.mkdir()
        self.outside = folder / "outside"
        self.outside.mkdir()
        self.lake = Lake(instance.lake)
        self._minute = 0

    def given_file(self, name: str, *keys: str, allowed: bool = True) -> str:
        path = (self.landing if allowed else self.outside) / name
        path.write_text("".join(["key,value\n", *(f"{key},1\n" for key in keys)]))
        return str(path)

    def submit(self, table: str, *names: str) -> Submitted:
        entry = self.instance.lake.catalog.entry(table)
        service = SubmitFiles(
            batches=self.instance.batches, files=LocalSourceFiles(), clock=self.instance.clock
        )
        return service.run(entry.id, entry.name, names)

    def tick(self, seconds: float = 0) -> int:
        """Let the schedule go off, and its function work. Returns how many tables it sent."""
        self.instance.clock.advance(seconds)
        self._minute += 1
        trigger = self.instance.trigger_of(BATCHING)
        trigger({"time": f"2026-11-21T20:{self._minute:02d}:00Z"}, Run())
        waiting = self.instance.queues.open(BATCHING).depth()[0]
        handler = self.instance.handler_of(BATCHING)
        assert self.instance.when_worked(BATCHING, handler) == []
        return waiting

    def take_in(self) -> int:
        """Let a task do what waits. Returns how many jobs ended."""
        files = AllowedFiles([str(self.landing)], objects=None, local=LocalSourceFiles())
        worker = Worker(
            queue=self.instance.queues.open(INGEST_QUEUE),
            handle=ingest_from(self.instance.lake, files).run,
            failures=FailurePolicy(refused=(InvalidError,)),
        )
        return worker.run(jobs_max=100)

    def keys(self, table: str) -> list[str]:
        found: list[str] = (
            self.lake.table(table).query(columns=["key"]).read_all().column("key").to_pylist()
        )
        return found


@pytest.fixture
def story(instance: MemoryInstance, tmp_path: Path) -> BatchingStory:
    instance.given_table("trips")
    return BatchingStory(instance, tmp_path)


def test_files_become_rows_by_trigger_batcher_and_task(story: BatchingStory) -> None:
    story.submit("trips", story.given_file("a.csv", "a"), story.given_file("b.csv", "b"))
    assert story.tick() == 1
    assert story.take_in() == 0, "they wait for more"
    assert story.tick(300) == 1
    assert story.take_in() == 1
    assert story.keys("trips") == ["a", "b"]
    assert story.tick() == 1, "the batch is seen to its end"
    assert story.tick() == 0
    assert story.lake.table("trips").batches()[0].state == "committed"


def test_who_submits_nothing_gets_no_tick(story: BatchingStory) -> None:
    story.instance.given_table("idle")
    assert story.tick() == 0
    story.submit("trips", story.given_file("a.csv", "a"))
    assert story.tick() == 1


def test_a_message_of_a_batch_lies_among_other_ingest_jobs(story: BatchingStory) -> None:
    story.submit("trips", story.given_file("a.csv", "a"))
    story.tick(300)
    queue = story.instance.queues.open(INGEST_QUEUE)
    (message,) = queue.receive(messages_max=10, hidden_seconds=1)
    said = json.loads(message.body)
    assert said["table"] == "trips"
    assert said["id"] == f"{said['table_id']}-batch-1"


def test_a_file_outside_the_allowed_sources_is_left_out(story: BatchingStory) -> None:
    outside = story.given_file("x.csv", "x", allowed=False)
    story.submit("trips", story.given_file("a.csv", "a"), outside)
    story.tick(300)
    story.take_in()
    assert story.keys("trips") == ["a"]
    (refused,) = story.lake.table("trips").batches()[0].refused
    assert refused.file == outside
    assert "outside the allowed sources" in refused.reason


def test_the_library_submits_no_file_of_its_own_machine_to_an_instance(
    story: BatchingStory,
) -> None:
    with pytest.raises(InvalidError, match="an instance takes files in from S3"):
        story.lake.table("trips").submit(story.given_file("a.csv", "a"))


def test_offline_tables_are_batched_and_quarantined_ones_are_not(story: BatchingStory) -> None:
    story.instance.given_table("bad")
    for name in ("trips", "bad"):
        story.submit(name, story.given_file(f"{name}.csv", "a"))
    story.lake.set_online("trips", online=False)
    story.lake.quarantine("bad")
    story.tick(300)
    assert story.instance.queues.open(INGEST_QUEUE).depth()[0] == 1


def test_what_waits_for_a_dropped_table_is_forgotten(story: BatchingStory) -> None:
    story.submit("trips", story.given_file("a.csv", "a"))
    story.lake.drop_table("trips")
    assert story.tick(300) == 1
    assert story.tick() == 0
    (report,) = story.instance.tracker.find(NO_TABLE, reports_max=9)
    assert report.event == "rejected"


def test_a_table_whose_log_says_that_it_is_there_is_not_forgotten(story: BatchingStory) -> None:
    story.submit("trips", story.given_file("a.csv", "a"))
    entry = story.instance.registry.list()[0]
    story.instance.registry.release(entry.name, entry.id)  # as while it is being renamed
    story.tick(300)
    assert len(story.instance.batches.pending(entry.id, files_max=9)) == 1


def test_a_function_that_dies_before_its_message_is_deleted_does_no_harm(
    story: BatchingStory,
) -> None:
    story.submit("trips", story.given_file("a.csv", "a"))
    story.instance.clock.advance(300)
    story.instance.trigger_of(BATCHING)({"time": "now"}, Run())
    handler = story.instance.handler_of(BATCHING)
    story.instance.when_killed(BATCHING, handler)
    story.instance.clock.advance(721)
    assert story.instance.when_worked(BATCHING, handler, times=2) == []
    assert story.take_in() == 1
    assert story.keys("trips") == ["a"]
