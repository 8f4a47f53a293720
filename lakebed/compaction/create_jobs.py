"""Create compaction jobs: plan, claim in the log, then send. A job lives in the state (H20)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lakebed.compaction.chosen_strategy import (
    GroupsOf,
    StrategyAnswers,
    ask_strategy,
    groups_of_now,
)
from lakebed.compaction.dead_letters import OUTDATED
from lakebed.compaction.free_leaves import free_leaves, fullest_first
from lakebed.compaction.last_parts import due_last_parts
from lakebed.compaction.plan import FAN_IN_MAX
from lakebed.compaction.rejected_jobs import has_changed, is_freed
from lakebed.compaction.run_job import GiveUpCompactionJob
from lakebed.errors import ConflictError, CorruptError, LakebedError, StrategyError
from lakebed.model.jobs import CompactionMessage, encode_message
from lakebed.model.names import (
    MICROS_PER_SECOND,
    FileName,
    JobId,
    Micros,
    PartitionId,
    TransactionNumber,
    base_of,
)
from lakebed.model.processing import Processing
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.ports.compaction_strategies import CompactionStrategies
from lakebed.ports.job_queue import JobQueue, Message
from lakebed.ports.job_tracker import JobEvent, JobReport, JobTracker
from lakebed.statestore.log_entries.file_changes import ClaimFiles
from lakebed.statestore.log_entries.transactions import Transaction
from lakebed.statestore.open_table import OpenTable, Start, start_of
from lakebed.statestore.table_state.file_parts import last_parts
from lakebed.statestore.table_state.state import CompactionJob, TableState
from lakebed.tasks.job_reports import JobReports

NAMES_PER_ENTRY = 1_300
"""Most names in an entry of claims: so it lies in the log itself, whatever their names, as who
creates jobs may put no bodies beside it. A claim names its files, its job, its commit and a
digest."""
SENT_AT_ONCE = 1_000
SETTLED_SECONDS_MIN = 3_600
SETTLED_SECONDS_MIN_ASKED = 60
"""As exactly as the state knows when entries were written."""

REJECTED_SECONDS_ASKED = 60
"""Seconds after which a rejected job is tried again, if a user asks. The schedule tries it again
when the table has changed (`rejected_jobs.py`)."""

UNTIL_STARTED_AGAIN = 8
"""Multiple of `redispatch_seconds` until a started job is sent again. Its message is in the queue:
it comes back, or is deleted with the job's end, or becomes a dead letter. A second one would let
another task do the same long merge, and one that kills each task would be tried ever more often."""

Plan = tuple[PartitionId, tuple[FileName, ...]]
"""A leaf, and files of it that one job will merge."""


class CreateCompactionJobs:
    """Gives a table the compaction jobs it needs. Safe to kill anywhere, and to run twice at
    once."""

    def __init__(
        self,
        *,
        queue: JobQueue,
        tracker: JobTracker,
        clock: Clock,
        strategies: CompactionStrategies,
    ) -> None:
        self._queue = queue
        self._tracker = tracker
        self._strategies = strategies
        self._reports = JobReports("compaction", tracker=tracker, clock=clock)
        self._give_up = GiveUpCompactionJob(clock=clock, tracker=tracker)

    def run(self, table: OpenTable, *, everything: bool = False) -> int:
        """Claim files for new jobs, send them, and send again what no worker started.

        everything: merge whatever can be merged. Returns how many jobs are new.

        Raises:
            StrategyError: a user's strategy failed. No job is new; waiting ones were sent again.
        """
        now = table.due_time(lambda now: _is_any_late(table, now))
        failure, answers = (None, None) if everything else self._asked(table, now)
        with table.head.reading() as state:
            start = start_of(state)
            settings = state.settings()
            groups_of = groups_of_now(settings, answers, everything=everything)
            plans = [] if failure else _plans(state, groups_of, now, everything=everything)
            waiting = state.jobs()
        self._send_again(table, waiting, settings.redispatch_seconds, now, asked=everything)
        if failure is not None:
            raise failure
        created = self._create(table, start, plans)
        if created:
            events.emit(events.COMPACTION_JOBS_CREATED, table=table.name, jobs_count=created)
        return created

    def _asked(
        self, table: OpenTable, now: Micros
    ) -> tuple[StrategyError | None, StrategyAnswers | None]:
        """Return what a user's strategy gave, or why it could not. The state is not held while it
        thinks."""
        try:
            return None, ask_strategy(self._strategies, table.head, now)
        except StrategyError as error:
            return error, None

    def _create(self, table: OpenTable, start: Start, plans: Sequence[Plan]) -> int:
        """Claim, and send what is claimed, many jobs at once; also when claiming fails later on."""
        created = 0
        unsent: list[JobId] = []
        try:
            for some in _file_groups(plans):
                claims = [ClaimFiles(JobId(table.fresh_id()), leaf, files) for leaf, files in some]
                claimed, failure = self._claim(table, [(c, table.own(start, c)) for c in claims])
                unsent += claimed
                created += len(claimed)
                if failure is not None:
                    raise failure
                if len(unsent) >= SENT_AT_ONCE:
                    now, unsent = unsent, []
                    self._send(table, now, "created")
        finally:
            self._send(table, unsent, "created")
        return created

    def _claim(
        self, table: OpenTable, claims: list[tuple[ClaimFiles, Transaction]]
    ) -> tuple[list[JobId], LakebedError | None]:
        """Commit claims; return the jobs of those that landed, and what went wrong with another.
        One that lost a race is left out: the next tick plans anew."""
        answers = table.head.commit_group([transaction for _, transaction in claims])
        claimed: list[JobId] = []
        failure: LakebedError | None = None
        for (claim, _), answer in zip(claims, answers, strict=True):
            if not isinstance(answer, LakebedError):
                claimed.append(claim.job)
            elif not isinstance(answer, ConflictError):
                failure = answer
        return claimed, failure

    def _send_again(
        self,
        table: OpenTable,
        jobs: list[CompactionJob],
        seconds: int,
        now: Micros,
        *,
        asked: bool,
    ) -> None:
        """Send jobs of which nothing was heard for so long, and rejected ones that may work now.
        None where the reports are damaged: these are hints, and hold up no new job."""
        reports = self._last_reports(table, jobs)
        if reports is None:
            return
        late: list[JobId] = []
        rejected: list[tuple[CompactionJob, JobReport]] = []
        for job in jobs:
            last = reports[job.id]
            heard = job.at  # a report by a clock that is ahead does not say when that was
            if last is not None and last.at <= now:
                heard = max(job.at, last.at)
            is_rejected = last is not None and last.event == "rejected"
            wait = REJECTED_SECONDS_ASKED if is_rejected else seconds
            if last is not None and _is_in_its_queue(last) and not asked:
                wait = seconds * UNTIL_STARTED_AGAIN
            is_late = now - heard >= wait * MICROS_PER_SECOND
            if last is not None and is_rejected and not (asked and is_late):
                rejected.append((job, last))
            elif is_late:
                late.append(job.id)
        if rejected:
            late += self._lifted(table, rejected, now)
        self._send(table, late, "sent")

    def _last_reports(
        self, table: OpenTable, jobs: list[CompactionJob]
    ) -> dict[JobId, JobReport | None] | None:
        """Return the newest report of each job. None: reports are damaged. Who sent a job then
        could not write it down, and would send it again each time."""
        try:
            return {job.id: self._tracker.last(table.id, job.id) for job in jobs}
        except CorruptError as error:
            events.emit(
                events.REPORTS_DAMAGED, table=table.name, jobs_count=len(jobs), reason=error
            )
            return None

    def _lifted(
        self, table: OpenTable, rejected: Sequence[tuple[CompactionJob, JobReport]], now: Micros
    ) -> list[JobId]:
        """Return the rejected jobs that may work now. The files of some are freed instead; the
        reports of all others are kept, as long as they hold."""
        with table.head.reading() as state:
            freed = [job.id for job, report in rejected if is_freed(state, job, report)]
            changed = [job.id for job, report in rejected if has_changed(state, job, report, now)]
        for job in freed:
            self._give_up.run(
                table, job, reason="its leaf or table changed: its files are planned anew"
            )
        over = {*freed, *changed}
        self._reports.renew([report for job, report in rejected if job.id not in over])
        return [job for job in changed if job not in freed]

    def _send(self, table: OpenTable, jobs: list[JobId], event: JobEvent) -> None:
        for at in range(0, len(jobs), SENT_AT_ONCE):
            some = jobs[at : at + SENT_AT_ONCE]
            bodies = (encode_message(CompactionMessage(table.id, job)) for job in some)
            self._queue.send([Message(body) for body in bodies])
            self._reports.report_all(table.id, some, event)


def _is_in_its_queue(last: JobReport) -> bool:
    """Return whether a worker had the message of a job, and did not end it."""
    if last.event == "failed":
        return not last.reason.startswith(OUTDATED)  # its letter may be gone: it waits for upgrades
    return last.event == "started"


def _is_any_late(table: OpenTable, now: Micros) -> bool:
    """Return whether jobs or files of a table may have waited for long enough."""
    with table.head.reading() as state:
        if state.jobs():
            return True
        if not state.has_files():
            return False
        return _settled(state, now, everything=False) > 0 or bool(due_last_parts(state, now))


def _settled(state: TableState, now: Micros, *, everything: bool) -> TransactionNumber:
    """Return the number up to which files have a base that is old: they are rewritten alone, for
    rows of theirs may have aged off. 0: there are none.

    A file is rewritten at the earliest a quarter of the span after it was begun, so a row is
    rewritten four times in its life for it, however many rows have expired. Where groups age, it is
    merged with all files of its leaf, once in a span.
    """
    processing = None if state.head().dropped else state.processing()
    if processing is None or processing.age_off is None:
        return TransactionNumber(0)
    seconds = _settled_seconds(processing)
    if everything:
        seconds = SETTLED_SECONDS_MIN_ASKED
    return state.number_older_than(Micros(now - seconds * MICROS_PER_SECOND))


def _plans(state: TableState, groups_of: GroupsOf, now: Micros, *, everything: bool) -> list[Plan]:
    """Return what to claim, the leaves with most files first, within the limits on jobs."""
    settings = state.settings()
    settled = _settled(state, now, everything=everything)
    due_parts = {} if everything else due_last_parts(state, now)
    together = _age_together(state)
    room = settings.table_jobs_max - len(state.jobs())
    plans: list[Plan] = []

    def files_min(leaf: PartitionId) -> int:
        return 1 if settled or everything or leaf in due_parts else 2

    leaves = free_leaves(state, fullest_first(state), files_min=files_min, everything=everything)
    for leaf in leaves if room > 0 else ():
        free = leaf.files
        file_groups = groups_of(leaf.partition, free) if len(free) > 1 else []
        old = [r.file.name for r in free if base_of(r.file.name) <= settled]
        if together and old and not leaf.running and len(free) <= FAN_IN_MAX:
            file_groups = [tuple(r.file.name for r in free)]
        else:
            grouped = {name for file_group in file_groups for name in file_group}
            alone = [] if together else old
            if everything:
                alone += [r.file.name for r in last_parts(state, free)]
            file_groups += [(name,) for name in dict.fromkeys(alone) if name not in grouped]
            parts = [n for n in due_parts.get(leaf.partition, ()) if n not in {*grouped, *alone}]
            file_groups += [tuple(parts[: settings.job_files_max])] if parts else []
        plans += [(leaf.partition, file_group) for file_group in file_groups[: leaf.allowed]]
        if len(plans) >= room:
            break
    return plans[:room]


def _age_together(state: TableState) -> bool:
    """Return whether rows leave only where all rows of their key are merged."""
    processing = None if state.head().dropped else state.processing()
    return processing is not None and processing.ages_groups


def _file_groups(plans: Sequence[Plan]) -> Iterator[list[Plan]]:
    """Yield what one log entry claims: so many names, or one job's."""
    some: list[Plan] = []
    names = 0
    for leaf, files in plans:
        own = len(files) + 3
        if some and names + own > NAMES_PER_ENTRY:
            yield some
            some, names = [], 0
        some.append((leaf, files))
        names += own
    if some:
        yield some


def look_again(table: OpenTable) -> Micros | None:
    """Return when a table is to be looked at again although nothing changes: a job is sent again
    when no worker started it, and files are rewritten for rows that age off."""
    with table.head.reading() as state:
        waits = [state.settings().redispatch_seconds] if state.jobs() else []
        processing = state.processing()
    if processing is not None and processing.age_off is not None:
        waits.append(_settled_seconds(processing))
    return Micros(table.head.log_time() + min(waits) * MICROS_PER_SECOND) if waits else None


def _settled_seconds(processing: Processing) -> int:
    seconds = 0 if processing.age_off is None else processing.age_off.seconds
    return max(SETTLED_SECONDS_MIN, seconds if processing.ages_groups else seconds // 4)
