"""Bury tables that never got a name, and what was left of dropped ones. Trigger: a schedule."""

from lakebed.bootstrap.functions import table_names
from lambdas.shape import Tick, scheduled_handler


def sweep_nameless(app: table_names.App, _tick: Tick) -> None:
    app.sweep_nameless()


handler = scheduled_handler(table_names.app, sweep_nameless)
