"""One process with its own heads, clock and doors, and the services as they are deployed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from lakebed.backends.faulty import (
    CrashPlan,
    FaultyJobQueues,
    FaultyObjectStore,
    FaultyTransactionLogs,
)
from lakebed.backends.memory import MemoryJobQueues, MemoryJobTracker, MemoryTableRegistry
from lakebed.backends.system.strategy_processes import StrategyProcesses
from lakebed.compaction.create_jobs import CreateCompactionJobs
from lakebed.compaction.dead_letters import GiveUpDeadJobs
from lakebed.compaction.run_job import GiveUpCompactionJob, RunCompactionJob
from lakebed.deletes.delete_rows import DeleteRows
from lakebed.deletes.drop_ranges import DropRanges
from lakebed.deletes.rewrite_leaves import RewriteLeaves
from lakebed.garbage.collect import CollectGarbage
from lakebed.garbage.sweep import DeleteTableObjects, SweepObjects
from lakebed.ingest.ingest_rows import IngestRows
from lakebed.model.jobs import COMPACTION_QUEUE, decode_message
from lakebed.model.names import TableId
from lakebed.ports.job_queue import BODY_BYTES_MAX, JobQueue, Received
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.transaction_log import TransactionLogs
from lakebed.query.follow_changes import FollowChanges
from lakebed.query.past_versions import PastVersions
from lakebed.query.run_query import RunQuery
from lakebed.splitting.split_leaves import SplitLeaves
from lakebed.statestore.answers import Retry
from lakebed.statestore.committer import Committer
from lakebed.statestore.head import TableHead
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.queued_commits import COMMIT_QUEUE, SendCommits
from lakebed.statestore.snapshots import Snapshots
from lakebed.statestore.table_state.closable_state import ClosableState
from lakebed.statestore.table_state.state import TableState
from lakebed.tables.catalog import TableCatalog
from lakebed.tasks.worker import Visibility, Worker
from tests.simulation.faults.damaged_cache import DAMAGES, opened
from tests.simulation.faults.lies import OwnTimeLogs
from tests.simulation.faults.weather import Mishap, Weather
from tests.simulation.new_state import new_state
from tests.simulation.observed import ObservedLog, ObservedLogs, ObservedObjects
from tests.simulation.registry import KillableRegistry
from tests.simulation.scheduler import ScheduledClock

BODY_BYTES_SMALL = 400
"""So that some commits are too large for a message."""


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What a world is made of. A broken twin replaces one part."""

    head: type[TableHead] = TableHead
    log: type[ObservedLog] = ObservedLog
    snapshots: type[Snapshots] = Snapshots
    sweep: type[SweepObjects] = SweepObjects
    collect: type[CollectGarbage] = CollectGarbage
    query: type[RunQuery[Any]] = RunQuery
    committer: type[Committer] = Committer


class Shared(msgspec.Struct, kw_only=True):
    """What all machines of a world meet: the true stores, and the weather between. own_time:
    whether the log's store has the time of the machine that asks. doubtful: states that machines
    have opened from damaged bytes."""

    logs: ObservedLogs
    objects: ObservedObjects
    queues: MemoryJobQueues
    tracker: MemoryJobTracker
    registry: MemoryTableRegistry
    weather: Weather
    scratch: Path
    parts: Parts
    parquet: bool
    own_time: bool
    doubtful: list[TableState]


