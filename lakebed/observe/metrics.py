"""Every metric: what it counts, in which event it is found, and who is called when it is high.

A line of an event is the metric, too: CloudWatch reads it off the log (its embedded metric
format). Pages, dashboard and alarms are made from this list.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from lakebed.observe import events

NAMESPACE = "Lakebed"

Section = Literal[
    "ingest",
    "feeds",
    "commits",
    "compaction",
    "splitting",
    "garbage",
    "schedules",
    "tasks",
    "errors",
]
"""Of the dashboard."""


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """Goes off when the metric's sum, or its maximum, over some minutes reaches a threshold.

    page: of `docs/operate`.
    """

    threshold: float
    minutes: int
    page: str


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric.

    event, fact: where its value is found; no fact: each event counts 1.
    where: facts that the event must have.
    without_alarm: why it has none.
    by_table: whether it is also kept for each table, which costs as much for each.
    """

    name: str
    unit: Literal["Count", "Seconds", "Bytes"]
    section: Section
    meaning: str
    event: str
    fact: str = ""
    where: tuple[tuple[str, str], ...] = ()
    statistic: Literal["Sum", "Maximum"] = "Sum"
    alarm: Alarm | None = None
    without_alarm: str = ""
    by_table: bool = False

    def value(self, event: str, facts: dict[str, object]) -> float | None:
        """Return what an event says of it; None: nothing."""
        if event != self.event or any(facts.get(name) != value for name, value in self.where):
            return None
        value = facts.get(self.fact, 0) if self.fact else 1
        return value if isinstance(value, int | float) else None


WORK_RETRIED, WORK_REFUSED, WORK_CORRUPT, WORK_BUG = "retried", "refused", "corrupt", "bug"
"""What `events.WORK_FAILED` says of the kind of a failure."""

FOLLOWS = "it follows from what users do; none of it is wrong"
DEAD_LETTERS = "what does not mend itself ends in dead letters, which have an alarm"

FED = "`lakebed feed status` shows it, and a policy bounds what is bad"


def _fed(fate: str, meaning: str) -> Metric:
    """Return the metric of what became of records of feeds."""
    return Metric(
        name=f"feed_records_{fate}",
        unit="Count",
        section="feeds",
        meaning=meaning,
        event=events.FEED_PROGRESSED,
        fact=f"{fate}_count",
        without_alarm=FED,
    )


