"""How jobs end when something goes wrong: over memory and over Amazon's stores the same
(H11, H19, H21)."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from lakebed.backends.aws.job_queues import SqsJobQueues
from lakebed.backends.aws.job_tracker import DynamoDbJobTracker
from lakebed.backends.aws.table_registry import DynamoTableRegistry
from lakebed.backends.aws.transaction_logs import DynamoTransactionLogs
from lakebed.backends.memory import (
    MemoryJobQueues,
    MemoryJobTracker,
    MemoryObjectStore,
    MemoryTableRegistry,
    MemoryTransactionLogs,
    VirtualClock,
)
from lakebed.backends.system import system_random
from lakebed.compaction.create_jobs import UNTIL_STARTED_AGAIN
from lakebed.config.dynamo_tables import LOG_TABLE, REGISTRY_TABLE, TRACKER_TABLE
from lakebed.errors import ClockAheadError, FencedError, GenerationError
from lakebed.model.jobs import COMPACTION_QUEUE
from lakebed.model.names import JobId
from lakebed.ports.job_queue import Message
from lakebed.statestore.log_entries.file_changes import ReleaseClaim
from lakebed.statestore.open_table import start_of
from lakebed.statestore.queued_commits import COMMIT_QUEUE
from lakebed.tables.change_table import clear_table
from tests.contracts.depot import HIDDEN_SECONDS, Depot, Stores, rows_of_jobs
from tests.contracts.fast_time import FastClock, FastQueues
from tests.servers.s3 import S3Server
from tests.servers.sqs import make_queue

RECEIVES_MAX = 2
HOUR = 3_600
Process = Callable[..., Depot]


@pytest.fixture(params=["memory", "ministack"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    if request.param == "memory":
        clock = VirtualClock()
        yield Stores(
            clock,
            MemoryTransactionLogs(clock),
            MemoryObjectStore(clock),
            MemoryJobQueues(clock, receives_max=RECEIVES_MAX),
            MemoryJobTracker(),
            MemoryTableRegistry(),
            tmp_path,
        )
        return
    server: S3Server = request.getfixturevalue("ministack")
    prefix, rng = server.new_prefix(), system_random()
    with closing(server.clients()) as clients:
        urls = {
            name: make_queue(clients, f"{prefix}-{name}", receives_max=RECEIVES_MAX)
            for name in (COMPACTION_QUEUE, COMMIT_QUEUE)
        }
        objects = server.store(prefix)
        yield Stores(
            FastClock(),
            DynamoTransactionLogs(clients, server.new_table(LOG_TABLE), objects=objects, rng=rng),
            objects,
            FastQueues(SqsJobQueues(clients, urls, rng=rng)),
            DynamoDbJobTracker(clients, server.new_table(TRACKER_TABLE)),
            DynamoTableRegistry(clients, server.new_table(REGISTRY_TABLE)),
            tmp_path,
        )


@pytest.fixture
def process(stores: Stores) -> Iterator[Process]:
    with ExitStack() as stack:
        yield lambda name, **more: stack.enter_context(closing(Depot(stores, name, **more)))


def when_its_message_dies(depot: Depot) -> None:
    """Nobody finishes the job, as often as the queue hands it out."""
    for _ in range(RECEIVES_MAX + 1):
        depot.queue.receive(messages_max=1, hidden_seconds=HIDDEN_SECONDS)
        depot.stores.advance(HIDDEN_SECONDS + 10)


def test_what_reaches_the_dead_letters_frees_its_claims_by_a_transaction(process: Process) -> None:
    depot = process("a")
    depot.given_table(redispatch_seconds=HOUR)
    depot.when_taken("x", "y")
    depot.create_jobs.run(depot.table)
    (job,) = depot.jobs()
    when_its_message_dies(depot)
    before = depot.number()
    assert depot.give_up_dead_jobs.run() == 1
    assert (depot.jobs(), depot.number()) == ([], before + 1)
    assert depot.events(job) == ["created", "given up"]
    assert depot.give_up_dead_jobs.run() == 0
    assert depot.create_jobs.run(depot.table) == 1


@pytest.mark.parametrize("queued", [False, True], ids=["direct", "queued"])
def test_a_late_finisher_is_refused_and_leaves_no_visible_trace(
    process: Process, monkeypatch: pytest.MonkeyPatch, queued: bool
) -> None:
    depot, late = process("a"), process("late", queued=queued)
    depot.given_table(redispatch_seconds=HOUR)
    depot.when_taken("x", "y")
    depot.create_jobs.run(depot.table)
    (job,) = depot.jobs()
    merge = late.files.merge_into_file

    def slow_merge(*given: object, **named: object) -> object:
        """While it merges, its message dies, and another job takes its files."""
        written = merge(*given, **named)  # type: ignore[arg-type] # as the files have it
        when_its_message_dies(depot)
        depot.give_up_dead_jobs.run()
        return written

    monkeypatch.setattr(late.files, "merge_into_file", slow_merge)
    stored, before = depot.stored(), depot.number()
    assert late.run_job.run(late.table, job) is queued
    if queued:
        assert depot.committer.run(batches_max=5) == 1
        assert depot.events(job)[-1] == "lost"
    assert depot.number() == before + 1
    assert depot.rows() == rows_of_jobs("x", "y")
    assert len(depot.stored()) == len(stored) + 1
    depot.create_jobs.run(depot.table)
    depot.worker.run(jobs_max=5)
    depot.collect.run(depot.table)
    depot.stores.advance(90)
    depot.sweep.run(depot.table)
    assert len(depot.stored()) == 1
    assert depot.rows() == rows_of_jobs("x", "y")


def test_a_long_merge_is_not_sent_to_a_second_worker(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    depot = process("a")
    depot.given_table(redispatch_seconds=int(HIDDEN_SECONDS))
    depot.when_taken("x", "y")
    depot.create_jobs.run(depot.table)
    (job,) = depot.jobs()
    merge = depot.files.merge_into_file

    def slow_merge(*given: object, **named: object) -> object:
        """While it merges, the schedule looks at its table."""
        for _ in range(4):
            depot.stores.advance(HIDDEN_SECONDS + 10)
            depot.create_jobs.run(depot.table)
        return merge(*given, **named)  # type: ignore[arg-type] # as the files have it

    monkeypatch.setattr(depot.files, "merge_into_file", slow_merge)
    assert depot.run_job.run(depot.table, job)
    assert depot.events(job) == ["created", "started", "committed"]


class KilledError(BaseException):
    """Ends a process at once: nothing is reported after it."""


def test_a_job_whose_worker_and_message_vanished_is_sent_again(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    depot = process("a")
    depot.given_table(redispatch_seconds=int(HIDDEN_SECONDS))
    depot.when_taken("x", "y")
    depot.create_jobs.run(depot.table)
    (job,) = depot.jobs()

    def killed(*_: object, **__: object) -> object:
        raise KilledError

    monkeypatch.setattr(depot.files, "merge_into_file", killed)
    with pytest.raises(KilledError):
        depot.run_job.run(depot.table, job)
    for _ in range(UNTIL_STARTED_AGAIN):
        assert depot.events(job) == ["created", "started"]
        depot.stores.advance(HIDDEN_SECONDS)
        depot.create_jobs.run(depot.table)
    assert depot.events(job) == ["created", "started", "sent"]


@pytest.mark.parametrize("queued", [False, True], ids=["direct", "queued"])
def test_a_job_whose_table_is_cleared_while_it_merges_is_told_as_lost(
    process: Process, monkeypatch: pytest.MonkeyPatch, queued: bool
) -> None:
    depot, worker = process("a"), process("b", queued=queued)
    depot.given_table(redispatch_seconds=HOUR)
    depot.when_taken("x", "y")
    depot.create_jobs.run(depot.table)
    (job,) = depot.jobs()
    merge = worker.files.merge_into_file

    def cleared_meanwhile(*given: object, **named: object) -> object:
        written = merge(*given, **named)  # type: ignore[arg-type] # as the files have it
        clear_table(depot.table, None)
        return written

    monkeypatch.setattr(worker.files, "merge_into_file", cleared_meanwhile)
    assert worker.run_job.run(worker.table, job) is queued
    if queued:
        assert depot.committer.run(batches_max=5) == 1
    told = depot.stores.tracker.history(depot.table.id, job)[-1]
    assert (told.event, told.reason.partition(":")[0]) == ("lost", GenerationError.code())
    found = depot.stores.tracker.find(depot.table.id, events=("created", "started"), reports_max=9)
    assert [report.job for report in found if report.kind == "compaction"] == []


def test_a_job_whose_claim_ended_before_it_began_is_told_as_lost_once(process: Process) -> None:
    depot = process("a")
    depot.given_table(redispatch_seconds=HOUR)
    depot.when_taken("x", "y")
    depot.create_jobs.run(depot.table)
    (job,) = depot.jobs()
    clear_table(depot.table, None)
    assert [depot.run_job.run(depot.table, job) for _ in range(2)] == [False, False]
    assert depot.events(job) == ["created", "lost"]


def test_a_job_that_is_committed_stays_so_whatever_comes_later(process: Process) -> None:
    depot, other = process("a"), process("b")
    depot.given_table(redispatch_seconds=HOUR)
    depot.when_taken("x", "y")
    depot.create_jobs.run(depot.table)
    (job,) = depot.jobs()
    assert depot.run_job.run(depot.table, job)
    assert not other.run_job.run(other.table, job)
    assert depot.events(job) == ["created", "started", "committed"]


def test_a_queued_commit_that_dies_frees_the_claims_of_its_job(process: Process) -> None:
    depot = process("a", queued=True)
    depot.given_table(redispatch_seconds=HOUR)
    depot.when_taken("x", "y")
    depot.committer.run(batches_max=5)
    depot.create_jobs.run(depot.table)
    depot.worker.run(jobs_max=1)
    (job,) = depot.jobs()
    for _ in range(RECEIVES_MAX + 1):
        depot.commit_queue.receive(messages_max=1, hidden_seconds=HIDDEN_SECONDS)
        depot.stores.advance(HIDDEN_SECONDS + 10)
    assert depot.give_up_dead_jobs.run() == 1
    assert depot.jobs() == []
    assert depot.events(job)[-1] == "given up"
    assert depot.commit_queue.depth() == (0, 0)


def test_a_sweep_spares_an_output_that_waits_for_its_commit(process: Process) -> None:
    """Its base is not below the floor, however often and late the sweeper comes."""
    depot, sender = process("a"), process("b", queued=True)
    depot.given_table(pending_seconds_max=48 * HOUR)
    sender.when_taken("x")
    for _ in range(2):
        depot.when_taken("y")
        depot.stores.advance(90)
        assert depot.sweep.run(depot.table) == 0
    assert len(depot.stored()) == 2
    assert depot.committer.run(batches_max=5) == 1
    assert depot.rows() == rows_of_jobs("x", "y")


def test_an_output_that_was_swept_cannot_be_committed(process: Process) -> None:
    depot, sender = process("a"), process("b", queued=True)
    depot.given_table()
    depot.when_taken("w")
    sender.when_taken("x")
    depot.when_taken("y", "z")
    stored = len(depot.stored())
    depot.stores.advance(90)
    assert depot.sweep.run(depot.table) == 1
    assert len(depot.stored()) == stored - 1
    depot.committer.run(batches_max=5)
    report = depot.stores.tracker.history(depot.table.id, JobId("x"))[-1]
    assert (report.event, report.reason.partition(":")[0]) == ("failed", FencedError.code())
    assert depot.rows() == rows_of_jobs("w", "y", "z")


def test_a_compaction_message_that_is_delivered_twice_is_done_once(process: Process) -> None:
    depot, other = process("a"), process("b")
    depot.given_table()
    depot.when_taken("x", "y")
    depot.create_jobs.run(depot.table)
    (message,) = depot.queue.receive(messages_max=1, hidden_seconds=0.1)
    for _ in range(2):
        depot.queue.send([Message(message.body)])
    depot.stores.advance(HIDDEN_SECONDS)
    assert depot.worker.run(jobs_max=2) == 2
    before = depot.number()
    assert other.worker.run(jobs_max=5) == 1
    assert other.number() == before
    assert depot.rows() == rows_of_jobs("x", "y")


def test_commits_that_are_delivered_twice_are_done_once(process: Process) -> None:
    depot, other = process("a", queued=True), process("b")
    depot.given_table()
    depot.when_taken("x")
    (message,) = depot.commit_queue.receive(messages_max=1, hidden_seconds=0.1)
    for _ in range(2):
        depot.commit_queue.send([Message(message.body, message.message_group)])
    depot.stores.advance(HIDDEN_SECONDS)
    assert depot.committer.step() == 3
    depot.commit_queue.send([Message(message.body, message.message_group)])
    before = depot.number()
    assert other.committer.run(batches_max=5) == 1
    assert other.number() == before
    assert other.rows() == rows_of_jobs("x")


@pytest.mark.parametrize("hours", [1, -1], ids=["ahead", "behind"])
@pytest.mark.parametrize("queued", [False, True], ids=["direct", "queued"])
def test_a_clock_that_jumps_an_hour_loses_no_row(
    process: Process, hours: int, queued: bool
) -> None:
    """Ahead it is told to set its clock before anything is written; behind, time stands still."""
    depot, wrong = process("a"), process("wrong", queued=queued)
    depot.given_table(pending_seconds_max=HOUR // 2, garbage_seconds_min=HOUR // 2)
    wrong.when_taken("x")
    depot.when_taken("y")
    depot.committer.run(batches_max=5)
    wrong.clock.offset_seconds = hours * HOUR
    stored = depot.stored()
    for step in (
        lambda: wrong.when_taken("z"),
        lambda: wrong.committer.run(batches_max=5),
        lambda: wrong.create_jobs.run(wrong.table),
        lambda: wrong.worker.run(jobs_max=5),
        lambda: wrong.collect.run(wrong.table),
        lambda: wrong.sweep.run(wrong.table),
    ):
        if hours > 0:
            try:
                step()
            except ClockAheadError:
                continue
        else:
            step()
    assert set(stored) <= set(depot.stored()), "nothing was deleted too early"
    wrong.clock.offset_seconds = 0
    wrong.when_taken("z")
    depot.stores.advance(HIDDEN_SECONDS + 10)
    for one in (wrong, depot):
        one.worker.run(jobs_max=5)
        one.committer.run(batches_max=5)
    assert depot.rows() == rows_of_jobs("x", "y", "z")


def test_an_operator_and_the_dead_letters_may_both_give_up(process: Process) -> None:
    depot = process("a")
    depot.given_table(redispatch_seconds=HOUR)
    depot.when_taken("x", "y")
    depot.create_jobs.run(depot.table)
    (job,) = depot.jobs()
    when_its_message_dies(depot)
    with depot.table.head.reading() as state:
        start = start_of(state)
    depot.table.head.commit(depot.table.own(start, ReleaseClaim(job)))
    assert depot.give_up_dead_jobs.run() == 0
    assert depot.queue.depth() == (0, 0)
