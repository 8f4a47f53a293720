"""Every metric: what it counts, in which event it is found, and who is called when it is high.

A line of an event is the metric, too: CloudWatch reads it off the log (its embedded metric
format). Pages, dashboard and alarms are made from this list.
"""

from __future__ import annotations

from lakebed.observe import events
from lakebed.observe.feed_metrics import FEED_METRICS
from lakebed.observe.metric import FOLLOWS, Alarm, Metric

NAMESPACE = "Lakebed"

WORK_RETRIED, WORK_REFUSED, WORK_CORRUPT, WORK_BUG = "retried", "refused", "corrupt", "bug"
"""Kinds of failures that `events.WORK_FAILED` names."""

DEAD_LETTERS = "what does not mend itself ends in dead letters, which have an alarm"


def _failed(name: str, kind: str, meaning: str, alarm: Alarm | None = None) -> Metric:
    """Return the metric of messages whose work failed in one way."""
    return Metric(
        name=name,
        unit="Count",
        section="errors",
        meaning=meaning,
        event=events.WORK_FAILED,
        where=(("kind", kind),),
        alarm=alarm,
        without_alarm="" if alarm else DEAD_LETTERS,
        of_trouble=True,
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
        of_trouble=True,
    ),
    *FEED_METRICS,
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
        of_trouble=True,
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
        name="leaf_files_percent",
        unit="Percent",
        section="compaction",
        meaning="files in the fullest leaf of a table, of as many as its settings allow",
        event=events.TABLE_MEASURED,
        fact="leaf_files_percent",
        statistic="Maximum",
        alarm=Alarm(threshold=80, minutes=15, page="docs/operate/files-per-leaf.md"),
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
        of_trouble=True,
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
        of_trouble=True,
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
        alarm=Alarm(
            threshold=3, minutes=15, page="docs/operate/tasks-not-started.md", command="tasks"
        ),
        of_trouble=True,
    ),
    Metric(
        name="tasks_failed",
        unit="Count",
        section="tasks",
        meaning="tasks that ended with an error, or were killed",
        event=events.TASK_FAILED,
        without_alarm=DEAD_LETTERS,
        of_trouble=True,
    ),
    _failed(
        "work_retried",
        WORK_RETRIED,
        "messages that came back: a store was busy, or another commit was first",
    ),
    _failed("work_refused", WORK_REFUSED, "messages that can never work"),
    _failed(
        "corruption_found",
        WORK_CORRUPT,
        "messages whose work met bytes that contradict their checksum",
        Alarm(threshold=1, minutes=5, page="docs/operate/corruption.md", command="fsck"),
    ),
    _failed(
        "bugs_met",
        WORK_BUG,
        "messages whose work ended in an unexpected error",
        Alarm(threshold=1, minutes=5, page="docs/operate/bugs.md", command="dead-letters show"),
    ),
    Metric(
        name="task_bugs",
        unit="Count",
        section="errors",
        meaning="jobs of tasks that met an unexpected error, each time they were tried",
        event=events.TASK_BUG,
        without_alarm="a job that meets it again is rejected or a dead letter, which have alarms",
        of_trouble=True,
    ),
    Metric(
        name="budgets_spent",
        unit="Count",
        section="costs",
        meaning="tables whose work cost as much in this month as their budget, or more, once a day",
        event=events.BUDGET_SPENT,
        alarm=Alarm(threshold=1, minutes=60, page="docs/operate/budgets.md"),
        of_trouble=True,
    ),
)
