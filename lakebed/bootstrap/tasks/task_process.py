"""A task: a process that works on an instance until there is nothing more to do.

SIGTERM asks it to stop. A job that does not end soon after is given back, and the process with it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol, TypeVar

import msgspec
import pyarrow as pa

from lakebed.bootstrap.app import App
from lakebed.bootstrap.aws import open_instance
from lakebed.bootstrap.machine import cpus, task_work_bytes
from lakebed.bootstrap.memory import Memory
from lakebed.config.deployments.instance_resources import InstanceResources
from lakebed.config.environments import (
    FeedTakeEnvironment,
    IngestTaskEnvironment,
    TaskEnvironment,
    environment_of,
)
from lakebed.config.instance import instance_id
from lakebed.errors import LakebedError, NewerFormatError
from lakebed.model.jobs import COMPACTION_QUEUE, INGEST_QUEUE
from lakebed.observe.json_lines import write_json_lines
from lakebed.ports.job_queue import JobQueue, Received
from lakebed.ports.job_tracker import JobKind
from lakebed.statestore.queued_commits import COMMIT_QUEUE
from lakebed.tasks.task_loop import Ending, StopRequest, TaskLimits, TaskLoop, kept_or_given_back
from lakebed.tasks.task_reports import TaskReports
from lakebed.tasks.worker import FailurePolicy, JobHandler, Visibility, Worker

HIDDEN_SECONDS = 120.0
"""Seconds that a job's message is hidden, and again while the job runs: after a task was killed,
another one gets the job after so long."""
RETRY_SECONDS = 120.0
"""Seconds until a job that failed is tried again: compaction, or a store, has caught up by then."""
GRACE_SECONDS = 90.0
"""Most seconds that a job has to end. The platform kills a task 120 s after it asked it to stop."""

EXIT_CODES: dict[Ending, int] = {"failures": 1, "outdated": NewerFormatError.exit_code}
"""Exit codes of a task, by its end: those by which an operator is called. Other ends: 0."""

END_PROCESS = partial(os._exit, 0)
"""Ends the process at once: threads of a job would hold it up."""

EnvironmentT = TypeVar("EnvironmentT", bound=TaskEnvironment)


def task_loop(
    app: App,
    kind: JobKind,
    *,
    queue: JobQueue,
    handle: JobHandler,
    stop: StopRequest,
    refused: tuple[type[LakebedError], ...] = (),
    end_process: Callable[[], None] = END_PROCESS,
    limits: TaskLimits | None = None,
) -> TaskLoop:
    """Return what runs the jobs of a queue. refused: errors after which no try can help."""
    name = f"{app.rng.getrandbits(64):016x}"
    reports = TaskReports(kind, name, tracker=app.tracker, clock=app.clock)

    def counted(message: Received) -> object:
        try:
            return handle(message)
        finally:
            app.usage.keep()

    worker = Worker(
        queue=queue,
        handle=counted,
        job_ended=reports.job_ended,
        failures=FailurePolicy(refused=refused, retry_seconds=RETRY_SECONDS, bugs=True),
        visibility=Visibility(
            hidden_seconds=HIDDEN_SECONDS,
            keep_hidden=lambda message: kept_or_given_back(
                queue,
                message,
                hidden_seconds=HIDDEN_SECONDS,
                stop=stop,
                grace_seconds=GRACE_SECONDS,
                end_process=end_process,
            ),
        ),
    )
    return TaskLoop(worker, clock=app.clock, limits=limits, ended=reports.end)


class Work(Protocol):
    """The work that a task does."""

    def run(self, should_stop: Callable[[], bool] = ...) -> Ending:
        """Do it until it ends, or is to stop. Returns how it ended."""
        ...


def run_task(
    kind: type[EnvironmentT], work: Callable[[App, EnvironmentT, StopRequest], Work]
) -> int:
    """Open the instance that the variables of this process name, and do a task's work.

    Returns the exit code: 0, 1 where job after job failed, or that of `NewerFormatError` where a
    job needs a newer release.
    """
    environment = environment_of(kind, os.environ)
    always = {"instance": environment.instance}
    write_json_lines(sys.stdout, always, table_metrics=environment.table_metrics)
    pa.set_cpu_count(cpus())
    stop = StopRequest()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    app = opened(environment)
    try:
        ending = work(app, environment, stop).run(lambda: stop.is_asked)
    finally:
        app.close()
    return EXIT_CODES.get(ending, 0)


def opened(environment: TaskEnvironment) -> App:
    """Return the services of an instance by the names that a task was given."""
    more, batches = dict[str, str](), ""
    if isinstance(environment, IngestTaskEnvironment):
        more, batches = {INGEST_QUEUE: environment.ingest_queue_url}, environment.batches_table
    resources = msgspec.structs.replace(resources_named(environment, more), batches_table=batches)
    memory = Memory(work_bytes=task_work_bytes())
    return open_instance(
        resources.instance, resources=resources, memory=memory, first_report_seconds=0.0
    )


def resources_named(
    environment: TaskEnvironment | FeedTakeEnvironment, queues: Mapping[str, str]
) -> InstanceResources:
    """Return the parts of an instance that variables name. queues: beside those of all."""
    return InstanceResources(
        instance=instance_id(environment.instance),
        bucket=environment.bucket,
        prefix=environment.objects_prefix,
        log_table=environment.log_table,
        registry_table=environment.registry_table,
        tracker_table=environment.tracker_table,
        queues={
            COMPACTION_QUEUE: environment.compaction_queue_url,
            COMMIT_QUEUE: environment.commits_queue_url,
            **queues,
        },
    )
