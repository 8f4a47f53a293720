"""Tell the sweep queue which tables may have leftovers of dead workers. Trigger: a schedule."""

from lakebed.bootstrap import table_ticks
from lakebed.model.jobs import SWEEP
from lambdas.shape import Tick, scheduled_handler


def send_ticks(app: table_ticks.App, tick: Tick) -> None:
    app.run(SWEEP, at=tick.time)


handler = scheduled_handler(table_ticks.app, send_ticks)
