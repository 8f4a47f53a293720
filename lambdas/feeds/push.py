"""Put what a sender pushes into a feed. Trigger: a request to the function's URL."""

from lakebed.bootstrap.functions import feed_push
from lambdas.shape import Event, requested_handler


def push(app: feed_push.App, request: Event) -> dict[str, object]:
    return app.respond(request)


handler = requested_handler(feed_push.pushed_feeds, push)
