"""Write the result of a query down. Trigger: a query message on the query queue."""

from lakebed.bootstrap.functions import query_answers
from lambdas.shape import SentMessage, sent_handler


def keep(app: query_answers.QueuedQueries, message: SentMessage) -> None:
    app.keep(message.body, sent_at=message.sent_at, receipt=message.receipt)


handler = sent_handler(query_answers.queued, keep)
