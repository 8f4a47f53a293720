"""`lakebed feed`: records of files that grow become rows, each once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from lakebed.cli.key_text import text_in
from lakebed.cli.program import CommandGroup, Session, counted, pass_session
from lakebed.cli.progress import ProgressLine
from lakebed.cli.work import stop_signals
from lakebed.errors import UnreadableInputError

if TYPE_CHECKING:
    from lakebed.errors import LakebedError
    from lakebed.feeds.run_feeds import FeedDone


@click.group(
    cls=CommandGroup,
    examples="""
    lakebed feed run feeds.toml --once
    lakebed feed run feeds.toml --every 2
    """,
)
def feed() -> None:
    """Let tables grow with their sources."""


@feed.command(
    examples="""
    lakebed feed run feeds.toml --once
    lakebed query access_landing --limit 5
    """,
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--once", is_flag=True, help="Take what is there, then end.")
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Pause when nothing is there.",
)
@pass_session
def run(session: Session, file: Path, *, once: bool, every: float) -> None:
    """Take the lines of growing files into landing tables, as FILE says.

    A section [feed.NAME] with `files = "PATTERN"` lands each line of the files that match in the
    table NAME_landing, by file and byte, once: how far a file was taken is committed with its rows.
    So it may be killed at any time, and run several times at once. The last line of a file waits
    for its line feed. Let the pattern match the names that rotation gives.

    A feed that fails is reported on stderr, keeps no other waiting, and is tried again, without
    --once. The exit code is that of the gravest error.
    """
    from lakebed.feed import Feeds

    codes = {0}

    def failed(done: FeedDone, error: LakebedError) -> None:
        codes.add(error.exit_code)
        if not session.as_json:
            click.echo(f"failed: feed {done.name}: {done.code}: {error}", err=True)

    with (
        session.open() as lake,
        ProgressLine(silent=session.as_json) as line,
        stop_signals() as stopped,
    ):
        feeds = Feeds(lake, _text_of(file))
        while True:
            found = feeds.run(
                should_stop=stopped.is_set,
                on_progress=lambda done: line.show(_text(done)),
                failed=failed,
            )
            line.clear()
            is_news = any(done.commits for done in found)
            if once or is_news:
                session.give(msgspec.to_builtins(found), "\n".join(map(_text, found)))
            if once or stopped.wait(0 if is_news else every):
                sys.exit(max(codes))
            codes = {0}


def _text_of(file: Path) -> str:
    try:
        return text_in(file)
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableInputError("not a file of feeds", file=file, problem=error) from None


def _text(done: FeedDone) -> str:
    records, commits = counted(done.tally.read, "record", "records"), done.commits
    return f"{done.name}: {records} into {done.table}, {counted(commits, 'commit', 'commits')}"
