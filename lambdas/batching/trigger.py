"""Send a tick for each table with submitted files. Trigger: a schedule."""

from lakebed.bootstrap.functions.batches import batching_ticks
from lambdas.shape import Tick, scheduled_handler


def send_ticks(app: batching_ticks.App, tick: Tick) -> None:
    app.run(at=tick.time)


handler = scheduled_handler(batching_ticks.app, send_ticks)
