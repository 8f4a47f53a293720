"""`lakebed feed flush`: workers commit what they hold."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
import msgspec

from lakebed.cli.program import Command, Session, counted, pass_session
from lakebed.errors import UnavailableError

if TYPE_CHECKING:
    from lakebed.feeds.operating.flush_feed import FeedFlushed


@click.command(
    cls=Command,
    examples="""
    lakebed feed flush orders
    lakebed feed flush orders --wait 120 --json
    """,
)
@click.argument("feed")
@click.option(
    "--wait",
    type=click.FloatRange(0, 3_600),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="For workers, at the most.",
)
@pass_session
def flush(session: Session, feed: str, *, wait: float) -> None:
    """Let all workers commit what they have read of FEED, and wait until they say that they did.

    Workers see it within five seconds, and say so with a beat. What the landing table gets with
    this gets into other tables as their connections read it. The exit code is 0 if every worker
    that lives has committed what it held when it saw the wish; 4 if one has not in time or died
    meanwhile, or none says that it runs FEED. Nothing is lost then: it is read again.
    """
    from lakebed.feed import FeedDefinitions

    with session.open() as lake:
        found = FeedDefinitions(lake).flush(feed, wait_seconds=wait)
    session.give(msgspec.to_builtins(found), "\n".join(_lines(found)))
    sys.exit(0 if found.is_whole else UnavailableError.exit_code)


def _lines(found: FeedFlushed) -> list[str]:
    workers = counted(len(found.committed), "worker has", "workers have")
    lines = [f"{workers} committed what was read of {found.feed}"]
    for name, why in found.late.items():
        lines.append(f"{name} has not: {why if why.isprintable() else ascii(why)}")
    if found.silent:
        lines.append(f"silent: {', '.join(found.silent)}")
    if not found.committed and not found.late:
        lines = ["no worker says that it runs the feed: `lakebed feed run`", *lines[1:]]
    return lines
