"""Let files wait for batches: those that users' messages name, and those that arrive in watched
folders. Trigger: a message of a user or of S3 on the queue submissions."""

from lakebed.bootstrap.functions.batches import submissions
from lambdas.shape import SentMessage, sent_handler


def submit(app: submissions.App, message: SentMessage) -> None:
    app.run(message.body)


handler = sent_handler(submissions.app, submit)
