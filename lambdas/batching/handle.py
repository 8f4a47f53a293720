"""Make batches of a table's submitted files, and see their jobs to the end. Trigger: the table's
tick on the queue batching."""

from lakebed.bootstrap.functions.batches import batching
from lakebed.model.jobs import TableMessage, decode_table_message
from lambdas.shape import queue_handler


def make_batches(app: batching.App, message: TableMessage) -> None:
    app.run(message.table)


handler = queue_handler(batching.app, decode_table_message, make_batches)
