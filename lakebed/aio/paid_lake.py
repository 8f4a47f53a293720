"""The async twin of `lakebed.face.paid_lake`.

Made by `make docs` from `lakebed/face/paid_lake.py`; change it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from lakebed.aio.declared_lake import DeclaredLake
from lakebed.face.paid_lake import MONTH_SECONDS
from lakebed.face.paid_lake import PaidLake as SyncPaidLake

if TYPE_CHECKING:
    from lakebed.costs.prices import Prices
    from lakebed.costs.spent import Compared, CostReport


class PaidLake(DeclaredLake):
    """A lake whose work is counted."""

    _sync: SyncPaidLake

    async def costs(
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
        return await self._calls.run(
            lambda: self._sync.costs(table, since_seconds=since_seconds, by=by, prices=prices)
        )

    async def compare_costs(
        self, *, since_seconds: float = MONTH_SECONDS, prices: Prices | None = None
    ) -> tuple[CostReport, list[Compared]]:
        """Return what was counted, by service, and that beside what Amazon's Cost Explorer says of
        resources with the instance's tag. Asking costs a cent.

        Raises:
            InvalidError: a lake in a directory has no bill.
            DeniedError: the credentials do not permit `ce:GetCostAndUsage`.
            UnavailableError: the ledger or the bill cannot be read now.
        """
        return await self._calls.run(
            lambda: self._sync.compare_costs(since_seconds=since_seconds, prices=prices)
        )
