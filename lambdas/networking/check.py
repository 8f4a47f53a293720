"""Refuse a network in which tasks cannot work. Trigger: a deployment that names one."""

from lakebed.bootstrap.functions import network_check
from lambdas.shape import deployed_handler


def check(app: network_check.App) -> None:
    app.run()


handler = deployed_handler(network_check.app, check)
