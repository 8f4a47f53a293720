"""Very many jobs of one table on AWS: claimed and sent, then finished all at once; and commits of
many tables, by the committer's function as it is deployed.

Log, tracker and queues answer after 5 ms.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from benchmarks.figures import Figure
from benchmarks.servers.amazon_table import clients_of, log_of, opened
from benchmarks.servers.deployed_committer import DeployedCommitter, Load, deployed_shape
from benchmarks.servers.served_objects import ServedObjects
from benchmarks.servers.slow_amazon import SlowAmazon, serving
from benchmarks.servers.slow_s3 import serving as serving_s3
from benchmarks.servers.states import fill, log_beginning
from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.job_queues import SqsJobQueue
from lakebed.backends.aws.job_tracker import DynamoDbJobTracker
from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.backends.system.strategy_processes import StrategyProcesses
from lakebed.compaction.create_jobs import CreateCompactionJobs
from lakebed.model.names import TableId, TableName, file_name
from lakebed.statestore.committer import Committer
from lakebed.statestore.log_entries.file_changes import ReplaceFiles
from lakebed.statestore.log_entries.transactions import Transaction
from lakebed.statestore.open_table import OpenTable, Start, start_of
from lakebed.statestore.queued_commits import CommitRequester, QueuedCommit, SendCommits
from lakebed.statestore.table_state.state import CompactionJob

LEAVES, FILES_EACH = 65_536, 4
FINISHED = 30_000
SENT_AT_ONCE = 100
"""So many tasks finish at about the same time, and their commits are packed."""

DEPLOYED = {
    "as_deployed": Load(tables=200, messages=5, commits=20),
    "as_deployed_single": Load(tables=200, messages=20, commits=1),
    "as_deployed_one_table": Load(tables=1, messages=100, commits=100),
}
"""Commits by the function: packed by who sends them, each in a message of its own, of one table."""


class _Bench(NamedTuple):
    amazon: SlowAmazon
    clients: AmazonClients
    objects: LocalObjectStore
    table: OpenTable


def run() -> list[Figure]:
    """Measure all; takes five minutes."""
    return [*_one_table(), *_as_deployed()]


def _one_table() -> list[Figure]:
    with TemporaryDirectory(prefix="lakebed-jobs-") as name, serving() as amazon:
        root, clients = Path(name), clients_of(amazon)
        (root / "bench" / "lake").mkdir(parents=True)
        head = opened(root, None, amazon, cache="jobs", table=TableId("jobs"), clients=clients)
        fill(
            head.state,
            files=LEAVES * FILES_EACH,
            leaves=LEAVES,
            table_jobs_max=LEAVES,
            compaction_strategy="basic",
            job_files_max=FILES_EACH,
        )
        log_beginning(
            log_of(clients, ServedObjects(root / "bench" / "lake", None), TableId("jobs"))
        )
        table = OpenTable(
            id_=TableId("jobs"), name=TableName("jobs"), head=head, rng=random.Random(4)
        )
        objects = LocalObjectStore(root / "bench" / "lake", clients.clock)
        bench = _Bench(amazon, clients, objects, table)
        return [*_create(bench), *_finish(bench)]


def _as_deployed() -> list[Figure]:
    """Let processes of the function answer each load, after one alike that warms them."""
    figures = []
    for name, load in DEPLOYED.items():
        with TemporaryDirectory(prefix="lakebed-deployed-") as root, ExitStack() as stack:
            amazon, s3 = stack.enter_context(serving()), stack.enter_context(serving_s3(Path(root)))
            committer = DeployedCommitter(
                Path(root), amazon, s3, deployed_shape(), tables=load.tables
            )
            running = stack.enter_context(committer.processes())
            committer.answered(load._replace(messages=1), running)
            took = committer.answered(load, running)
        aim = 1_000 if name == "as_deployed" else None
        per_second = load.all_commits / took.seconds
        figures += [
            Figure(f"aws.commit.{name}_per_second", per_second, "1/s", aim, "higher"),
            Figure(f"aws.commit.{name}_cpu_ms", 1_000 * took.cpu_seconds / load.all_commits, "ms"),
        ]
    return figures


def _create(bench: _Bench) -> list[Figure]:
    create = CreateCompactionJobs(
        queue=_queue(bench, "compaction"),
        tracker=_tracker(bench),
        clock=bench.clients.clock,
        strategies=StrategyProcesses(),
    )
    bench.amazon.count()
    seconds, created = _timed(lambda: create.run(bench.table))
    assert created == LEAVES, created
    return [
        Figure("aws.create_jobs.seconds", seconds, "s", 60),
        Figure("aws.create_jobs.requests", bench.amazon.count().requests, ""),
    ]


def _finish(bench: _Bench) -> list[Figure]:
    """Send the commits of finished jobs as tasks do, and take the time until all are answered."""
    queue, tracker, head = _queue(bench, "commits"), _tracker(bench), bench.table.head
    with head.reading() as state:
        start = start_of(state)
        jobs = state.jobs()[:FINISHED]
        commits = [_commit(bench.table, start, job, run) for run, job in enumerate(jobs)]
    send = SendCommits(queue=queue, objects=bench.objects, rng=random.Random(5))
    for at in range(0, FINISHED, SENT_AT_ONCE):
        send.run(bench.table.id, commits[at : at + SENT_AT_ONCE])
    committer = Committer(
        queue=queue,
        objects=bench.objects,
        heads=lambda _: head,
        tracker=tracker,
        clock=bench.clients.clock,
    )
    bench.amazon.count()
    seconds, answered = _timed(lambda: committer.run(batches_max=FINISHED))
    assert answered == FINISHED, answered
    with head.reading() as state:
        assert len(state.jobs()) == LEAVES - FINISHED, "every commit landed"
    count = bench.amazon.count()
    return [
        Figure("aws.commit_burst.seconds", seconds, "s", 60),
        Figure("aws.commit_burst.requests", count.requests, ""),
        Figure("aws.commit_burst.write_units", count.write_units, ""),
        Figure("aws.commit_burst.commits_per_second", FINISHED / seconds, "1/s"),
    ]


def _commit(table: OpenTable, start: Start, job: CompactionJob, run: int) -> QueuedCommit:
    """Return the commit of a job that made one file of its inputs. run: its number, as good as any
    other that no two runs share: names hold 32 bits of a job's id."""
    inputs = table.head.state.claimed(job.id)
    name = file_name(base=start.base, job=job.id, run=run, sequence=0)
    output = msgspec.structs.replace(
        inputs[0],
        file=msgspec.structs.replace(inputs[0].file, name=name),
        rows=sum(reference.rows for reference in inputs),
    )
    names = tuple(reference.file.name for reference in inputs)
    change = ReplaceFiles(job.id, job.partition, names, output)
    transaction: Transaction = table.own(start, change)
    requester = CommitRequester("compaction", job.id, run=str(run), rows=output.rows)
    return QueuedCommit(transaction, requester)


def _queue(bench: _Bench, name: str) -> SqsJobQueue:
    url = f"{bench.amazon.url}/000000000000/{name}.fifo"
    return SqsJobQueue(bench.clients, url, rng=random.Random(6))


def _tracker(bench: _Bench) -> DynamoDbJobTracker:
    return DynamoDbJobTracker(bench.clients, "tracker")


def _timed(work: Callable[[], int]) -> tuple[float, int]:
    begun = time.perf_counter()
    done = work()
    return time.perf_counter() - begun, done
