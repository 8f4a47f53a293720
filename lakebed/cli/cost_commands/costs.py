"""`lakebed cost`: what work cost, and what an instance on AWS costs before there is one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from lakebed.cli.cost_commands.cost_texts import compared_text, daily_text, spent_text
from lakebed.cli.program import CommandGroup, Session, aligned, pass_session
from lakebed.errors import InvalidError

if TYPE_CHECKING:
    from lakebed.costs.estimate import CostEstimate
    from lakebed.costs.spent import By

PRICES_HELP = (
    "A file of prices, as `lakebed cost prices` prints it; else those that come with Lakebed."
)


SHOW = "show"
"""The command that `lakebed cost` runs when it is given none: `lakebed cost trips`."""
UNITS = {"h": 3_600, "d": 86_400, "w": 7 * 86_400}
_OF_VALUE = ("--lake", "--at")
"""Options of every command that are followed by a value."""


class CostCommands(CommandGroup):
    """Commands of costs. Where none is named, the costs themselves are shown."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the command there that is left out. A table called as a command is: `cost show
        TABLE`."""
        first = _first_word(args)
        if "--help" not in args and (first is None or first not in self.list_commands(ctx)):
            args = [SHOW, *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=CostCommands,
    examples="""
    lakebed cost
    lakebed cost trips --since 7d
    lakebed cost --by kind --prices mine.toml
    lakebed cost estimate
    lakebed cost prices
    """,
)
def cost() -> None:
    """Show what the work on tables used and cost, or estimate what an instance on AWS will cost."""


@cost.command(
    name=SHOW,
    examples="""
    lakebed cost
    lakebed cost trips --since 7d
    lakebed cost --by service --since 24h --json
    """,
)
@click.argument("table", required=False)
@click.option(
    "--since",
    default="30d",
    show_default=True,
    metavar="TIME",
    help="How far back: hours, days or weeks, such as 24h, 30d or 8w. 400 days are kept.",
)
@click.option(
    "--by", type=click.Choice(("table", "kind", "day", "service")), help="What is summed."
)
@click.option("--prices", type=click.Path(path_type=Path), help=PRICES_HELP)
@click.option(
    "--compare",
    is_flag=True,
    help="Put AWS's Cost Explorer beside it, by service. It takes the permission"
    " ce:GetCostAndUsage, and a cent.",
)
@pass_session
def show(
    session: Session,
    table: str | None,
    *,
    since: str,
    by: By | None,
    prices: Path | None,
    compare: bool,
) -> None:
    """Show what the work on TABLE, or on all tables, used and cost.

    It is counted where requests are made, and kept by hour: hints, of which a killed process may
    owe the last. What no table caused is the table `-`.
    """
    from lakebed.costs.prices import prices_in

    known = None if prices is None else prices_in(prices)
    if compare:
        if table is not None or by not in {None, "service"}:
            hint = "leave out the table, and --by: a bill knows services only"
            raise InvalidError("a bill is of the whole instance", table=table, by=by, hint=hint)
        with session.open() as lake:
            counted, lines = lake.compare_costs(since_seconds=_seconds(since), prices=known)
        value = {"counted": counted, "compared": lines}
        session.give(msgspec.to_builtins(value), compared_text(counted, lines))
        return
    with session.open() as lake:
        found = lake.costs(table, since_seconds=_seconds(since), by=by, prices=known)
    session.give(msgspec.to_builtins(found), spent_text(found))


@cost.command(
    examples="""
    lakebed cost estimate
    lakebed cost estimate --prices mine.toml --json
    lakebed cost estimate --rows-per-day 1e9 --row-bytes 40 --queries-per-day 1e5
    lakebed --at prod cost estimate --rows-per-day 1e9 --own trips
    """,
)
@click.option("--prices", type=click.Path(path_type=Path), help=PRICES_HELP)
@click.option("--rows-per-day", type=click.FloatRange(0, 1e15), help="That a table takes in.")
@click.option(
    "--row-bytes",
    type=click.FloatRange(0, 1e9),
    help="Of a row in files.  [default: as was measured]",
)
@click.option(
    "--queries-per-day",
    type=click.FloatRange(0, 1e12),
    default=0.0,
    help="Of one key each; with --own as those that were counted.",
)
@click.option(
    "--own", metavar="TABLE", help="Take the ratios that this table had in the last 30 days."
)
@pass_session
def estimate(
    session: Session,
    *,
    prices: Path | None,
    rows_per_day: float | None,
    row_bytes: float | None,
    queries_per_day: float,
    own: str | None,
) -> None:
    """Estimate the dollars of an idle month, of a TB, of lookups, with default settings.

    Amounts are counted by the planner of compaction and from figures that were measured; nothing is
    asked of AWS. With a number of rows or queries a day: what a table costs that gets these.
    """
    from lakebed.costs import daily
    from lakebed.costs import estimate as costs
    from lakebed.costs.measured import packaged_measures
    from lakebed.costs.prices import packaged_prices, prices_in

    known = packaged_prices() if prices is None else prices_in(prices)
    measured = packaged_measures()
    found = costs.estimate(known, measured)
    if rows_per_day is None and not queries_per_day:
        if own is not None:
            hint = "add --rows-per-day or --queries-per-day"
            raise InvalidError("nothing is to be estimated of a table", table=own, hint=hint)
        session.give(msgspec.to_builtins(found), _text(found))
        return
    load = daily.DailyLoad(
        rows=rows_per_day or 0.0,
        row_bytes=measured.row_bytes if row_bytes is None else row_bytes,
        queries=queries_per_day,
    )
    if own is None:
        cost = daily.usual_costs(found, load)
    else:
        with session.open() as lake:
            cost = daily.own_costs(lake.costs(own, prices=known), found, load)
    value = msgspec.to_builtins(cost) | {"load": msgspec.to_builtins(load)}
    session.give(value, daily_text(cost, load, found))


@cost.command(
    name="prices",
    examples="""
    lakebed cost prices
    """,
)
@pass_session
def prices_(session: Session) -> None:
    """Print the file of prices that comes with Lakebed, to be copied and changed."""
    from lakebed.costs.prices import packaged_prices, packaged_text

    session.give(msgspec.to_builtins(packaged_prices()), packaged_text().rstrip())


def _first_word(args: Sequence[str]) -> str | None:
    """Return what is no option and no value of one; None: there is none."""
    is_value = False
    for arg in args:
        if not is_value and not arg.startswith("-"):
            return arg
        is_value = arg in _OF_VALUE
    return None


def _seconds(since: str) -> float:
    """Return how long a text is. Raises: InvalidError."""
    number, unit = since[:-1], since[-1:]
    if not number.isascii() or not number.isdigit() or unit not in UNITS:
        hint = "give hours, days or weeks: 24h, 30d, 8w"
        raise InvalidError("not a time", since=ascii(since)[:40], hint=hint)
    return float(int(number[:9]) * UNITS[unit])


def _text(found: CostEstimate) -> str:
    idle = [(part, f"{dollars:.2f}") for part, dollars in found.idle_month.items()]
    idle.append(("together", f"{sum(found.idle_month.values()):.2f}"))
    headings = (
        "jobs of",
        "ingest",
        "compaction",
        "replaced files",
        "together",
        "rewritten",
        "merges",
    )
    per_tb = [
        (
            f"{one.job_gb} GB",
            *(f"{d:.2f}" for d in (one.ingest, one.compaction, one.replaced_files, one.together)),
            f"{one.rewritten:.1f} times",
            f"{one.merges:,}",
        )
        for one in found.per_tb
    ]
    others = [
        ("a TB by bulk import", f"{found.bulk_import_per_tb:.2f}"),
        ("a million lookups", f"{found.per_million_lookups:.2f}"),
        ("a table that changes each minute, a month", f"{found.changing_table_month:.2f}"),
        ("an idle table, a month", f"{found.idle_table_month:.4f}"),
        ("metrics of a working instance, a month", f"{found.metrics_month:.2f}"),
        ("metrics of feeds, a month", f"{found.feed_metrics_month:.2f}"),
        ("a paused instance, a month", f"{found.paused_month:.2f}"),
        ("a TB of files, a month", f"{found.stored_gb_month * 1000:.2f}"),
    ]
    return "\n".join(
        [
            f"dollars, by prices of {found.region} of {found.prices_of}; `lakebed explain cost`",
            "",
            aligned(("an idle month", ""), idle, empty=""),
            "",
            "a TB ingested and compacted to rest:",
            aligned(headings, per_tb, empty=""),
            "",
            aligned(("other work", ""), others, empty=""),
        ]
    )
