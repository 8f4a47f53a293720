"""The committer as an instance has it: processes of its function, handed as many messages at once
and as many batches beside each other as the template says, over servers that answer slowly."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import IO, NamedTuple

from benchmarks.servers.amazon_table import LOG, clients_of, opened
from benchmarks.servers.served_objects import BUCKET, ServedObjects
from benchmarks.servers.slow_amazon import Count, SlowAmazon
from benchmarks.servers.slow_s3 import SlowS3
from benchmarks.servers.states import KEY_DIGITS, adding, commit_of, creation, key_of
from lakebed.backends.aws.job_queues import SqsJobQueue
from lakebed.backends.aws.table_registry import DynamoTableRegistry
from lakebed.config.environments import CommitterEnvironment, variables_of
from lakebed.model.formats import NEWEST
from lakebed.model.names import JobId, PartitionId, TableId
from lakebed.model.ranges import KeyRange
from lakebed.statestore.head import TableHead
from lakebed.statestore.queued_commits import CommitRequester, QueuedCommit, SendCommits
from lakebed.statestore.table_state.placing import reached_leaves
from localcloud.templates.assembly import read_assembly

ROOT = Path(__file__).resolve().parents[2]
MIB_PER_VCPU = 1_769
"""At so much memory a function has one processor; its share follows memory."""
LEAVES_BITS = 6
REGISTRY, TRACKER, QUEUE = "registry", "tracker", "commits.fifo"


class DeployedShape(NamedTuple):
    """What the template says of the committer's function and its queue."""

    messages_at_once: int
    runs_at_once: int
    memory_mib: int
    disk_mib: int

    @property
    def vcpus(self) -> float:
        """The processor time that one run gets of each second."""
        return self.memory_mib / MIB_PER_VCPU


class Load(NamedTuple):
    """What is committed: tables, messages of each, commits in a message."""

    tables: int
    messages: int
    commits: int

    @property
    def all_commits(self) -> int:
        """Of all tables."""
        return self.tables * self.messages * self.commits


class Answered(NamedTuple):
    """What a load took. cpu_seconds: of all processes of the function."""

    seconds: float
    cpu_seconds: float
    count: Count


@cache
def deployed_shape() -> DeployedShape:
    """Return the shape of an instance with the usual settings, synthesized now."""
    with tempfile.TemporaryDirectory() as name:
        context = json.loads((ROOT / "cdk.json").read_text("utf-8"))["context"]
        told = json.dumps({**context, "instance": "bench", "architecture": "machine"})
        variables = {**os.environ, "CDK_OUTDIR": name, "CDK_CONTEXT_JSON": told}
        command = [sys.executable, "app.py"]
        subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, check=True)
        (stack,) = (t for t in read_assembly(Path(name)) if t.stack.endswith("-committer"))
    source, function = (
        next(r["Properties"] for r in stack.resources.values() if r["Type"] == type_)
        for type_ in ("AWS::Lambda::EventSourceMapping", "AWS::Lambda::Function")
    )
    return DeployedShape(
        messages_at_once=source["BatchSize"],
        runs_at_once=source["ScalingConfig"]["MaximumConcurrency"],
        memory_mib=function["MemorySize"],
        disk_mib=function["EphemeralStorage"]["Size"],
    )


