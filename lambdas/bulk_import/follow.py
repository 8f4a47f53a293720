"""Tell how Spark runs of bulk imports ended whose drivers could not. Trigger: a schedule."""

from lakebed.bootstrap.functions import bulk_import_follow
from lambdas.shape import Tick, scheduled_handler


def follow(app: bulk_import_follow.App, _tick: Tick) -> None:
    app.run()


handler = scheduled_handler(bulk_import_follow.app, follow)
