"""A task that runs compaction jobs: what `lakebed run` does with their queue, and nothing else."""

from __future__ import annotations

from functools import partial

from lakebed.bootstrap.app import App
from lakebed.bootstrap.tasks.task_process import run_task, task_loop
from lakebed.config.environments import TaskEnvironment
from lakebed.model.jobs import decode_message
from lakebed.ports.job_queue import Received
from lakebed.tasks.task_loop import StopRequest, TaskLoop


def run() -> int:
    """Run a task of the instance that this process's variables name. Returns the exit code."""
    return run_task(TaskEnvironment, _loop)


def _loop(app: App, _: TaskEnvironment, stop: StopRequest) -> TaskLoop:
    return task_loop(
        app, "compaction", queue=app.queue, handle=partial(compact_from, app), stop=stop
    )


def compact_from(app: App, message: Received) -> None:
    """Run the job of a message. One of a dropped table went with it."""
    named = decode_message(message.body)
    table = app.catalog.find_id(named.table)
    if table is not None:
        app.run_job.run(table, named.job)
