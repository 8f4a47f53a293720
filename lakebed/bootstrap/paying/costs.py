"""What a lake costs, from its ledger."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from lakebed.config.instance import InstanceSettings
from lakebed.costs.prices import Prices, packaged_prices
from lakebed.costs.spent import AskedCosts, By, Compared, CostReport, compared, spent
from lakebed.errors import InvalidError
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.observe.usage import NO_TABLE
from lakebed.ports.paying.usage_ledger import hour_of

if TYPE_CHECKING:
    from lakebed.bootstrap.app import App


def compared_costs(
    app: App, *, since_seconds: float, prices: Prices | None
) -> tuple[CostReport, list[Compared]]:
    """Return what was counted by service, and that beside Amazon's bill of the same whole days.
    Raises: as `PaidLake.compare_costs`."""
    if app.paying.bills is None:
        hint = "a directory has none; `lakebed --at INSTANCE cost --compare` asks for an instance's"
        raise InvalidError("this lake has no bill", lake=app.location, hint=hint)
    today = _day(app.clock.now())
    begin = _day(Micros(max(0, app.clock.now() - int(since_seconds * MICROS_PER_SECOND))))
    found = cost_report(app, None, since_seconds=since_seconds, by="service", prices=prices)
    billed = app.paying.bills.by_service(begin, today + timedelta(days=1))
    return found, compared(found, billed)


def _day(time: Micros) -> date:
    return datetime.fromtimestamp(time // MICROS_PER_SECOND, UTC).date()


def cost_report(
    app: App,
    table: str | None,
    *,
    since_seconds: float,
    by: By | None,
    prices: Prices | None,
) -> CostReport:
    """Return what a lake cost. Raises: as `PaidLake.costs`."""
    if app.paying.ledger is None:
        hint = "usage is kept in a directory or in an instance on AWS"
        raise InvalidError("this lake keeps no ledger", lake=app.location, hint=hint)
    now = app.clock.now()
    since = hour_of(Micros(max(0, now - int(since_seconds * MICROS_PER_SECOND))))
    names = {str(entry.id): str(entry.name) for entry in app.catalog.list()}
    wanted = app.paying.ledger.tables() if table is None else [app.catalog.entry(table).id]
    entries = [
        entry
        for id_ in wanted
        for entry in app.paying.ledger.read(id_, since=since, until=hour_of(now) + 1)
    ]
    on_aws = app.local is None
    asked = AskedCosts(
        by=by or ("table" if table is None else "kind"),
        names={**names, NO_TABLE: NO_TABLE},
        now=_day(now),
        region=app.paying.region,
        deleted_days=InstanceSettings().deleted_days if on_aws else 0,
        standing=on_aws and table is None,
    )
    return spent(entries, prices or packaged_prices(), asked)
