"""Reports what a lake costs, from its ledger."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from lakebed.config.instance import InstanceSettings
from lakebed.costs.prices import Prices, packaged_prices
from lakebed.costs.spent import AskedCosts, By, Compared, CostReport, compared, spent
from lakebed.errors import InvalidError
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.observe.usage import NO_TABLE
from lakebed.ports.paying.usage_ledger import LedgerEntry, hour_of

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
    now = app.clock.now()
    since = Micros(now - int(since_seconds * MICROS_PER_SECOND))
    names, entries = usage_entries(app, table, since=since)
    on_aws = app.local is None
    asked = AskedCosts(
        by=by or ("table" if table is None else "kind"),
        names=names,
        now=_day(now),
        region=app.paying.region,
        deleted_days=deleted_days(app),
        standing=on_aws and table is None,
    )
    return spent(entries, prices or packaged_prices(), asked)


def usage_entries(
    app: App, table: str | None, *, since: Micros
) -> tuple[dict[str, str], list[LedgerEntry]]:
    """Return names of tables by their ids, and what the ledger has of one table, or of all, from
    the hour of a time on.

    Raises:
        InvalidError: the lake keeps no ledger. TableMissingError: with the nearest known name.
        DeniedError, UnavailableError: the ledger cannot be read.
    """
    ledger = app.paying.ledger
    if ledger is None:
        hint = "usage is kept in a directory or in an instance on AWS"
        raise InvalidError("this lake keeps no ledger", lake=app.location, hint=hint)
    names = {str(entry.id): str(entry.name) for entry in app.catalog.list()}
    wanted = ledger.tables() if table is None else [app.catalog.entry(table).id]
    hours = {"since": hour_of(Micros(max(0, since))), "until": hour_of(app.clock.now()) + 1}
    entries = [entry for id_ in wanted for entry in ledger.read(id_, **hours)]
    return {**names, NO_TABLE: NO_TABLE}, entries


def deleted_days(app: App) -> float:
    """Return for how long S3 keeps a deleted object of the lake: as by default, or not at all."""
    return InstanceSettings().deleted_days if app.local is None else 0
