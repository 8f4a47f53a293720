"""Start as many tasks as feeds want. Trigger: a schedule."""

from lakebed.bootstrap.functions import feed_task_start
from lambdas.shape import Tick, scheduled_handler


def start_tasks(app: feed_task_start.App, tick: Tick) -> None:
    app.run(at=tick.time)


handler = scheduled_handler(feed_task_start.feeds, start_tasks)
