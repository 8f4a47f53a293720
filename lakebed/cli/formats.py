"""`lakebed formats`: which forms may be written to a lake."""

from __future__ import annotations

import click
import msgspec

from lakebed.cli.program import Command, Session, aligned, pass_session


@click.command(
    cls=Command,
    examples="""
    lakebed formats
    lakebed formats --raise
    """,
)
@click.option(
    "--raise",
    "raised",
    is_flag=True,
    help="Allow all that this release can write, for ever. Upgrade every process first.",
)
@pass_session
def formats(session: Session, raised: bool) -> None:  # noqa: FBT001 - click gives it
    """Show which forms may be written to the lake, and which this release can write.

    A lake that an older release made keeps to its forms, so that both can work on it. Older
    releases cannot open what is written after --raise.
    """
    with session.open() as lake:
        if raised:
            lake.raise_formats()
        allowed, newest = map(msgspec.structs.asdict, lake.formats())
    rows = [(name, str(allowed[name]), str(newest[name])) for name in sorted(newest)]
    text = aligned(("form", "allowed", "newest"), rows)
    session.give({"allowed": allowed, "newest": newest}, text)
