"""Tell the splitting queue which tables may have a leaf to split. Trigger: a schedule."""

from lakebed.bootstrap import table_ticks
from lakebed.model.jobs import SPLITTING
from lambdas.shape import Tick, scheduled_handler


def send_ticks(app: table_ticks.App, tick: Tick) -> None:
    app.run(SPLITTING, at=tick.time)


handler = scheduled_handler(table_ticks.app, send_ticks)
