"""Take what there is for feeds that ask for a function. Trigger: a schedule."""

from lakebed.bootstrap.functions import feed_take
from lambdas.shape import Tick, scheduled_handler


def take(app: feed_take.App, _tick: Tick) -> None:
    app.run()


handler = scheduled_handler(feed_take.app, take)
