"""`lakebed state`: the log of a table and the states that it leads to, for people."""

from __future__ import annotations

import click
import msgspec

from lakebed.cli.program import CommandGroup, Session, pass_session, time_text

ENTRIES_SHOWN, FILES_SHOWN = 20, 1_000


@click.group(
    cls=CommandGroup,
    examples="""
    lakebed state log trips
    lakebed state show trips --number 12
    """,
)
def state() -> None:
    """Look into the log of a table, and the states that it leads to."""


@state.command(
    examples="""
    lakebed state log trips
    lakebed state log trips --after 100 --limit 5
    lakebed state log trips --json
    """,
)
@click.argument("table")
@click.option(
    "--after", type=click.IntRange(min=0), help="Entries after this one.  [default: the last]"
)
@click.option("--limit", type=click.IntRange(1, 100_000), default=ENTRIES_SHOWN, show_default=True)
@pass_session
def log(session: Session, *, table: str, after: int | None, limit: int) -> None:
    """List entries of the log of TABLE: what each commit did, in counts and ids."""
    from lakebed.inspection.log_listing import entry_lines

    with session.open() as lake:
        found = lake.table(table).log(after=after, entries_max=limit)
    lines = [line for entry in found.entries for line in entry_lines(entry, time_text(entry.at))]
    if found.oldest > 1:
        lines.insert(0, f"(before entry {found.oldest} nothing is kept)")
    session.give(msgspec.to_builtins(found), "\n".join(lines) or "no entry there")


@state.command(
    examples="""
    lakebed state show trips
    lakebed state show trips --number 12 --files
    """,
)
@click.argument("table")
@click.option(
    "--number",
    type=click.IntRange(min=1),
    help="The state at this log entry.  [default: the newest]",
)
@click.option("--files", is_flag=True, help=f"List files too, the first {FILES_SHOWN:,}.")
@pass_session
def show(session: Session, *, table: str, number: int | None, files: bool) -> None:
    """Show figures, partitions and files of TABLE as they were at an entry of its log.

    It is worked out from snapshots and log, whatever the local cache says.
    """
    from lakebed.inspection.past_state import draw_state

    with session.open() as lake:
        shown = lake.table(table).state(number=number, files_max=FILES_SHOWN if files else 0)
    session.give(msgspec.to_builtins(shown), draw_state(shown, time_text(shown.at)))


@state.command(examples="lakebed state snapshot trips")
@click.argument("table")
@pass_session
def snapshot(session: Session, *, table: str) -> None:
    """Write a snapshot of the newest state of TABLE, from which other processes can start."""
    with session.open() as lake:
        number = lake.table(table).write_snapshot()
    session.give({"table": table, "number": number}, f"{table}: a snapshot of entry {number}")
