"""`lakebed cost`: what an instance on AWS costs, before there is one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from lakebed.cli.program import CommandGroup, Session, aligned, pass_session

if TYPE_CHECKING:
    from lakebed.costs.estimate import CostEstimate


@click.group(
    cls=CommandGroup,
    examples="""
    lakebed cost estimate
    lakebed cost prices
    lakebed cost estimate --prices mine.toml
    """,
)
def cost() -> None:
    """Estimate what an instance on AWS costs."""


@cost.command(
    examples="""
    lakebed cost estimate
    lakebed cost estimate --prices mine.toml --json
    """,
)
@click.option(
    "--prices",
    type=click.Path(path_type=Path),
    help="A file of prices, as `lakebed cost prices` prints it; else those that come with Lakebed.",
)
@pass_session
def estimate(session: Session, *, prices: Path | None) -> None:
    """Estimate the dollars of an idle month, of a TB, of lookups, with default settings.

    Amounts are counted by the planner of compaction and from figures that were measured; nothing is
    asked of AWS.
    """
    from lakebed.costs import estimate as costs
    from lakebed.costs.measured import packaged_measures
    from lakebed.costs.prices import packaged_prices, prices_in

    known = packaged_prices() if prices is None else prices_in(prices)
    found = costs.estimate(known, packaged_measures())
    session.give(msgspec.to_builtins(found), _text(found))


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
