"""The queues of an instance in SQS, by the kind of their messages. The stacks make them so."""

from __future__ import annotations

import msgspec

KEPT_DAYS = 14
"""Days that messages and dead letters are kept: as long as SQS can keep them. Messages are hints:
jobs live in the state."""


RUNS_SHARE = 10
"""Each function with a queue may use a tenth of the runs that the account has room for."""
MAPPING_RUNS_MAX = 1_000
"""The most that Lambda takes for one queue."""


class JobQueueShape(msgspec.Struct, frozen=True, kw_only=True):
    """A FIFO queue and its dead letters.

    kind: of its messages, and part of its physical name.
    receives_max: a message received more often is a dead letter.
    age_seconds_max: of the oldest message, before an operator is called.
    hidden_seconds: how long a message in hand is out of sight, unless who takes it says otherwise.
    from_users: they need not give an id against doubles.
    runs_min: of its function, at one time, however small the account.
    """

    kind: str
    age_seconds_max: int
    receives_max: int = 5
    hidden_seconds: int = 30
    from_users: bool = False
    runs_min: int = 2  # the least that Lambda takes

    def runs_max(self, function_runs_max: int) -> int:
        """Return how many runs of its function there may be at one time: its share of all runs."""
        return min(max(self.runs_min, function_runs_max // RUNS_SHARE), MAPPING_RUNS_MAX)


COMPACTION_JOBS = JobQueueShape(kind="compaction", age_seconds_max=3_600)
"""A job is waiting too long: there are too few tasks, or none comes up."""

WORK_SECONDS_MAX = 120
"""Most seconds that one run of a function may work on messages of a queue."""
WORK_HIDDEN_SECONDS = 8 * WORK_SECONDS_MAX
"""Seconds that these messages are hidden, longer than one waits for a run of a new account.
Received in vain five times, a message is a dead letter later than its age called an operator. AWS
advises at least six times what a run takes."""

COMMITS = JobQueueShape(
    kind="commits",
    age_seconds_max=300,
    hidden_seconds=WORK_HIDDEN_SECONDS,
    runs_min=8,
)
"""Ingested or merged rows are not visible yet, and their sender waits for an answer. In a new
account this queue may use eight of ten runs; the other functions keep two."""

INGEST_JOBS = JobQueueShape(kind="ingest", age_seconds_max=3_600, from_users=True)
"""Files wait too long to become rows: there are too few tasks, or none comes up."""

QUERY_SECONDS_MAX = 300
"""Most seconds that a query may run whose message waited in the queue, or whose sender waits."""

QUERY_HELD_SECONDS = 120
"""Seconds that a query's message is hidden, and again while the query runs: after its function
died, another one gets it after so long. The queue's own time, which AWS wants above a run's, counts
before it begins."""

QUERIES = JobQueueShape(
    kind="query",
    age_seconds_max=3_600,
    hidden_seconds=6 * QUERY_SECONDS_MAX,
    from_users=True,
)
"""A caller waits for a result: functions fail, or too many queries came at once."""

BULK_IMPORT_JOBS = JobQueueShape(
    kind="bulk-import",
    age_seconds_max=3_600,
    hidden_seconds=WORK_HIDDEN_SECONDS,
    from_users=True,
)
"""Bulk imports wait too long to be started. How long they run is not seen here."""

SUBMISSIONS = JobQueueShape(
    kind="submissions",
    age_seconds_max=3_600,
    hidden_seconds=WORK_HIDDEN_SECONDS,
    from_users=True,
)
"""Files wait too long to be looked at, and so to wait for a batch: functions fail, or very many
arrived at once."""

JOB_QUEUES = (COMPACTION_JOBS, COMMITS, INGEST_JOBS, QUERIES, BULK_IMPORT_JOBS, SUBMISSIONS)
"""Queues to which the library and users send jobs."""


def _ticks(kind: str) -> JobQueueShape:
    """Return the queue of one kind of scheduled work: `{"table": ID}`, a group for each table."""
    return JobQueueShape(kind=kind, age_seconds_max=3_600, hidden_seconds=WORK_HIDDEN_SECONDS)


SPLITTING = _ticks("splitting")
COMPACTION_CREATION = _ticks("compaction-creation")
GARBAGE = _ticks("garbage")
SWEEP = _ticks("sweep")
SNAPSHOTS = _ticks("snapshots")

BATCHING = _ticks("batching")
"""The queue of what a schedule sends about tables with submitted files, whatever their logs say."""
TICK_QUEUES = (SPLITTING, COMPACTION_CREATION, GARBAGE, SWEEP, SNAPSHOTS)
"""Queues of what schedules send about tables that may have something to do."""
ALL_QUEUES = (*JOB_QUEUES, *TICK_QUEUES, BATCHING)
"""All queues of an instance that leaves nothing out."""
