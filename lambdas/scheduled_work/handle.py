"""Split the leaves of a table that are too large. Trigger: its message on the splitting queue."""

from lakebed.bootstrap import splitting
from lakebed.model.jobs import TableMessage, decode_table_message
from lambdas.shape import queue_handler


def split_leaves(app: splitting.App, message: TableMessage) -> None:
    app.run(message.table)


handler = queue_handler(splitting.app, decode_table_message, split_leaves)
