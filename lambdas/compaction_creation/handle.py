"""Create the compaction jobs that a table needs, and send again what nobody started. Trigger: its
message on the compaction-creation queue."""

from lakebed.bootstrap import compaction_creation
from lakebed.model.jobs import TableMessage, decode_table_message
from lambdas.shape import queue_handler


def create_jobs(app: compaction_creation.App, message: TableMessage) -> None:
    app.run(message.table)


handler = queue_handler(compaction_creation.app, decode_table_message, create_jobs)
