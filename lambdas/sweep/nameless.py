"""Bury tables that never got a name, and what was left of dropped ones. Trigger: a schedule."""

from lakebed.bootstrap import sweep
from lambdas.shape import Tick, scheduled_handler


def sweep_nameless(app: sweep.NamelessApp, _tick: Tick) -> None:
    app.sweep_nameless()


handler = scheduled_handler(sweep.nameless_app, sweep_nameless)
