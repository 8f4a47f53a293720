"""Stages in this process: an instance in memory, and a lake in a directory."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.backends.aws.job_queues import received_record
from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.backends.local.source_files import LocalSourceFiles
from lakebed.backends.local.transaction_logs import SqliteTransactionLog
from lakebed.backends.memory.clock import VirtualClock
from lakebed.bootstrap.app import App
from lakebed.bootstrap.batching import batches_of
from lakebed.bootstrap.functions.query_answers import QueuedQueries, answers_over
from lakebed.bootstrap.housekeeping import Housekeeping
from lakebed.bootstrap.local import open_local
from lakebed.ingest.submit_files import SubmitFiles, Submitted
from lakebed.lake import Lake
from lakebed.model.jobs import COMPACTION_CREATION, COMPACTION_QUEUE
from lakebed.model.names import JobId, TransactionNumber
from lakebed.model.paths import manifest_path
from lakebed.ports.job_queue import Message
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.queued_commits import COMMIT_QUEUE
from lakebed.table import Table
from lakebed.tasks.work_done import WorkDone
from lambdas.query.handle import keep
from lambdas.shape import Handler, sent_handler
from tests.dsl.memory_instance import HIDDEN_SECONDS, MemoryInstance, Run, once, worked
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
        (folder / "results").mkdir()
        self._results = LocalObjectStore(folder / "results", clock)
        self._results_location = folder / "results" / "objects"
        self._is_damaged = False

    def put(self, name: str, rows: pa.Table) -> str:
        path = self._landing / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, path)
        return str(path)

    def submit(self, table: Table, names: Sequence[str]) -> Submitted:
        """As users of an instance do with files in a bucket: this folder stands for it."""
        service = SubmitFiles(
            batches=batches_of(self._app), files=LocalSourceFiles(), clock=self._clock
        )
        return service.run(table._opened.id, table.name, names)

    def send(self, queue: str, message: Mapping[str, object]) -> None:
        body, message_group = json.dumps(message).encode(), str(message["id"])
        self._app.queues.open(queue).send([Message(body, message_group=message_group)])

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

    @contextmanager
    def damaged(self, table: Table) -> Iterator[None]:
        log = self._app.logs.open(table._opened.id)
        number = TransactionNumber(log.newest() + 1)
        log.append(number, b"\x01\x00 damaged")
        self._is_damaged = True
        yield
        self._is_damaged = False
        self._take_back(table, number)

    def _take_back(self, table: Table, number: TransactionNumber) -> None:
        """Let a log be as if it never had its newest entry."""
        raise NotImplementedError

    def result(self, table: Table, job: str) -> pa.Table:
        path = self._results_location / manifest_path(table._opened.id, JobId(job))
        files = json.loads(path.read_text())["files"]
        return pa.concat_tables([pq.read_table(file["path"]) for file in files])

    def stored_files(self, table: Table) -> int:
        return len(list(self._app.objects.list(f"tables/{table._opened.id}/files/")))

    def _answer_queries(self) -> None:
        app, queue = self._app, self._app.queues.open("query")
        answers = answers_over(
            query=app.query,
            find_table=app.catalog.find,
            tracker=app.tracker,
            clock=app.clock,
            results=self._results,
            location=str(self._results_location),
        )
        queries = QueuedQueries(answers, queue, received=received_record)
        self._check(worked(queue, sent_handler(once(queries), keep)))

    def _check(self, given_back: list[str]) -> None:
        """Fail if messages were given back, and no table is damaged."""
        assert not given_back or self._is_damaged, given_back


class DirectoryStage(_LocalStage):
    """A lake in a directory: one process does all of the work, each kind when it is asked to."""

    def __init__(self, folder: Path) -> None:
        clock = VirtualClock()
        super().__init__(open_local(folder / "lake", clock=clock), clock, folder)
        self._housekeeping = keeping = Housekeeping(self._app)
        self._works: dict[Work, Callable[[OpenTable], WorkDone]] = {
            "splitting": keeping._split,
            "compaction-creation": partial(keeping._create_jobs, everything=False),
            "garbage": keeping._collect,
            "snapshots": keeping._snapshot,
        }

    def work(self, *kinds: Work) -> None:
        app = self._app
        for kind in kinds:
            if kind == "ingest":
                run_ingest_task(app, self._landing)
            elif kind == "batching":
                self._housekeeping._batched(None, lambda: False)
            elif kind == "commits":
                self.lake.commit_queued()
            elif kind == "compaction":
                work_until_done(self._create_jobs, partial(run_compaction_task, app))
            elif kind == "dead-letters":
                self._housekeeping._give_up_dead_jobs.run()
            elif kind == "query":
                self._answer_queries()
            else:
                self._each(kind)

    def _create_jobs(self) -> int:
        self._each("compaction-creation")
        return self.waiting(COMPACTION_QUEUE)

    def _each(self, kind: Work) -> None:
        """Do one kind of work on each table, as a round of housekeeping does all kinds."""
        entries = self._app.catalog.list()
        for entry in entries:
            self._housekeeping._work_on(entry, {kind: self._works[kind]})
        failed = self._app.failed_tables.of({entry.id for entry in entries})
        assert not failed or self._is_damaged, failed

    def _take_back(self, table: Table, number: TransactionNumber) -> None:
        log = self._app.logs.open(table._opened.id)
        assert isinstance(log, SqliteTransactionLog)
        with log._database.writing() as connection:
            connection.execute("DELETE FROM entry WHERE number = ?", (number,))


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
            elif kind == "query":
                self._answer_queries()
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
            self._check(self._instance.when_worked(queue, function, times=self._times))

    def _take_back(self, table: Table, number: TransactionNumber) -> None:
        del self._instance.logs.open(table._opened.id)._bodies[number]
