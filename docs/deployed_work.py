"""What is deployed on AWS, and who sends what to whom. A test of stacks compares it with the
templates, and `docs/deployment_drawing.py` draws it."""

from __future__ import annotations

from typing import NamedTuple

TASKS = " tasks"
"""What follows the family of a task's definition."""


class DeployedWork(NamedTuple):
    """What works in an instance, and how it comes to its work.

    name: of a function, or of tasks.
    queue: whose messages it takes; empty for none.
    begins: who sends to the queue, or calls the function.
    trigger: the function that sends to the queue, or starts the tasks.
    schedule: how often the trigger runs, or the function itself if nothing else begins it.
    does: what is said of it.
    sends: the queues that it sends to.
    has_stores: whether it reads or writes what the instance stores.
    """

    name: str
    queue: str = ""
    begins: str = ""
    trigger: str = ""
    schedule: str = ""
    does: str = ""
    sends: tuple[str, ...] = ()
    has_stores: bool = True

    @property
    def is_tasks(self) -> bool:
        return self.name.endswith(TASKS)


MINUTE, MINUTES, DAY = "each minute", "each 5 minutes", "each day"

OUTSIDE = DeployedWork("in their own process", begins="library, CLI")
"""It works with the stores alone."""

ALWAYS = (
    DeployedWork("batching-submit", "submissions", "users, arrivals in S3"),
    DeployedWork(
        "batching-handle",
        "batching",
        trigger="batching-trigger",
        schedule=MINUTE,
        sends=("ingest", "bulk-import"),
    ),
    DeployedWork("ingest tasks", "ingest", "users: some files", "ingest-tasks-start", MINUTE),
    DeployedWork(
        "bulk-import-start", "bulk-import", "users: many files", does="runs Spark (EMR Serverless)"
    ),
    DeployedWork("bulk-import-follow", schedule=MINUTES, does="asks how Spark fares"),
    DeployedWork("query-handle", "query", "users: questions"),
    DeployedWork("query-answer", begins="users, by invoking it"),
    DeployedWork("splitting-handle", "splitting", trigger="splitting-trigger", schedule=MINUTE),
    DeployedWork(
        "compaction-creation-handle",
        "compaction-creation",
        trigger="compaction-creation-trigger",
        schedule=MINUTE,
        sends=("compaction",),
    ),
    DeployedWork("compaction tasks", "compaction", "", "compaction-tasks-start", MINUTE),
    DeployedWork("garbage-handle", "garbage", trigger="garbage-trigger", schedule=MINUTES),
    DeployedWork("snapshots-handle", "snapshots", trigger="snapshots-trigger", schedule=MINUTES),
    DeployedWork("sweep-handle", "sweep", trigger="sweep-trigger", schedule=DAY),
    DeployedWork("sweep-nameless", schedule=DAY),
    DeployedWork("committer-commit", "commits", "library: queued=True"),
    DeployedWork("dead-letters-give-up", schedule=MINUTES, does="of compaction and commits"),
    DeployedWork("release-check", begins="each deployment"),
)
"""What an instance has that leaves nothing out."""

IF_ASKED = (
    DeployedWork("feeds tasks", "", "", "feed-tasks-start", MINUTE, "read the sources of feeds"),
    DeployedWork("feeds-take", schedule=MINUTE, does="reads the sources of feeds"),
    DeployedWork("feeds-push", begins="senders, by HTTPS"),
    DeployedWork("history-handle", schedule="each 6 hours"),
    DeployedWork("job-events-publish", begins="stream of the tracker", does="sends to EventBridge"),
    DeployedWork("tables-apply", begins="each deployment"),
    DeployedWork("networking-check", begins="each deployment", has_stores=False),
)
"""What it has only where a setting asks for it."""

TABLES = {
    "log": "of all tables",
    "registry": "names, marks",
    "tracker": "jobs, usage",
    "batches": "waiting files",
}
BUCKETS = {"data": "files of tables,\nsnapshots, log entries", "results": "of queries"}
