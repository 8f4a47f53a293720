"""Send a tick for each table that may need one kind of work. Trigger: a schedule."""

from lakebed.bootstrap.functions import table_ticks
from lambdas.shape import Tick, scheduled_handler


def send_ticks(app: table_ticks.App, tick: Tick) -> None:
    app.run(at=tick.time)


handler = scheduled_handler(table_ticks.app, send_ticks)
