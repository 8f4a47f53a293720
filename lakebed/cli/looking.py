"""`lakebed status` and `lakebed fsck`: look, compare."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
import msgspec

from lakebed.cli.program import Command, Session, counted, pass_session
from lakebed.cli.progress import ProgressLine
from lakebed.errors import CorruptError

if TYPE_CHECKING:
    from lakebed.inspection.findings import Finding


@click.command(
    cls=Command,
    examples="""
    lakebed status
    lakebed status flights
    lakebed status flights --json
    """,
)
@click.argument("table", required=False)
@pass_session
def status(session: Session, table: str | None) -> None:
    """Draw the partition tree of TABLE, or of all, with rows and files, jobs and garbage."""
    from lakebed.inspection.drawing import draw_status

    with session.open() as lake:
        found = lake.status(table)
    texts = [draw_status(one) for one in found]
    session.give(msgspec.to_builtins(found), "\n".join(texts).rstrip("\n") or "no tables yet")


@click.command(
    cls=Command,
    examples="""
    lakebed fsck
    lakebed fsck flights --deep
    lakebed fsck --json
    """,
)
@click.argument("table", required=False)
@click.option("--deep", is_flag=True, help="Read every byte and every row.")
@pass_session
def fsck(session: Session, table: str | None, *, deep: bool) -> None:
    """Hold log, state, snapshots and objects of TABLE, or of the whole lake, against each other.

    It changes nothing, and says of each finding what it means and what is safe to do. Exits with
    the code of `corrupt` if anything that was committed is wrong or gone.
    """
    with session.open() as lake, ProgressLine(silent=session.as_json) as line:
        report = lake.fsck(
            table,
            deep=deep,
            told=lambda name, done, total: line.show(f"{name}: {done:,} of {total:,} files"),
        )
    text = "\n\n".join(_finding_text(one) for one in report.findings)
    checked = f"{counted(report.tables, 'table')} and {counted(report.files, 'file')} checked"
    said = f"{text}\n\n{checked}" if text else f"{checked}: clean"
    session.give(msgspec.to_builtins(report), said)
    if report.is_damaged:
        sys.exit(CorruptError.exit_code)


def _finding_text(one: Finding) -> str:
    facts = " ".join(f"{name}={value}" for name, value in one.facts.items())
    return f"{one.severity}: {one.code} ({facts})\n  means: {one.means}\n  safe: {one.safe}"
