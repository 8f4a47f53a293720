"""Reports what a lake costs: what its work used, by prices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from lakebed.errors import InvalidError
from lakebed.face.declared_lake import DeclaredLake

if TYPE_CHECKING:
    from lakebed.costs.prices import Prices
    from lakebed.costs.spent import Compared, CostReport

MONTH_SECONDS = 30 * 86_400
SINCE_SECONDS_MAX = 400 * 86_400
"""Greatest age of entries of the ledger, in seconds: older ones are forgotten."""


class PaidLake(DeclaredLake):
    """A lake whose work is counted."""

    def costs(
        self,
        table: str | None = None,
        *,
        since_seconds: float = MONTH_SECONDS,
        by: Literal["table", "kind", "day", "service"] | None = None,
        prices: Prices | None = None,
    ) -> CostReport:
        """Return what the work on one table, or on all, cost, with what a billion rows cost.

        since_seconds: of how long ago, to the hour; of the last 400 days.
        by: what the lines are. None: `kind` for one table, else `table`.
        prices: None: those that come with Lakebed. In a directory nothing costs anything.

        Raises:
            TableMissingError: with the nearest known name.
            InvalidError: a time that is not kept.
            DeniedError, UnavailableError: the ledger cannot be read.
        """
        from lakebed.bootstrap.paying.costs import cost_report

        if not 0 < since_seconds <= SINCE_SECONDS_MAX:
            hint = "the ledger keeps 400 days"
            raise InvalidError("not a time that is kept", since_seconds=since_seconds, hint=hint)
        self._app.usage.close()
        return cost_report(self._app, table, since_seconds=since_seconds, by=by, prices=prices)

    def compare_costs(
        self, *, since_seconds: float = MONTH_SECONDS, prices: Prices | None = None
    ) -> tuple[CostReport, list[Compared]]:
        """Return what was counted, by service, and that beside what Amazon's Cost Explorer says of
        resources with the instance's tag. Asking costs a cent.

        Raises:
            InvalidError: a lake in a directory has no bill.
            DeniedError: the credentials do not permit `ce:GetCostAndUsage`.
            UnavailableError: the ledger or the bill cannot be read now.
        """
        from lakebed.bootstrap.paying.costs import compared_costs

        return compared_costs(self._app, since_seconds=since_seconds, prices=prices)
