"""Stages in this process: an instance in memory, and a lake in a directory."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.backends.memory.clock import VirtualClock
from lakebed.bootstrap.app import App
from lakebed.bootstrap.local import open_local
from lakebed.compaction.dead_letters import GiveUpDeadJobs
from lakebed.lake import Lake
from lakebed.model.jobs import COMPACTION_CREATION, COMPACTION_QUEUE
from lakebed.ports.job_queue import Message
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.queued_commits import COMMIT_QUEUE
from lakebed.table import Table
from lambdas.shape import Handler
from tests.dsl.memory_instance import HIDDEN_SECONDS, MemoryInstance, Run
from tests.dsl.stage import Work, work_until_done
from tests.dsl.tasks import run_compaction_task, run_ingest_task

DEAD = "-dead"
RECEIVES_MAX = 20
"""More than any queue allows of one message."""


class _LocalStage:
    """What stages in this process share. folder: where users' files lie, too."""

    def __init__(self, app: App, clock: VirtualClock, folder: Path) -> None:
        self.lake = Lake(app)
        self._app = app
        self._clock = clock
        self._landing = folder / "landing"

    def put(self, name: str, rows: pa.Table) -> str:
        path = self._landing / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, path)
        return str(path)

    def send(self, queue: str, message: Mapping[str, object]) -> None:
        body, group = json.dumps(message).encode(), str(message["id"])
        self._app.queues.open(queue).send([Message(body, group=group)])

    def advance(self, seconds: float) -> None:
        self._clock.advance(seconds)

    def waiting(self, queue: str) -> int:
        waiting, dead = self._app.queues.open(queue.removesuffix(DEAD)).depth()
        return dead if queue.endswith(DEAD) else waiting

    def lose_messages(self, queue: str) -> None:
        waiting = self._app.queues.open(queue)
        while found := waiting.receive(messages_max=10, hidden_seconds=HIDDEN_SECONDS):
            waiting.delete(*(message.receipt for message in found))

    def give_up_messages(self, queue: str) -> None:
        waiting = self._app.queues.open(queue)
        for _ in range(RECEIVES_MAX):
            waiting.receive(messages_max=10, hidden_seconds=1)
            self.advance(2)
        assert not self.waiting(queue)

    def stored_files(self, table: Table) -> int:
        return len(list(self._app.objects.list(f"tables/{table._opened.id}/files/")))


class DirectoryStage(_LocalStage):
    """A lake in a directory: one process does all of the work, each kind when it is asked to."""

    def __init__(self, folder: Path) -> None:
        clock = VirtualClock()
        super().__init__(open_local(folder / "lake", clock=clock), clock, folder)

    def work(self, *kinds: Work) -> None:
        app = self._app
        for kind in kinds:
            if kind == "ingest":
                run_ingest_task(app, self._landing)
            elif kind == "commits":
                self.lake.commit_queued()
            elif kind == "compaction":
                work_until_done(self._create_jobs, partial(run_compaction_task, app))
            elif kind == "compaction-creation":
                self._create_jobs()
            elif kind == "splitting":
                self._each(app.split_leaves.run)
            elif kind == "dead-letters":
                give_up_dead_jobs(app).run()
            else:
                self._each(app.collect.run)

    def _create_jobs(self) -> int:
        self._each(self._app.create_jobs.run)
        return self.waiting(COMPACTION_QUEUE)

    def _each(self, act: Callable[[OpenTable], int]) -> None:
        for entry in self._app.catalog.list():
            act(self._app.catalog.find(entry.name))


def give_up_dead_jobs(app: App) -> GiveUpDeadJobs:
    return GiveUpDeadJobs(
        jobs=app.queue,
        commits=app.commit_queue,
        objects=app.objects,
        find_table=app.catalog.find_id,
        give_up=app.give_up,
        tracker=app.tracker,
    )


class MemoryStage(_LocalStage):
    """An instance in memory: ticks of schedules, and functions and tasks that work on queues."""

    def __init__(self, folder: Path) -> None:
        instance = MemoryInstance(folder)
        super().__init__(instance.lake, instance.clock, folder)
        self._instance = instance
        self._ticks = 0
        self._dying: set[str] = set()
        self._times = 1

    def work(self, *kinds: Work) -> None:
        for kind in kinds:
            if kind == "ingest":
                run_ingest_task(self._app, self._landing)
            elif kind == "commits":
                self._call(COMMIT_QUEUE, self._instance.committer())
            elif kind == "compaction":
                work_until_done(self._create_jobs, partial(run_compaction_task, self._app))
            elif kind == "dead-letters":
                self._instance.dead_letters_function()({"time": "now"}, Run())
            else:
                self._fire(kind)

    def kill_next(self, work: Work) -> None:
        self._dying.add(work)

    def deliver_twice(self) -> None:
        self._times = 2

    def fire_schedule(self, work: Work, at: str) -> None:
        self._instance.trigger_of(work)({"time": at}, Run())

    def redeliver(self, work: Work) -> None:
        self.advance(HIDDEN_SECONDS)
        self._call(work, self._instance.handler_of(work))

    def _create_jobs(self) -> int:
        self._fire(COMPACTION_CREATION)
        return self.waiting(COMPACTION_QUEUE)

    def _fire(self, work: str) -> None:
        """Let a schedule go off, and its function work."""
        self._ticks += 1
        self.fire_schedule(work, str(self._ticks))
        self._call(work, self._instance.handler_of(work))

    def _call(self, queue: str, function: Handler) -> None:
        if queue in self._dying:
            self._dying.remove(queue)
            self._instance.when_killed(queue, function)
        else:
            assert self._instance.when_worked(queue, function, times=self._times) == []
