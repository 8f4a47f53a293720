"""Holds the services of a lake as long as it is open, for the public face."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebed.observe.usage import collect_in

if TYPE_CHECKING:
    from lakebed.bootstrap.app import App


class OpenLake:
    """Has the services of a lake until it is closed."""

    def __init__(self, app: App) -> None:
        self._given_app = app

    @property
    def _app(self) -> App:
        """Raises: InvalidError: the lake was closed."""
        app = self._given_app
        app.heads.require_open()
        collect_in(app.usage.collector)
        app.usage.keep_if_due()
        return app
