"""Events: one line per unit of work, at its end. Counts, ids and sizes; never rows, keys or
payloads."""

from __future__ import annotations

import logging

INGEST_COMMITTED = "ingest_committed"
ROWS_LEFT_OUT = "rows_left_out"
BULK_IMPORT_COMMITTED = "bulk_import_committed"
BULK_IMPORT_SENT = "bulk_import_sent"
BULK_IMPORT_FAILED = "bulk_import_failed"
FILES_SUBMITTED = "files_submitted"
FILE_PASSED_OVER = "file_passed_over"
BATCH_SENT = "batch_sent"
BATCH_ENDED = "batch_ended"
FILES_REFUSED = "files_refused"
BATCHES_DROPPED = "batches_dropped"
QUERY_ANSWERED = "query_answered"
COMPACTION_JOBS_CREATED = "compaction_jobs_created"
COMPACTION_COMMITTED = "compaction_committed"
COMPACTION_LOST = "compaction_lost"
COMPACTION_GIVEN_UP = "compaction_given_up"
COMPACTION_REJECTED = "compaction_rejected"
PARTITIONS_SPLIT = "partitions_split"
GARBAGE_COLLECTED = "garbage_collected"
OBJECTS_SWEPT = "objects_swept"
SNAPSHOT_WRITTEN = "snapshot_written"
TABLE_CREATED = "table_created"
SETTINGS_CHANGED = "settings_changed"
FIELDS_CHANGED = "fields_changed"
PROCESSING_CHANGED = "processing_changed"
TABLE_CLEARED = "table_cleared"
ROWS_DELETED = "rows_deleted"
TABLE_RENAMED = "table_renamed"
TABLE_ADOPTED = "table_adopted"
FOLDER_WATCHED = "folder_watched"
TABLES_LEFT = "tables_left"
TABLE_OFFLINE = "table_offline"
TABLE_ONLINE = "table_online"
TABLE_QUARANTINED = "table_quarantined"
TABLE_DROPPED = "table_dropped"
TABLE_COPIED = "table_copied"
TABLE_NOT_COPIED = "table_not_copied"
TABLE_EXPORTED = "table_exported"
TABLE_RESTORED = "table_restored"
COMMITS_ANSWERED = "commits_answered"
COMMITS_GONE = "commits_gone"
REPAIR_DONE = "repair_done"
REPORT_LOST = "report_lost"
REPORTS_DAMAGED = "reports_damaged"
MARK_LOST = "mark_lost"
TICKS_SENT = "ticks_sent"
TABLE_HANDLED = "table_handled"
TABLE_MEASURED = "table_measured"
TABLE_FAILED = "table_failed"
WORK_FAILED = "work_failed"
JOB_FAILED = "job_failed"
JOB_GIVEN_BACK = "job_given_back"
TASK_BUG = "task_bug"
TASK_ENDED = "task_ended"
TASKS_STARTED = "tasks_started"
TASK_NOT_STARTED = "task_not_started"
TASK_FAILED = "task_failed"
KERNELS_ABSENT = "kernels_absent"
MERGE_HELPER_LOST = "merge_helper_lost"
CACHE_SET_ASIDE = "cache_set_aside"
MESSAGES_LOST = "messages_lost"
QUEUES_REINDEXED = "queues_reindexed"
LOCK_AWAITED = "lock_awaited"
LOG_TIME_TOLD = "log_time_told"
FEED_PROGRESSED = "feed_progressed"
FEED_FAILED = "feed_failed"
FEED_MEASURED = "feed_measured"
FEED_LAGGING = "feed_lagging"
FEED_RETRIED = "feed_retried"
FEED_GAP_RECORDED = "feed_gap_recorded"
FEED_ROWS_REFUSED = "feed_rows_refused"
FEED_QUARANTINE_GREW = "feed_quarantine_grew"
FEED_VALUES_LEFT_OUT = "feed_values_left_out"
FEED_WINDOWS_SEALED = "feed_windows_sealed"
FEED_SPILL_DROPPED = "feed_spill_dropped"
FEED_DROPPED = "feed_dropped"
FEED_STORE_AWAY = "feed_store_away"
FEED_CONNECTION_FORGOTTEN = "feed_connection_forgotten"
PUSH_REFUSED = "push_refused"
HISTORY_KEPT = "history_kept"
POSITION_MOVED = "position_moved"
BUDGET_SPENT = "budget_spent"
BUDGET_UNKNOWN = "budget_unknown"
USAGE_COUNTED = "usage_counted"
USAGE_LOST = "usage_lost"

