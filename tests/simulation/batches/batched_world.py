"""A world in which files are submitted, and batchers and tasks make rows of them, each once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakebed.backends.faulty import FaultyFileBatches, FaultyJobQueues, RegistryFaults
from lakebed.backends.faulty.registry_faults import HARSH_REGISTRY
from lakebed.backends.memory import MemoryFileBatches
from lakebed.errors import LakebedError
from lakebed.ingest.batch_files import BatchFiles, jobs_in_log, refusals_of
from lakebed.ingest.batch_listing import BatchListing
from lakebed.ingest.run_batches import RunBatches
from lakebed.ingest.submit_files import SubmitFiles
from lakebed.model.jobs import INGEST_QUEUE, batch_job, batch_message_in
from lakebed.model.names import CommitId, RequestDigest
from lakebed.ports.file_batches import Batch, FileBatches
from lakebed.ports.job_queue import Received
from lakebed.statestore.open_table import OpenTable
from lakebed.tasks.worker import Worker
from tests.simulation.batches.landing import Landing, ModelFiles, ModelRows
from tests.simulation.ending import tables
from tests.simulation.rows import Request, Row
from tests.simulation.truth import Asked
from tests.simulation.violation import BATCHED, ENDS, Violation
from tests.simulation.world import World

if TYPE_CHECKING:
    from tests.simulation.machine import Machine

ROUNDS_MAX = 60
"""At the end: by then all that was submitted must be in the table, or refused."""
FILES = tuple(f"s3://landing/f{n}.csv" for n in range(6))
"""Few names, so that files are put again with other content."""
OUR_JOBS = "-batch-"


class BatchedWorld(World):
    """All that one seed decides."""

    may_use_parquet = False
    tasks, tasks_long = 30, 80

    def __init__(self, seed: int, scratch: Path) -> None:
        self.true_batches = MemoryFileBatches()
        super().__init__(seed, scratch, theme="jobs")
        from tests.simulation.batches.batch_actors import BATCH_ACTORS, WHILE_OTHERS_STALL

        self.while_others_stall = WHILE_OTHERS_STALL
        self.actors = list(BATCH_ACTORS)
        self.weights = [weight * self.rng.choice((1, 1, 2)) for weight in BATCH_ACTORS.values()]
        self._latest = self.actors[0]
        self.weather.stall_chance = self.rng.choice((0.0, 0.01, 0.04))
        self.item_faults = self.rng.choice((0.05, 0.3, 1.0))
        self.landing = Landing(self.rng, self._new_rows)
        self.acknowledged: set[tuple[str, str]] = set()
        """Files, as they were, of which a submitter was told that they wait, or did before."""
        self.truth.asked = _BatchesAsked(self)

    def some_settings(self) -> dict[str, object]:
        """Return settings of small batches. Ids are remembered for as long as a world lasts."""
        choice = self.rng.choice
        return super().some_settings() | {
            "leaf_files_max": 10_000,
            "job_id_seconds_min": 3_000 * 86_400,
            "redispatch_seconds": choice((60, 900)),
            "batch_seconds_max": choice((0, 300, 5_000)),
            "batch_files_max": choice((1, 3, 10)),
            "batch_bytes_min": choice((0, 60)),
            "batch_bytes_max": choice((60, 1 << 30)),
        }

    def some_table(self, machine: Machine) -> OpenTable:
        """Return the only table."""
        return machine.catalog.find("main")

    def _new_rows(self) -> tuple[Any, ...]:
        request = self.row_maker.request(CommitId("file"), rows_max=5)
        return tuple(row for batch in request.batches for row in batch)

    # the services of a machine

    def batches(self, machine: Machine) -> FileBatches:
        share = self.item_faults if self.weather.rates else 0.0
        rates = {fault: rate * share for fault, rate in HARSH_REGISTRY.items()}
        faults = RegistryFaults(self.weather, machine.crashes, rates)
        return FaultyFileBatches(self.true_batches, faults)

    def submitting(self, machine: Machine) -> tuple[SubmitFiles, ModelFiles]:
        files = ModelFiles(self.landing, self.weather.pass_door)
        service = SubmitFiles(batches=self.batches(machine), files=files, clock=machine.clock)
        return service, files

    def batcher(self, machine: Machine) -> BatchFiles:
        queues = FaultyJobQueues(self.shared.queues, self.weather, machine.crashes)
        return BatchFiles(
            batches=self.batches(machine),
            queues={"ingest": queues.open(INGEST_QUEUE)},
            tracker=self.shared.tracker,
            clock=machine.clock,
        )

    def worker(self, machine: Machine) -> Worker:
        queues = FaultyJobQueues(self.shared.queues, self.weather, machine.crashes)
        service = RunBatches[Any](
            ingest=machine.ingest,
            batches=self.batches(machine),
            find_table=machine._table_of,
            rows=ModelRows(self.landing, self.weather.pass_door),
        )

        def run(message: Received) -> None:
            batch = batch_message_in(message.body)
            assert batch is not None, "there are no others in this world"
            service.run(batch)

        return Worker(queue=queues.open(INGEST_QUEUE), handle=run)

    # what is so

    def all_batches(self, table: OpenTable) -> list[Batch]:
        return self.true_batches.batches(table.id, batches_max=1 << 30)

    def asked_by(self, digest: RequestDigest) -> tuple[Batch, int] | None:
        """Return which batch a digest stands for, and after how many refusals."""
        for batch in self.true_batches.batches(self.main.id, batches_max=1 << 30):
            count = refusals_of(batch, batch_job(self.main.id, batch.number), digest)
            if count is not None:
                return batch, count
        return None

    def rows_of(self, batch: Batch, count: int) -> tuple[tuple[Row, ...], ...]:
        """Return the rows of a batch's files, but for those of its first refusals."""
        rows = [self.landing.ever[one.name, one.version].rows for one in batch.left(count)]
        return tuple(some for some in rows if some)

    def end(self) -> None:
        """Make batches and take them in until nothing is left to do."""
        self.weather.clear_up()
        self.scheduler.finish()
        machine = self.calm_machine(informed=True)
        self.machines.append(machine)
        table = self.some_table(machine)
        for _ in range(ROUNDS_MAX):
            try:
                self.batcher(machine).run(table)
                self.worker(machine).run(jobs_max=1_000)
                self.batcher(machine).run(table)
            except LakebedError as error:
                raise Violation(ENDS, f"batches fail in peace: {error}") from error
            if not self.true_batches.tables():
                break
            self.clock.advance(7 * 3_600)
        else:
            raise Violation(ENDS, f"left: {self.true_batches.head(table.id)}")

    def check(self) -> None:
        """Look at what became of all files that were submitted."""
        machine = self.calm_machine()
        self.machines.append(machine)
        for table in tables(machine):
            check_files(self, table)
            check_listing(self, machine, table)
            self.check_rows(machine, table, self.auditors[table.id])


