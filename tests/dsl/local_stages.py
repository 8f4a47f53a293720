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
from lakebed.lake import Lake
from lakebed.model.jobs import COMPACTION_CREATION, COMPACTION_QUEUE
from lakebed.ports.job_queue import Message
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.queued_commits import COMMIT_QUEUE
from lakebed.table import Table
from lambdas.shape import Handler
from tests.dsl.memory_instance import MemoryInstance
from tests.dsl.stage import Work, work_until_done
from tests.dsl.tasks import run_compaction_task, run_ingest_task

DEAD = "-dead"


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
                work_until_done(
                    lambda: self._each(app.create_jobs.run), partial(run_compaction_task, app)
                )
            elif kind == "splitting":
                self._each(app.split_leaves.run)
            else:
                self._each(app.collect.run)

    def _create_jobs(self) -> int:
        return self._each(self._app.create_jobs.run)

    def _each(self, act: Callable[[OpenTable], int]) -> int:
        """Do something to each table. Returns how much there was to do."""
        return sum(act(self._app.catalog.find(entry.name)) for entry in self._app.catalog.list())


class MemoryStage(_LocalStage):
    """An instance in memory: ticks of schedules, and functions and tasks that work on queues."""

    def __init__(self, folder: Path) -> None:
        instance = MemoryInstance(folder)
        super().__init__(instance.lake, instance.clock, folder)
        self._instance = instance
        self._ticks = 0

    def work(self, *kinds: Work) -> None:
        for kind in kinds:
            if kind == "ingest":
                run_ingest_task(self._app, self._landing)
            elif kind == "commits":
                self._call(COMMIT_QUEUE, self._instance.committer())
            elif kind == "compaction":
                work_until_done(self._create_jobs, partial(run_compaction_task, self._app))
            else:
                self._fire(kind)

    def _create_jobs(self) -> int:
        self._fire(COMPACTION_CREATION)
        return self.waiting(COMPACTION_QUEUE)

    def _fire(self, work: str) -> None:
        """Let a schedule go off, and its function work."""
        self._ticks += 1
        self._instance.ticks(work).run(at=str(self._ticks))
        self._call(work, self._instance.handler_of(work))

    def _call(self, queue: str, function: Handler) -> None:
        assert self._instance.when_worked(queue, function) == []
