"""Tell the compaction-creation queue which tables may need compaction jobs. Trigger: a schedule."""

from lakebed.bootstrap import table_ticks
from lakebed.model.jobs import COMPACTION_CREATION
from lambdas.shape import Tick, scheduled_handler


def send_ticks(app: table_ticks.App, tick: Tick) -> None:
    app.run(COMPACTION_CREATION, at=tick.time)


handler = scheduled_handler(table_ticks.app, send_ticks)
