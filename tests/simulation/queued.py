"""Commits that are queued, and what those who sent them are told: it is as true as a direct answer.

Rows are sent by the ingest that sends its commit; claims are sent because what refuses them ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from lakebed.errors import JobIdReusedError, LakebedError
from lakebed.model.names import JobId, RequestDigest, TableId, run_name
from lakebed.ports.job_tracker import JobReport
from lakebed.statestore.log_entries.file_changes import ClaimFiles
from lakebed.statestore.open_table import OpenTable, start_of
from lakebed.statestore.queued_commits import CommitRequester, QueuedCommit
from tests.simulation.auditor import Landing
from tests.simulation.machine import Machine
from tests.simulation.rows import ArrowRequest, TupleRequest
from tests.simulation.truth import Asked
from tests.simulation.violation import TRUTH, Violation

if TYPE_CHECKING:
    from tests.simulation.world import World

ANSWERS = ("committed", "rejected", "failed")
TOO_LATE = ("fenced", "table-missing")
"""Refusals that do not say what became of an earlier delivery, whose id may be forgotten: by the
floor, or with its table."""


class Sent(msgspec.Struct):
    """A commit that was queued. asked: whose rows it brings; None: it claims files."""

    table: TableId
    job: JobId
    run: str
    digest: RequestDigest
    asked: Asked | None = None
    told: str = ""


def queue_rows(world: World, machine: Machine) -> None:
    """Take new rows, or some that were sent before, by a commit that is queued."""
    table = world.some_table(machine)
    recent = [a for a in world.truth.asked.values() if a.table == table.id and a.job]
    asked = world.rng.choice(recent[-6:]) if recent and world.rng.random() < 0.2 else None
    if asked is None or not world.is_remembered(asked):
        asked = world.ask(table.id)
    queue_request(world, machine, table, asked)


def queue_request(world: World, machine: Machine, table: OpenTable, asked: Asked) -> None:
    source = (ArrowRequest if world.parquet else TupleRequest)(world.schema, asked.request)
    asked.open += 1
    try:
        done = machine.queued_ingest.run(table, source, asked.job)
    except JobIdReusedError:
        world.truth.refuse_as_reused(asked)
        return
    if done.number:
        world.truth.acknowledge(asked, done.number)
    else:
        world.sent.append(Sent(table.id, done.job, done.run, asked.request.digest, asked))


def queue_claims(world: World, machine: Machine) -> None:
    """Send claims of files, free or not: a refused one is never sent again by its sender."""
    queue_claims_of(world, machine, world.some_table(machine))


def queue_claims_of(world: World, machine: Machine, table: OpenTable) -> None:
    with table.head.reading() as state:
        start = start_of(state)
        leaves = [f.partition for f in state.leaf_figures() if f.files]
        if not leaves:
            return
        leaf = world.rng.choice(leaves)
        references = state.references(leaf)
    held = [r.file.name for r, job in references if job is not None]
    files = held if held and world.rng.random() < 0.5 else [r.file.name for r, _ in references]
    commits = []
    for _ in range(world.rng.choice((1, 2))):
        some = world.rng.sample(files, world.rng.randint(1, min(3, len(files))))
        job, run = JobId(table.fresh_id()), run_name(table.fresh_run())
        transaction = table.own(start, ClaimFiles(job, leaf, tuple(some)))
        commits.append(QueuedCommit(transaction, CommitRequester("compaction", job, run)))
        world.sent.append(Sent(table.id, job, run, transaction.digest))
    machine.commits.run(table.id, commits)


def commit_queued(world: World, machine: Machine) -> None:
    machine.committer.run(batches_max=world.rng.randrange(1, 4))


def hear(world: World) -> None:
    """Let all who wait look what they were told, and hold it against the log."""
    for sent in world.sent:
        reports = world.shared.tracker.history(sent.table, sent.job)
        answers = [r for r in reports if r.run == sent.run and r.event in ANSWERS]
        answers = [r for r in answers if not r.reason.startswith(TOO_LATE)]
        if not answers:
            continue
        both = len({r.event == "committed" for r in answers}) > 1
        if both and not is_landed_by_another_run(world, sent):
            raise Violation(TRUTH, f"job {sent.job} was told yes and no")
        if not sent.told:
            believe(world, sent, answers[0])
            sent.told = answers[0].event


def believe(world: World, sent: Sent, answer: JobReport) -> None:
    """Somebody was told, for the first time."""
    if answer.event == "committed":
        if not is_landed(world, sent):
            raise Violation(TRUTH, f"job {sent.job} was told {answer.number}, and is not there")
        if sent.asked is not None:
            world.truth.acknowledge(sent.asked, answer.number)
    elif sent.asked is not None and world.is_remembered(sent.asked):
        world.truth.refuse(sent.asked)


def is_landed(world: World, sent: Sent) -> bool:
    return bool(landings_of(world, sent))


def is_landed_by_another_run(world: World, sent: Sent) -> bool:
    """Whether *no* was true of this run and *yes* of its job: another run of it took the same rows,
    for instance after the table was cleared."""
    landings = landings_of(world, sent)
    return bool(landings) and not any(sent.run in one.runs for one in landings)


def landings_of(world: World, sent: Sent) -> list[Landing]:
    auditor = world.auditors[sent.table]
    every = (one for found in auditor.landings.values() for one in found)
    return [one for one in every if one.digest == sent.digest]


def check_told(world: World) -> None:
    """What was refused never landed, however often it was delivered."""
    hear(world)
    for sent in world.sent:
        refused = sent.told in {"rejected", "failed"} and sent.asked is None
        if refused and is_landed(world, sent):
            raise Violation(TRUTH, f"job {sent.job} was refused, and landed")


def drain(world: World, machine: Machine) -> None:
    """Commit all that is queued, in peace."""
    try:
        machine.committer.run(batches_max=10_000)
    except LakebedError as error:
        raise Violation(TRUTH, f"queued commits are refused in peace: {error}") from error
