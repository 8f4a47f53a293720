"""Start the Spark run of a bulk import. Trigger: its message on the bulk-import queue."""

from lakebed.bootstrap.functions import bulk_import_start
from lambdas.shape import SentMessage, sent_handler


def start(app: bulk_import_start.App, message: SentMessage) -> None:
    app.start(message.body, sent_at=message.sent_at)


handler = sent_handler(bulk_import_start.app, start)
