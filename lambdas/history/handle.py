"""Keep jobs and usage of each day in tables. Trigger: a schedule, each six hours."""

from lakebed.bootstrap.functions import history_keep
from lambdas.shape import Tick, scheduled_handler


def keep(app: history_keep.KeepHistory, _tick: Tick) -> None:
    app.run()


handler = scheduled_handler(history_keep.app, keep)
