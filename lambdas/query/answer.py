"""Answer a query. Trigger: it is invoked with a query message, by a caller that waits."""

from lakebed.bootstrap.functions import query_answers
from lambdas.shape import invoked_handler


def answer(app: query_answers.App, message: bytes) -> object:
    return app.answer(message)


handler = invoked_handler(query_answers.app, answer)
