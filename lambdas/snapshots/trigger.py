"""Tell the snapshots queue which tables may need a snapshot. Trigger: a schedule."""

from lakebed.bootstrap import table_ticks
from lakebed.model.jobs import SNAPSHOTS
from lambdas.shape import Tick, scheduled_handler


def send_ticks(app: table_ticks.App, tick: Tick) -> None:
    app.run(SNAPSHOTS, at=tick.time)


handler = scheduled_handler(table_ticks.app, send_ticks)
