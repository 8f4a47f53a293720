"""`lakebed feed apply`, `list`, `describe`, `drop`, `disconnect`, `start`, `stop`, `suspend`,
`resume`: definitions that the lake keeps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from lakebed.cli.feed_commands.texts import feed_text
from lakebed.cli.program import Command, Session, aligned, counted, pass_session
from lakebed.errors import InvalidError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakebed.feed import FeedDefinitions
    from lakebed.feeds.apply_definitions import PlannedChange
    from lakebed.feeds.lifecycle import FeedStanding

FILES_MAX = 100
_DONE = {"create": "created", "change": "changed", "keep": "kept"}
_WOULD = {"create": "would be created", "change": "would change", "keep": "would be kept"}


@click.command(
    cls=Command,
    examples="""
    lakebed feed apply feeds.toml --dry-run
    lakebed feed apply feeds.toml policies.toml
    """,
)
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE..."
)
@click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
@click.option(
    "--above",
    type=click.IntRange(0),
    default=0,
    metavar="VERSION",
    help="Give each a version above this, which a table knows: the definitions were restored.",
)
@pass_session
def apply(session: Session, files: tuple[Path, ...], *, dry_run: bool, above: int) -> None:
    """Make the lake hold the feeds, connections and policies that each FILE says.

    All of them change, or none: one that cannot be is refused with the path of the field, what is
    allowed and the nearest name. What no FILE names stays. `lakebed explain feed-settings` has all
    settings.
    """
    if len(files) > FILES_MAX:
        raise InvalidError("too many files", files=len(files), hint=f"give at most {FILES_MAX}")
    from lakebed.feed import FeedDefinitions

    texts = {str(file): feed_text(file) for file in files}
    with session.open() as lake:
        plan = FeedDefinitions(lake).apply(texts, dry_run=dry_run, above=above)
    words = _WOULD if dry_run else _DONE
    lines = [line for one in plan for line in _planned_lines(one, words)]
    session.give(msgspec.to_builtins(plan), "\n".join(lines) or "nothing is defined")


@click.command(cls=Command, name="list", examples="lakebed feed list")
@pass_session
def list_(session: Session) -> None:
    """List the feeds of the lake, and how each stands."""
    from lakebed.feed import FeedDefinitions

    with session.open() as lake:
        found = FeedDefinitions(lake).feeds()
    rows = [(one.feed, one.standing, "; ".join(_failures(one))) for one in found]
    empty = "no feed yet: `lakebed feed apply FILE`"
    session.give(msgspec.to_builtins(found), aligned(("FEED", "STATE", "WHY"), rows, empty=empty))


@click.command(cls=Command, examples="lakebed feed describe orders")
@click.argument("name")
@pass_session
def describe(session: Session, name: str) -> None:
    """Show the feed NAME, its connections and the parameters of their policies."""
    from lakebed.feed import FeedDefinitions

    with session.open() as lake:
        definitions = FeedDefinitions(lake)
        standing = definitions.standing(name)
        feed, connections = definitions.describe(name)
    value = {
        "feed": msgspec.to_builtins(feed),
        "standing": msgspec.to_builtins(standing),
        "connections": msgspec.to_builtins(connections),
    }
    source: dict[str, Any] = {k: v for k, v in msgspec.to_builtins(feed.feed.source).items() if v}
    lines = [
        f"feed      {name}, version {feed.version}, {standing.standing}",
        *(f"failed    {why}" for why in _failures(standing)),
        *(f"source    {field} = {value}" for field, value in source.items()),
        *(f"decoder   {field} = {value}" for field, value in feed.feed.decoder.items()),
        f"landing   {f'{name}_landing' if feed.feed.landing else 'none'}",
        f"policy    {feed.feed.policy}",
    ]
    for one in connections:
        named = one.connection
        policy = named.policy or feed.feed.policy
        route = named.routing
        where = "" if route is None else f", route {route.text_of(named.table)}"
        where += f", where {named.where}" if named.where else ""
        lines.append(f"connects  {named.name} to {named.table}, policy {policy}{where}")
    session.give(value, "\n".join(lines))


@click.command(
    cls=Command,
    examples="""
    lakebed feed drop orders
    lakebed feed drop orders --cascade
    """,
)
@click.argument("name")
@click.option("--cascade", is_flag=True, help="Drop its connections, too.")
@pass_session
def drop(session: Session, name: str, *, cascade: bool) -> None:
    """Forget the feed NAME, which is stopped. Tables and their rows stay."""
    from lakebed.feed import FeedDefinitions

    with session.open() as lake:
        show_dropped(session, FeedDefinitions(lake).drop(name, cascade=cascade))


@click.command(cls=Command, examples="lakebed feed disconnect orders-eu")
@click.argument("connection")
@pass_session
def disconnect(session: Session, connection: str) -> None:
    """Forget CONNECTION, also while its feed runs. The table and its rows stay."""
    from lakebed.feed import FeedDefinitions

    with session.open() as lake:
        show_dropped(session, FeedDefinitions(lake).disconnect(connection))


@click.command(cls=Command, examples="lakebed feed start orders")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@pass_session
def start(session: Session, names: tuple[str, ...]) -> None:
    """Let workers take the records of each feed NAME.

    It is stopped or suspended, or has failed; then why is forgotten.
    """
    _each(session, names, lambda definitions: definitions.start)


@click.command(cls=Command, examples="lakebed feed stop orders")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@pass_session
def stop(session: Session, names: tuple[str, ...]) -> None:
    """Let workers commit what they have read of each feed NAME, then leave it."""
    _each(session, names, lambda definitions: definitions.stop)


@click.command(cls=Command, examples="lakebed feed suspend orders")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@pass_session
def suspend(session: Session, names: tuple[str, ...]) -> None:
    """Let workers commit what they have read of each feed NAME, and keep it for ten minutes.

    Within these it is resumed without another worker taking it over.
    """
    _each(session, names, lambda definitions: definitions.suspend)


@click.command(cls=Command, examples="lakebed feed resume orders")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@pass_session
def resume(session: Session, names: tuple[str, ...]) -> None:
    """Let each feed NAME that is suspended go on."""
    _each(session, names, lambda definitions: definitions.resume)


COMMANDS = (apply, list_, describe, drop, disconnect, start, stop, suspend, resume)


def show_dropped(session: Session, dropped: Sequence[str]) -> None:
    """Show what was dropped."""
    session.give(list(dropped), "\n".join(f"dropped {one}" for one in dropped))


def _each(
    session: Session,
    names: Sequence[str],
    action: Callable[[FeedDefinitions], Callable[[str], FeedStanding]],
) -> None:
    from lakebed.feed import FeedDefinitions

    with session.open() as lake:
        act = action(FeedDefinitions(lake))
        found = [act(name) for name in dict.fromkeys(names)]
    lines = [f"{one.feed} is to be {one.wanted}" for one in found]
    session.give(msgspec.to_builtins(found), "\n".join(lines))


def _planned_lines(one: PlannedChange, words: dict[str, str]) -> list[str]:
    version = f", version {one.version}" if one.version else ""
    lines = [f"{one.kind} {one.name} {words[one.action]}{version}"]
    if one.action == "change":
        lines += [f"  {c.path}: {_shown(c.before)} -> {_shown(c.after)}" for c in one.fields]
    if one.action == "create":
        lines[0] += f", {counted(len(one.fields), 'setting')}"
        lines[0] += ", goes on where its file was taken to" if one.goes_on else ""
    return lines


def _shown(value: object) -> str:
    return "not said" if value is None else msgspec.json.encode(value).decode()


def _failures(standing: FeedStanding) -> list[str]:
    return [f"{name}: {why}" for name, why in standing.failed.items()]