class _BatchesAsked(dict[RequestDigest, Asked]):
    """What was asked for, by digest: batches are known by what they hold."""

    def __init__(self, world: BatchedWorld) -> None:
        super().__init__(world.truth.asked)
        self._world = world

    def __missing__(self, digest: RequestDigest) -> Asked:
        found = self._world.asked_by(digest)
        if found is None:
            raise Violation(BATCHED, f"a job that is no batch's landed: {digest.hex()}")
        batch, count = found
        id_ = CommitId(batch_job(self._world.main.id, batch.number))
        request = Request(id_, digest, self._world.rows_of(batch, count))
        self[digest] = Asked(request, self._world.main.id, None, open=1)
        return self[digest]


def check_files(world: BatchedWorld, table: OpenTable) -> None:
    """Every file that was submitted is in exactly one committed job, or refused."""
    taken: Counter[tuple[str, str]] = Counter()
    refused: Counter[tuple[str, str]] = Counter()
    batches = world.all_batches(table)
    landed = jobs_in_log(table, [batch_job(table.id, batch.number) for batch in batches])
    for batch in batches:
        job = batch_job(table.id, batch.number)
        if job not in landed:
            raise Violation(BATCHED, f"{job} is not in the log")
        count = refusals_of(batch, job, landed[job][1])
        if count is None:
            raise Violation(BATCHED, f"{job} took in what it should not")
        if world.truth.asked[landed[job][1]].request.batches != world.rows_of(batch, count):
            raise Violation(BATCHED, f"{job} is shown with other files than it took in")
        left = batch.left(count)
        taken.update((file.name, file.version) for file in left)
        refused.update((f.name, f.version) for f in batch.files if f not in left)
    if doubled := [file for file, times in taken.items() if times > 1]:
        raise Violation(BATCHED, f"{doubled} were taken in more than once")
    for file in world.acknowledged:
        if not taken[file] and not refused[file]:
            raise Violation(BATCHED, f"{file} was submitted, and is neither taken in nor refused")
        if not taken[file] and world.landing.must_be_taken(*file):
            raise Violation(BATCHED, f"{file} was refused, and nothing is wrong with it")


def check_listing(world: BatchedWorld, machine: Machine, table: OpenTable) -> None:
    """What people are shown is so."""
    listing = BatchListing(
        batches=world.true_batches, tracker=world.shared.tracker, clock=machine.clock
    )
    for report in listing.batches(table, below=None, limit=1 << 30):
        if report.state != "committed":
            raise Violation(BATCHED, f"batch {report.batch} is shown as {report.state}")