MEANINGS = {
    INGEST_COMMITTED: "all rows of an ingest job became visible",
    ROWS_LEFT_OUT: "the table's filter or age-off left out every row of a job that takes rows in",
    BULK_IMPORT_COMMITTED: "all rows of a bulk import became visible",
    BULK_IMPORT_SENT: "a bulk import that came as a message was handed to Spark's platform",
    BULK_IMPORT_FAILED: "a run of Spark ended without a commit, and its driver reported no reason",
    FILES_SUBMITTED: "files wait to become a job; some were submitted before",
    FILE_PASSED_OVER: "a file arrived in a folder that its table watches, and cannot be taken in",
    BATCH_SENT: "the job of a batch of submitted files was sent, perhaps again",
    BATCH_ENDED: "the log holds the job of a batch, or it was not committed within the time for"
    " which ids are remembered",
    FILES_REFUSED: "files of a batch cannot be taken in; its job goes on without them",
    BATCHES_DROPPED: "files that waited for a table that is gone are forgotten",
    QUERY_ANSWERED: "a query that came as a message was answered, or its result was written down",
    COMPACTION_JOBS_CREATED: "files were claimed for new compaction jobs, which were sent",
    COMPACTION_COMMITTED: "one file replaced a compaction job's inputs",
    COMPACTION_LOST: "a compaction job ended without effect: its claim or its inputs were gone",
    COMPACTION_GIVEN_UP: "a compaction job failed too often; its files are free again",
    COMPACTION_REJECTED: "files cannot be merged as they are; their job keeps them, see its reason",
    PARTITIONS_SPLIT: "leaves with too many rows became several",
    GARBAGE_COLLECTED: "files that nothing refers to any more were deleted",
    OBJECTS_SWEPT: "objects that never got a reference were deleted",
    SNAPSHOT_WRITTEN: "the state was written down, and the log before older snapshots emptied",
    TABLE_CREATED: "a table got its name",
    SETTINGS_CHANGED: "settings of a table have new values",
    FIELDS_CHANGED: "fields of a table were added, renamed, dropped or widened",
    PROCESSING_CHANGED: "a table has another processing from now on",
    TABLE_CLEARED: "all rows of a table are gone; a new generation of it has begun",
    ROWS_DELETED: "rows of a table were deleted, by a range of keys or another condition",
    TABLE_DROPPED: "a table, its rows and its name are gone",
    TABLE_RENAMED: "a table has another name, and all else that it had",
    TABLE_ADOPTED: "a table that was made otherwise is declared by a file from now on",
    FOLDER_WATCHED: "files that arrive in a folder become rows of a table; null: none do any more",
    TABLES_LEFT: "a deployment is taken back: its tables stay as they are",
    TABLE_OFFLINE: "scheduled work passes over a table from now on",
    TABLE_QUARANTINED: "a table was set aside: nothing is done on it, and all of its bytes stay",
    TABLE_ONLINE: "scheduled work is done on a table from now on",
    TABLE_COPIED: "a backup or a restore brought the copy of a table to a version",
    TABLE_NOT_COPIED: "a table could not be copied; its copy stays the version before",
    TABLE_EXPORTED: "rows of a table were written to files with a manifest",
    TABLE_RESTORED: "a table was made of an export",
    COMMITS_ANSWERED: "commits that were queued are in the log, or refused for good",
    COMMITS_GONE: "a message asked for commits that were answered before, or are too old",
    REPAIR_DONE: "a step of a repair was carried out, or could not be",
    REPORT_LOST: "what became of a job could not be written down; the job itself is not harmed",
    REPORTS_DAMAGED: "reports of jobs cannot be read; new jobs are created, none is sent again",
    MARK_LOST: "schedules were not notified of a commit; they check the table within a day",
    TICKS_SENT: "tables that may have work due were sent to a queue",
    TABLE_HANDLED: "one kind of scheduled work was done on a table",
    TABLE_MEASURED: "how many rows, files, leaves and jobs a table has that was worked on",
    TABLE_FAILED: "scheduled work failed on one table; it is tried again later, other tables go on",
    WORK_FAILED: "a message could not be worked on now; it comes again, or is given up",
    JOB_FAILED: "a try of a job failed; it is tried again, or given up",
    JOB_GIVEN_BACK: "a task was asked to stop, and its job took too long: another task gets it",
    TASK_BUG: "a job met a bug of ours, reported with its location; its task goes on",
    TASKS_STARTED: "a queue has more messages than free tasks; the platform was asked for more",
    TASK_NOT_STARTED: "a task could not be started, or its program never ran; the reason is given",
    TASK_FAILED: "a task ended with an error, or was killed; another task runs its job again",
    TASK_ENDED: "a task ends: nothing is left for it to do, it is old, fails or was stopped",
    KERNELS_ABSENT: "compiled loops cannot be used; all works, large merges more slowly",
    CACHE_SET_ASIDE: "a cache of a table's state did not prove itself and is rebuilt from the log",
    MESSAGES_LOST: "messages that were sent are gone from a damaged file of queues: send again what"
    " was sent since the last good copy; a job is done once under its id",
    QUEUES_REINDEXED: "an index of queues hid messages and was made anew: look at the disk",
    LOCK_AWAITED: "a process waits long to write to a database that another process writes to",
    LOG_TIME_TOLD: "a clock was more than a day off log time: an entry recorded it, log time leapt"
    " or was set back",
    MERGE_HELPER_LOST: "a process that helped to merge failed; its part was merged without it",
    FEED_PROGRESSED: "records of a feed became rows, and its position moved with them",
    FEED_FAILED: "a feed stopped at what it cannot take; others go on",
    FEED_MEASURED: "how far a worker is behind a source, and what it holds, of one pipeline",
    FEED_LAGGING: "a connection has been behind its source for longer than its policy allows",
    FEED_RETRIED: "a feed met what may pass; it waits, and tries again; others go on",
    FEED_GAP_RECORDED: "a source had records no longer that were never taken; the feed went on",
    FEED_ROWS_REFUSED: "a table refused the rows of a round; the record to blame is searched for,"
    " by smaller rounds",
    FEED_QUARANTINE_GREW: "of a connection's records of this hour more than 1 % are bad, and ten at"
    " the least: said with each round that has bad ones",
    FEED_WINDOWS_SEALED: "windows of event time are complete as of this log entry: said once, by"
    " who committed it; after a crash `lakebed feed windows` says it alone",
    FEED_VALUES_LEFT_OUT: "values that their columns cannot hold were left out; their records are"
    " rows",
    FEED_SPILL_DROPPED: "a feed dropped records that waited on the disk; they are read again",
    FEED_DROPPED: "a worker ended and dropped what it had read of a feed; it is read again",
    FEED_STORE_AWAY: "a worker could not ask who lives or what is to run; it asks again",
    FEED_CONNECTION_FORGOTTEN: "a table has forgotten a connection that was dropped; rows stay",
    PUSH_REFUSED: "a receiver could not land what a sender pushed; the sender is to repeat it",
    HISTORY_KEPT: "jobs that ended on a day, or what was used in its hours, became rows of a table",
    BUDGET_SPENT: "the work on a table cost as much in this month as its budget allows, or more",
    BUDGET_UNKNOWN: "the ledger could not be read, so a table's budget stopped no work",
    USAGE_COUNTED: "what a unit of work used, by kind and table: requests, bytes, units, seconds",
    USAGE_LOST: "what a unit of work used could not be added to the ledger: the line of"
    " `usage_counted` before it says what",
    POSITION_MOVED: "an operator moved or deleted a position of a feed; the log says why",
}
"""Meanings of all events; `docs/reference/events.md` is made from it."""

_LOGGER = logging.getLogger("lakebed")


def emit(event: str, *, level: int = logging.INFO, **facts: object) -> None:
    """Write one line: the event, then its facts as `name=value`, also as fields for JSON logs."""
    if _LOGGER.isEnabledFor(level):
        text = " ".join(f"{name}={value}" for name, value in facts.items())
        _LOGGER.log(level, "%s %s", event, text, extra={"event": event, "facts": facts})
