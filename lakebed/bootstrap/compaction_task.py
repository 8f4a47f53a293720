"""A task that runs compaction jobs: what `lakebed run` does with their queue, and nothing else."""

from __future__ import annotations

from lakebed.bootstrap.app import App
from lakebed.bootstrap.task_process import run_task, task_loop
from lakebed.config.environments import TaskEnvironment
from lakebed.tasks.task_loop import StopRequest, TaskLoop


def run() -> int:
    """Run a task of the instance that this process's variables name. Returns the exit code."""
    return run_task(TaskEnvironment, _loop)


def _loop(app: App, _: TaskEnvironment, stop: StopRequest) -> TaskLoop:
    return task_loop(app, "compaction", queue=app.queue, handle=app.compact_from, stop=stop)
