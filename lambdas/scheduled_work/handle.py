"""Do one kind of work on a table. Trigger: the table's tick on the queue of that kind."""

from lakebed.bootstrap.functions import scheduled_work
from lakebed.model.jobs import TableMessage, decode_table_message
from lambdas.shape import queue_handler


def work_on_table(app: scheduled_work.App, message: TableMessage) -> None:
    app.run(message.table)


handler = queue_handler(scheduled_work.app, decode_table_message, work_on_table)
