"""Refuse to deploy over a release that this one does not follow. Trigger: a deployment of another
release."""

from lakebed.bootstrap.functions import release_check
from lambdas.shape import deployed_handler


def check(app: release_check.App) -> None:
    app.run()


handler = deployed_handler(release_check.app, check)
