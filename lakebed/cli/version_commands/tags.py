"""Commands of `lakebed table` that give versions names: `tag`, `tags`, `untag`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lakebed.cli.program import Command, Session, aligned, pass_session, time_text

if TYPE_CHECKING:
    from lakebed.tables.versions import TaggedVersion


@click.command(
    cls=Command,
    examples="""
    lakebed table tag trips 2026-q3
    lakebed table tag trips before-cleanup --as-of 41
    lakebed table tag trips monday --as-of 2026-11-23T00:00Z
    lakebed query trips --as-of 2026-q3
    """,
)
@click.argument("name", metavar="TABLE")
@click.argument("tag", metavar="TAG")
@click.option(
    "--as-of",
    metavar="VERSION",
    help="A log number, a time, or another tag.  [default: the newest version]",
)
@pass_session
def tag(session: Session, *, name: str, tag: str, as_of: str | None) -> None:
    """Name a version of TABLE, so that it can be read until the tag is dropped.

    Its files stay: `lakebed status` shows how many bytes only this tag keeps.
    """
    with session.open() as lake:
        made = lake.table(name).tag(tag, as_of=as_of)
    said = f"{name} has tag {made.name} at log entry {made.number}"
    session.give(_value(made) | {"table": name}, said)


@click.command(
    cls=Command,
    examples="""
    lakebed table tags trips
    lakebed table tags trips --json
    """,
)
@click.argument("name", metavar="TABLE")
@pass_session
def tags(session: Session, *, name: str) -> None:
    """List the tags of TABLE."""
    with session.open() as lake:
        found = lake.table(name).tags()
    lines = [(one.name, str(one.number), time_text(one.tagged_at)) for one in found]
    shown = aligned(("tag", "log entry", "tagged at"), lines, empty="no tags")
    session.give({"table": name, "tags": [_value(one) for one in found]}, shown)


@click.command(cls=Command, examples="lakebed table untag trips 2026-q3")
@click.argument("name", metavar="TABLE")
@click.argument("tag", metavar="TAG")
@pass_session
def untag(session: Session, *, name: str, tag: str) -> None:
    """Drop a tag of TABLE. What only this version needs is then collected as garbage."""
    with session.open() as lake:
        lake.table(name).drop_tag(tag)
    session.give({"table": name, "dropped": tag}, f"dropped tag {tag} of {name}")


def _value(tagged: TaggedVersion) -> dict[str, object]:
    return {
        "tag": tagged.name,
        "number": tagged.number,
        "tagged_at": time_text(tagged.tagged_at),
    }
