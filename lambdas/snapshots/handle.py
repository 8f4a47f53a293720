"""Write down the state of a table and empty its log below older snapshots, where that is worth it.
Trigger: its message on the snapshots queue."""

from lakebed.bootstrap import snapshots
from lakebed.model.jobs import TableMessage, decode_table_message
from lambdas.shape import queue_handler


def write_snapshot(app: snapshots.App, message: TableMessage) -> None:
    app.run(message.table)


handler = queue_handler(snapshots.app, decode_table_message, write_snapshot)
