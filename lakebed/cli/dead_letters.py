"""`lakebed dead-letters`: what was given up, why, and send it again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from lakebed.cli.program import CommandGroup, Session, aligned, counted, pass_session

if TYPE_CHECKING:
    from lakebed.inspection.dead_letters import Letter, QueueLetters

COUNT_HEADINGS = ("queue", "waiting", "dead", "table", "looked at", "oldest")
NONE = "no dead letters"
UNKNOWN = "(none)"
AGES = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))

_of_queues = click.option(
    "--queue", "queues", multiple=True, help="Only this queue, as `list` names it. Repeatable."
)
_of_table = click.option("--table", help="Only letters that name this table.")


@click.group(
    cls=CommandGroup,
    name="dead-letters",
    examples="""
    lakebed dead-letters list
    lakebed dead-letters show --queue ingest
    lakebed dead-letters redrive --queue ingest --table trips
    """,
)
def dead_letters() -> None:
    """Look at messages that were given up, and send them again."""


@dead_letters.command(
    name="list",
    examples="""
    lakebed dead-letters list
    lakebed --at aws:INSTANCE dead-letters list --json
    """,
)
@_of_queues
@pass_session
def list_(session: Session, queues: Sequence[str]) -> None:
    """Count the dead letters of each queue, by table, with the age of the oldest.

    `waiting` and `dead` are about as many as there are. Of a table, or of one sender's group, only
    the first ten may be looked at.
    """
    with session.open() as lake:
        found = lake.dead_letters(queues=queues)
    rows = [row for queue in found for row in _rows(queue)]
    session.give(msgspec.to_builtins(found), aligned(COUNT_HEADINGS, rows, empty=NONE))


@dead_letters.command(
    examples="""
    lakebed dead-letters show
    lakebed dead-letters show --queue ingest --table trips --limit 1
    lakebed dead-letters show --json
    """
)
@_of_queues
@_of_table
@click.option("--limit", type=click.IntRange(1, 1_000), default=10, show_default=True)
@pass_session
def show(session: Session, *, queues: Sequence[str], table: str | None, limit: int) -> None:
    """Show dead letters: whose they are, the last report on their job, and their text."""
    with session.open() as lake:
        found = lake.show_dead_letters(queues=queues, table=table, limit=limit)
    texts = [_shown(letter) for letter in found]
    session.give(msgspec.to_builtins(found), "\n\n".join(texts) or NONE)


@dead_letters.command(
    examples="""
    lakebed dead-letters redrive
    lakebed dead-letters redrive --queue ingest --table trips
    lakebed dead-letters redrive --limit 1000
    """
)
@_of_queues
@_of_table
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=100,
    show_default=True,
    help="At most so many of each queue.",
)
@pass_session
def redrive(session: Session, *, queues: Sequence[str], table: str | None, limit: int) -> None:
    """Send dead letters again. What could be done twice, or can never work, is refused and stays.

    Mend first what they failed by. Safe to stop, and to run again: what is sent twice is done once.
    """
    with session.open() as lake:
        done = lake.redrive(queues=queues, table=table, limit=limit)
    refused = [f"refused: {reason}" for reason in done.refused]
    sent = f"{counted(done.sent, 'message')} sent again"
    session.give(msgspec.to_builtins(done), "\n".join([*refused, sent]))


def _rows(queue: QueueLetters) -> Sequence[tuple[str, ...]]:
    """Return a line for each table; none where there are no letters."""
    first = (queue.queue, f"{queue.waiting:,}", f"{queue.dead:,}")
    lines = [
        (*first, of.table or UNKNOWN, f"{of.letters:,}", _age(of.oldest_seconds))
        for of in queue.tables
    ]
    return lines or ([(*first, "", "", "")] if queue.dead else [])


def _shown(letter: Letter) -> str:
    facts = {
        "queue": letter.queue,
        "table": letter.table or UNKNOWN,
        "job": letter.job,
        "age": _age(letter.age_seconds),
        "receives": f"{letter.receives:,}",
        "reason": letter.reason or "not known: see the log of who works on this queue",
    }
    lines = [f"{name}: {value}" for name, value in facts.items() if value]
    return "\n".join([*lines, letter.body])


def _age(seconds: int) -> str:
    """Return an age in the largest unit of which it has two, rounded down."""
    unit, size = next((one for one in AGES if seconds >= 2 * one[1]), AGES[-1])
    return counted(seconds // size, unit)