METRICS = (
    Metric(
        name="jobs_ingested",
        unit="Count",
        section="ingest",
        meaning="ingest jobs whose rows became visible",
        event=events.INGEST_COMMITTED,
        without_alarm=FOLLOWS,
    ),
    Metric(
        name="rows_ingested",
        unit="Count",
        section="ingest",
        meaning="rows that became visible",
        event=events.INGEST_COMMITTED,
        fact="rows_count",
        without_alarm=FOLLOWS,
        by_table=True,
    ),
    Metric(
        name="bulk_imports_sent",
        unit="Count",
        section="ingest",
        meaning="bulk imports of messages that were handed to Spark's platform",
        event=events.BULK_IMPORT_SENT,
        without_alarm=FOLLOWS,
    ),
    Metric(
        name="bulk_imports_failed",
        unit="Count",
        section="ingest",
        meaning="Spark runs that ended without a commit, and whose drivers reported no reason",
        event=events.BULK_IMPORT_FAILED,
        alarm=Alarm(threshold=1, minutes=60, page="docs/operate/bulk-imports-failed.md"),
    ),
    _fed("read", "records that feeds took from their sources"),
    _fed("stored", "of these, became rows"),
    _fed("filtered", "of these, left out by a connection's filter"),
    _fed("quarantined", "of these, no row could be made of"),
    _fed("deduplicated", "of these, known already"),
    _fed("sampled_out", "of these, left out by a policy that samples"),
    _fed("discarded", "of these, left out by a policy: too late, or too many"),
    Metric(
        name="feed_bytes_read",
        unit="Bytes",
        section="feeds",
        meaning="bytes of the records that feeds took from their sources",
        event=events.FEED_PROGRESSED,
        fact="bytes_count",
        without_alarm=FOLLOWS,
    ),
    Metric(
        name="feed_records_behind",
        unit="Count",
        section="feeds",
        meaning="positions that a source has beyond what was read of it, the most",
        event=events.FEED_MEASURED,
        fact="behind_count",
        statistic="Maximum",
        without_alarm="a feed that begins is far behind",
    ),
    Metric(
        name="feed_lag_seconds",
        unit="Seconds",
        section="feeds",
        meaning="time for which a source has had more than was read of it, the longest",
        event=events.FEED_MEASURED,
        fact="lag_seconds",
        statistic="Maximum",
        without_alarm="a policy with `lag_seconds_max` has an event, and may stop the connection",
    ),
    Metric(
        name="feed_bytes_waiting",
        unit="Bytes",
        section="feeds",
        meaning="bytes that a worker has read and not committed, of one pipeline, the most",
        event=events.FEED_MEASURED,
        fact="waiting_bytes",
        statistic="Maximum",
        without_alarm="it is bounded by `rotate_bytes`",
    ),
    Metric(
        name="feed_pipelines_failing",
        unit="Count",
        section="feeds",
        meaning="reports of a landing or a connection that waits to be tried again",
        event=events.FEED_MEASURED,
        fact="failing_count",
        without_alarm="what does not mend itself fails, and is counted as that",
    ),
    Metric(
        name="feed_failures",
        unit="Count",
        section="feeds",
        meaning="landings and connections that stopped until they are started again",
        event=events.FEED_FAILED,
        without_alarm="instances that run feeds have one, by their own stack",
    ),
    Metric(
        name="feed_gaps",
        unit="Count",
        section="feeds",
        meaning="parts of a source that were gone before they were taken",
        event=events.FEED_GAP_RECORDED,
        without_alarm="instances that run feeds have one, by their own stack",
    ),
    Metric(
        name="feed_tasks_failed",
        unit="Count",
        section="feeds",
        meaning="tasks of feeds that ended with an error, or were killed",
        event=events.TASK_FAILED,
        where=(("kind", "feeds"),),
        without_alarm="instances that run feeds have one, by their own stack",
    ),
    Metric(
        name="commits_answered",
        unit="Count",
        section="commits",
        meaning="queued commits that are in the log, or refused for good",
        event=events.COMMITS_ANSWERED,
        fact="commits_count",
        without_alarm=FOLLOWS,
    ),
    Metric(
        name="commit_lag_seconds",
        unit="Seconds",
        section="commits",
        meaning="time from sending a commit to its answer, the longest",
        event=events.COMMITS_ANSWERED,
        fact="lag_seconds",
        statistic="Maximum",
        without_alarm="the age of the oldest message of their queue has one",
    ),
    Metric(
        name="compaction_jobs_created",
        unit="Count",
        section="compaction",
        meaning="compaction jobs that were created",
        event=events.COMPACTION_JOBS_CREATED,
        fact="jobs_count",
        without_alarm=FOLLOWS,
    ),
    Metric(
        name="compactions",
        unit="Count",
        section="compaction",
        meaning="compaction jobs whose output replaced their inputs",
        event=events.COMPACTION_COMMITTED,
        without_alarm=FOLLOWS,
    ),
    Metric(
        name="compaction_seconds",
        unit="Seconds",
        section="compaction",
        meaning="time that a compaction job took, the longest",
        event=events.COMPACTION_COMMITTED,
        fact="seconds",
        statistic="Maximum",
        without_alarm="jobs differ; one that hangs comes to be an old message",
    ),
    Metric(
        name="compactions_rejected",
        unit="Count",
        section="compaction",
        meaning="jobs whose files cannot be merged as they are",
        event=events.COMPACTION_REJECTED,
        alarm=Alarm(threshold=1, minutes=60, page="docs/operate/compactions-rejected.md"),
    ),
    Metric(
        name="compaction_jobs_open",
        unit="Count",
        section="compaction",
        meaning="jobs that hold files of a table, the most",
        event=events.TABLE_MEASURED,
        fact="jobs_count",
        statistic="Maximum",
        without_alarm="the age of the oldest job has one",
        by_table=True,
    ),
    Metric(
        name="leaf_files_most",
        unit="Count",
        section="compaction",
        meaning="files in the leaf of a table that has most",
        event=events.TABLE_MEASURED,
        fact="leaf_files_most",
        statistic="Maximum",
        alarm=Alarm(threshold=400, minutes=15, page="docs/operate/files-per-leaf.md"),
        by_table=True,
    ),
    Metric(
        name="leaves_split",
        unit="Count",
        section="splitting",
        meaning="leaves that had too many rows and became several",
        event=events.PARTITIONS_SPLIT,
        fact="partitions_count",
        without_alarm=FOLLOWS,
    ),
    Metric(
        name="files_collected",
        unit="Count",
        section="garbage",
        meaning="files without a reference that were deleted",
        event=events.GARBAGE_COLLECTED,
        fact="files_count",
        without_alarm=FOLLOWS,
    ),
    Metric(
        name="objects_swept",
        unit="Count",
        section="garbage",
        meaning="objects that never got a reference and were deleted",
        event=events.OBJECTS_SWEPT,
        fact="objects_count",
        without_alarm="they are left by workers that died, and failed tasks have a metric",
    ),
    Metric(
        name="ticks_sent",
        unit="Count",
        section="schedules",
        meaning="tables that were sent to a queue because they may have work due",
        event=events.TICKS_SENT,
        fact="tables_count",
        without_alarm=FOLLOWS,
    ),
    Metric(
        name="work_seconds",
        unit="Seconds",
        section="schedules",
        meaning="time that one kind of work took on one table, the longest",
        event=events.TABLE_HANDLED,
        fact="seconds",
        statistic="Maximum",
        without_alarm="a run that takes too long is an error of its function, which has an alarm",
    ),
    Metric(
        name="snapshots_written",
        unit="Count",
        section="schedules",
        meaning="states that were written down",
        event=events.SNAPSHOT_WRITTEN,
        without_alarm=FOLLOWS,
    ),
    Metric(
        name="marks_lost",
        unit="Count",
        section="schedules",
        meaning="commits of which schedules were not notified",
        event=events.MARK_LOST,
        without_alarm="each is mended within a day",
    ),
    Metric(
        name="tasks_started",
        unit="Count",
        section="tasks",
        meaning="tasks that were asked for, because messages waited",
        event=events.TASKS_STARTED,
        fact="tasks_count",
        without_alarm=FOLLOWS,
    ),
    Metric(
        name="tasks_not_started",
        unit="Count",
        section="tasks",
        meaning="tasks that could not be started, or whose program never ran",
        event=events.TASK_NOT_STARTED,
        alarm=Alarm(threshold=3, minutes=15, page="docs/operate/tasks-not-started.md"),
    ),
    Metric(
        name="tasks_failed",
        unit="Count",
        section="tasks",
        meaning="tasks that ended with an error, or were killed",
        event=events.TASK_FAILED,
        without_alarm=DEAD_LETTERS,
    ),
    Metric(
        name="work_retried",
        unit="Count",
        section="errors",
        meaning="messages that came back: a store was busy, or another commit was first",
        event=events.WORK_FAILED,
        where=(("kind", WORK_RETRIED),),
        without_alarm=DEAD_LETTERS,
    ),
    Metric(
        name="work_refused",
        unit="Count",
        section="errors",
        meaning="messages that can never work",
        event=events.WORK_FAILED,
        where=(("kind", WORK_REFUSED),),
        without_alarm=DEAD_LETTERS,
    ),
    Metric(
        name="corruption_found",
        unit="Count",
        section="errors",
        meaning="messages whose work met bytes that contradict their checksum",
        event=events.WORK_FAILED,
        where=(("kind", WORK_CORRUPT),),
        alarm=Alarm(threshold=1, minutes=5, page="docs/operate/corruption.md"),
    ),
    Metric(
        name="bugs_met",
        unit="Count",
        section="errors",
        meaning="messages whose work ended in an unexpected error",
        event=events.WORK_FAILED,
        where=(("kind", WORK_BUG),),
        alarm=Alarm(threshold=1, minutes=5, page="docs/operate/bugs.md"),
    ),
)
