"""Delete objects of a table that never got a reference. Trigger: its message on the sweep queue."""

from lakebed.bootstrap import sweep
from lakebed.model.jobs import TableMessage, decode_table_message
from lambdas.shape import queue_handler


def sweep_objects(app: sweep.App, message: TableMessage) -> None:
    app.run(message.table)


handler = queue_handler(sweep.app, decode_table_message, sweep_objects)
