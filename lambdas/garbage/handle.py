"""Delete files of a table that nothing refers to for long enough. Trigger: its message on the
garbage queue."""

from lakebed.bootstrap import garbage
from lakebed.model.jobs import TableMessage, decode_table_message
from lambdas.shape import queue_handler


def collect_garbage(app: garbage.App, message: TableMessage) -> None:
    app.run(message.table)


handler = queue_handler(garbage.app, decode_table_message, collect_garbage)