class Machine:
    """A process. states: what a former process left in its caches."""

    def __init__(
        self,
        shared: Shared,
        *,
        clock: ScheduledClock,
        rng: random.Random,
        crashes: CrashPlan,
        states: dict[TableId, TableState] | None = None,
    ) -> None:
        self.shared = shared
        self.clock = clock
        self.rng = rng
        self.crashes = crashes
        self.is_busy = False
        self.states = states or {}
        self._heads: dict[TableId, TableHead] = {}
        parts = shared.parts
        seconds = rng.choice((0.0, 60.0, 300_000.0))
        self._retry = Retry(seconds_max=seconds, throttled_seconds=max(0.2, seconds / 10))
        self.logs: TransactionLogs = FaultyTransactionLogs(shared.logs, shared.weather, crashes)
        if shared.own_time:
            self.logs = OwnTimeLogs(self.logs, clock)
        self.objects = FaultyObjectStore(shared.objects, shared.weather, crashes)
        queues = FaultyJobQueues(shared.queues, shared.weather, crashes)
        self.queue, commits = queues.open(COMPACTION_QUEUE), queues.open(COMMIT_QUEUE)
        self.files = sorted_files(shared, self.objects)
        told: dict[str, Any] = {"clock": clock, "tracker": shared.tracker}
        self.commits = SendCommits(
            queue=commits,
            objects=self.objects,
            rng=rng,
            body_bytes_max=rng.choice((BODY_BYTES_MAX, BODY_BYTES_SMALL)),
        )
        self.committer = parts.committer(
            queue=commits, objects=self.objects, heads=self.head, **told
        )
        self.ingest = IngestRows[Any](files=self.files, **told)
        self.queued_ingest = IngestRows[Any](files=self.files, commits=self.commits, **told)
        self.create_jobs = CreateCompactionJobs(
            queue=self.queue, strategies=StrategyProcesses(), **told
        )
        commits_of_jobs = self.commits if rng.random() < 0.3 else None
        self.run_job = RunCompactionJob[Any](files=self.files, commits=commits_of_jobs, **told)
        self.give_up = GiveUpCompactionJob(**told)
        self.split = SplitLeaves(files=self.files)
        self.collect = parts.collect(objects=self.objects)
        self.sweep = parts.sweep(objects=self.objects)
        self.past = PastVersions(logs=self.logs, snapshots=self.snapshots)
        self.query = parts.query(files=self.files, past=self.past)
        self.delete = self._deletes()
        self.follow = self._follow()
        self.catalog = TableCatalog(
            registry=KillableRegistry(shared.registry, shared.weather, crashes),
            logs=self.logs,
            open_head=self.head,
            delete_objects=DeleteTableObjects(objects=self.objects),
            rng=rng,
        )
        self.give_up_dead_jobs = self._give_up_dead_jobs(commits)
        self.worker = self._worker()

    def _give_up_dead_jobs(self, commits: JobQueue) -> GiveUpDeadJobs:
        return GiveUpDeadJobs(
            jobs=self.queue,
            commits=commits,
            objects=self.objects,
            find_table=self._table_of,
            give_up=self.give_up,
            tracker=self.shared.tracker,
        )

    def _follow(self) -> FollowChanges[Any]:
        return FollowChanges(files=self.files, logs=self.logs, past=self.past, query=self.query)

    def _deletes(self) -> DeleteRows[Any]:
        rewrite = RewriteLeaves[Any](
            files=self.files, clock=self.clock, run_job=self.run_job, give_up=self.give_up
        )
        return DeleteRows(ranges=DropRanges(query=self.query, files=self.files), rewrite=rewrite)

    def _worker(self) -> Worker:
        visibility = Visibility(keep_hidden=self._kept_hidden)
        return Worker(queue=self.queue, handle=self._run_message, visibility=visibility)

    def head(self, table: TableId) -> TableHead:
        """Return this process's head of a table."""
        if table not in self._heads:
            state = ClosableState(
                partial(self._opened, table), set_aside=partial(self._lose, table)
            )
            self._heads[table] = self.shared.parts.head(
                self.logs.open(table),
                state,
                clock=self.clock,
                rng=self.rng,
                snapshots=self.snapshots(table),
                retry=self._retry,
            )
        return self._heads[table]

    def _opened(self, table: TableId) -> TableState:
        if table not in self.states:
            self.states[table] = new_state()
        return self.states[table]

    def _lose(self, table: TableId) -> None:
        """Set a state aside that did not prove itself: the next use makes it anew."""
        self.shared.weather.happened[Mishap.CACHE_SET_ASIDE] += 1
        self.states.pop(table).connection.close()

    def damage_cache(self) -> None:
        """Let a disk or a hand damage a state of this process, which reads it anew when it is used
        next. For a process that does nothing just now."""
        table = self.rng.choice(list(self.states))
        mishap = self.rng.choice(list(DAMAGES))
        self.shared.weather.happened[mishap] += 1
        content = self.states[table].connection.serialize()
        if table in self._heads:
            self._heads[table].close()
        self.states.pop(table).connection.close()
        state = opened(DAMAGES[mishap](content, self.rng))
        if state is None:
            self.shared.weather.happened[Mishap.CACHE_SET_ASIDE] += 1
        else:
            self.states[table] = state
            self.shared.doubtful.append(state)

    def snapshots(self, table: TableId) -> Snapshots:
        """Return a table's snapshots."""
        return self.shared.parts.snapshots(table, self.objects, scratch=self.shared.scratch)

    def close(self) -> None:
        """Forget what the process knew."""
        for state in self.states.values():
            state.connection.close()

    @contextmanager
    def _kept_hidden(self, message: Received) -> Iterator[None]:
        self.queue.extend(message.receipt, hidden_seconds=1_800)
        yield

    def _run_message(self, message: Received) -> None:
        job = decode_message(message.body)
        table = self._table_of(job.table)
        if table is not None:
            self.run_job.run(table, job.job)

    def _table_of(self, id_: TableId) -> OpenTable | None:
        for entry in self.catalog.list():
            if entry.id == id_:
                return self.catalog.opened(entry)
        return None


def sorted_files(shared: Shared, objects: ObjectStore) -> Any:  # noqa: ANN401 - of tuples or Arrow
    """Return what keeps rows in objects, as all machines of a world do."""
    if not shared.parquet:
        from lakebed.backends.memory import TupleFiles

        return TupleFiles(objects)
    from lakebed.sorted_files.parquet_files import ParquetFiles

    spill = shared.scratch / "spill"
    return ParquetFiles(objects, spill_directory=spill, memory_bytes=1 << 22)
