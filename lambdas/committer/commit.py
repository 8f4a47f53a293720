"""Commit what is queued, that of a table in one entry. Trigger: messages on the commits queue."""

from lakebed.bootstrap.functions import committer
from lambdas.shape import Records, batch_handler


def commit(app: committer.App, records: Records) -> set[str]:
    return app.run(records)


handler = batch_handler(committer.app, commit)
