"""Publish ends of jobs. Trigger: the stream of the tracker's table."""

from lakebed.bootstrap.functions import job_events
from lambdas.shape import Records, batch_handler


def publish(app: job_events.App, records: Records) -> set[str]:
    return app.run(records)


handler = batch_handler(job_events.app, publish)
