"""Start as many compaction tasks as the queue needs. Trigger: a schedule."""

from lakebed.bootstrap.functions import task_start
from lambdas.shape import Tick, scheduled_handler


def start_tasks(app: task_start.App, tick: Tick) -> None:
    app.run(at=tick.time)


handler = scheduled_handler(task_start.compaction, start_tasks)