class DeployedCommitter:
    """Tables whose commits wait in the queue, and the function's processes."""

    def __init__(
        self, root: Path, amazon: SlowAmazon, s3: SlowS3, shape: DeployedShape, *, tables: int
    ) -> None:
        self._amazon = amazon
        self._clients = clients = clients_of(amazon)
        self._root, self._s3, self._shape = root, s3, shape
        self._rng = random.Random(8)
        self._jobs = 0
        lake = root / BUCKET / "lake"
        lake.mkdir(parents=True, exist_ok=True)
        DynamoTableRegistry(clients, REGISTRY).raise_formats(NEWEST)
        self.url = f"{amazon.url}/000000000000/{QUEUE}"
        queue = SqsJobQueue(clients, self.url, rng=random.Random(6))
        objects = ServedObjects(lake, s3)
        self._send = SendCommits(queue=queue, objects=objects, rng=random.Random(5))
        self._tables = [self._table(TableId(f"deployed-{tables}-{n}")) for n in range(tables)]

    def send(self, load: Load) -> None:
        """Send messages, those of all tables in turn."""
        for _ in range(load.messages):
            for table, head, leaves in self._tables:
                commits = [self._commit(head, leaves) for _ in range(load.commits)]
                self._send.run(table, commits)

    def files(self) -> int:
        """Return how many files all tables have."""
        total = 0
        for _, head, _ in self._tables:
            with head.reading() as state:
                total += sum(leaf.files for leaf in state.leaf_figures())
        return total

    @contextmanager
    def processes(self) -> Iterator[list[subprocess.Popen[str]]]:
        """Run the function's processes: no more than groups, which one run at a time works on."""
        count = min(self._shape.runs_at_once, len(self._tables))
        command = [sys.executable, "-m", "benchmarks.programs.committer_function", self.url]
        command += [str(self._shape.messages_at_once), str(self._shape.vcpus)]
        with ExitStack() as stack:
            running = []
            for _ in range(count):
                process = subprocess.Popen(
                    command,
                    env=self._variables(),
                    cwd=ROOT,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
                stack.enter_context(process)
                running.append(process)
                stack.callback(_pipe(process.stdin).close)
            for process in running:
                _line(process)
            yield running

    def answered(self, load: Load, running: Sequence[subprocess.Popen[str]]) -> Answered:
        """Send a load, and return what it takes until all is answered."""
        before = self.files()
        self.send(load)
        self._amazon.count()
        begun = time.perf_counter()
        for process in running:
            stdin = _pipe(process.stdin)
            stdin.write("\n")
            stdin.flush()
        cpu_seconds = sum(float(_line(process)) for process in running)
        seconds = time.perf_counter() - begun
        count = self._amazon.count()
        landed = self.files() - before
        assert landed == load.all_commits, f"{landed} of {load.all_commits} commits landed"
        return Answered(seconds, cpu_seconds, count)

    def _table(self, table: TableId) -> tuple[TableId, TableHead, list[PartitionId]]:
        head = opened(
            self._root, self._s3, self._amazon, cache=table, table=table, clients=self._clients
        )
        points = tuple(
            key_of(i << (4 * KEY_DIGITS - LEAVES_BITS)) for i in range(1, 1 << LEAVES_BITS)
        )
        head.commit(commit_of(head, 0, creation(points)))
        with head.reading() as state:
            found = reached_leaves(state, state.head().root, (KeyRange(),))
            return table, head, [leaf for leaf, _ in found]

    def _commit(self, head: TableHead, leaves: list[PartitionId]) -> QueuedCommit:
        self._jobs += 1
        requester = CommitRequester("ingest", JobId(f"job-{self._jobs}"), run="1", rows=1_000_000)
        return QueuedCommit(adding(head, self._rng, leaves), requester)

    def _variables(self) -> dict[str, str]:
        environment = CommitterEnvironment(
            instance="bench",
            bucket=BUCKET,
            objects_prefix="lake",
            log_table=LOG,
            registry_table=REGISTRY,
            table_metrics="false",
            tracker_table=TRACKER,
            commits_queue_url=self.url,
            function_disk_mib=str(self._shape.disk_mib),
        )
        return {
            **os.environ,
            **self._s3.environment(),
            **variables_of(environment),
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self._amazon.url,
            "AWS_ENDPOINT_URL_S3": self._s3.url,
        }


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None, "it has a pipe"
    return pipe


def _line(process: subprocess.Popen[str]) -> str:
    """Return what a process says next, less what it logs."""
    for line in _pipe(process.stdout):
        if not line.startswith("{"):
            return line.strip()
    raise AssertionError(f"a process of the function has ended: {process.wait()}")
