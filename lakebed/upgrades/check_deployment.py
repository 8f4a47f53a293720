"""Checks that this release may be deployed, before a deployment changes anything."""

from __future__ import annotations

from collections.abc import Callable

from lakebed.model.formats import Formats
from lakebed.upgrades.judge_deployment import refuse_deployment


class CheckDeployment:
    """Looks at one instance.

    deployed: returns its release, as `refuse_deployment` takes it. allowed: the forms that may be
    written.
    """

    def __init__(
        self, *, deployed: Callable[[], str | None], allowed: Callable[[], Formats | None]
    ) -> None:
        self._deployed = deployed
        self._allowed = allowed

    def run(self) -> None:
        """Look once.

        Raises:
            As `refuse_deployment`. UnavailableError, DeniedError: it cannot be looked at.
        """
        refuse_deployment(self._deployed(), self._allowed)
