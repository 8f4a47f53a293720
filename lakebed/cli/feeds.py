"""`lakebed feed`: records of files that grow become rows, each once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from lakebed.bootstrap.feeds.further_processes import PROCESSES_MAX, FurtherProcesses
from lakebed.cli.feed_commands import positions
from lakebed.cli.feed_commands.failures import ShownFailures
from lakebed.cli.feed_commands.texts import feed_text
from lakebed.cli.program import CommandGroup, Session, counted, pass_session
from lakebed.cli.progress import ProgressLine
from lakebed.cli.work import stop_signals
from lakebed.errors import InvalidError
from lakebed.model.feeds.held_bytes import MEMORY_MIB, MEMORY_MIB_MIN
from lakebed.observe.prometheus import serving_metrics

if TYPE_CHECKING:
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


class Processes(click.IntRange):
    """A number of processes, or `auto`, which is None."""

    def convert(
        self,
        value: Any,  # noqa: ANN401 - as click has it
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:  # noqa: ANN401 - as click has it
        """Return the number."""
        return None if value == "auto" else super().convert(value, param, ctx)


@feed.command(
    examples="""
    lakebed feed run feeds.toml --once
    lakebed feed run
    """,
)
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--once", is_flag=True, help="Take what is there, then end.")
@click.option("--only", multiple=True, metavar="FEED", help="Of the lake's feeds, only this one.")
@click.option(
    "--processes",
    type=Processes(1, PROCESSES_MAX),
    default="1",
    show_default=True,
    metavar="N|auto",
    help="Share the lake's feeds among so many; auto: as many as elastic feeds need.",
)
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Pause when nothing is there, of a FILE.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(1, 65_535),
    metavar="PORT",
    help="Serve metrics for Prometheus on this machine; of N processes at N ports.",
)
@click.option(
    "--memory",
    type=click.IntRange(min=MEMORY_MIB_MIN),
    default=MEMORY_MIB,
    show_default=True,
    metavar="MIB",
    help="That a process may use: with less of it, rounds are committed earlier.",
)
@pass_session
def run(
    session: Session,
    file: Path | None,
    *,
    once: bool,
    only: tuple[str, ...],
    processes: int | None,
    every: float,
    metrics_port: int | None,
    memory: int,
) -> None:
    """Take records of sources into tables: of the feeds that were started, or of those in FILE.

    How far a source was taken is committed with its rows. So this may be killed at any time, and
    run several times at once, on several machines: the processes share the source splits, and one
    takes over what another had when it is silent for six seconds.

    A FILE is run as it stands, by this process: a section [feed.NAME] with `files = "PATTERN"`
    lands each line of the files that match in the table NAME_landing, by file and byte. The last
    line of a file waits for its line feed. Let the pattern match the names that rotation gives.
    A feed that fails is reported on stderr, keeps no other waiting, and is tried again, without
    --once. The exit code is that of the gravest error.
    """
    if file is not None and (only or processes != 1):
        hint = "leave FILE out: `lakebed feed apply FILE`, then `lakebed feed start`"
        raise InvalidError("--only and --processes are for feeds that the lake defines", hint=hint)
    with serving_metrics(metrics_port):
        if file is None and not once:
            _work(session, only, processes, metrics_port, memory)
            return
        text = None if file is None else feed_text(file)
        _take(session, text, only, once=once, every=every, memory=memory)


def _take(
    session: Session,
    text: str | None,
    only: tuple[str, ...],
    *,
    once: bool,
    every: float,
    memory: int,
) -> None:
    """Take what is there, once or again and again."""
    from lakebed.feed import Feeds

    failures = ShownFailures(session, "feed")
    with (
        session.open() as lake,
        ProgressLine(silent=session.as_json) as line,
        stop_signals() as stopped,
    ):
        feeds = Feeds(lake, text, only, memory_mib=memory)
        while True:
            found = feeds.run(
                should_stop=stopped.is_set,
                on_progress=lambda done: line.show(_text(done)),
                failed=failures.add,
            )
            line.clear()
            is_news = any(done.commits for done in found)
            if once or is_news:
                session.give(msgspec.to_builtins(found), "\n".join(map(_text, found)))
            if once or stopped.wait(0 if is_news else every):
                sys.exit(failures.exit_code)
            failures.exit_code = 0


def _work(
    session: Session,
    only: tuple[str, ...],
    processes: int | None,
    metrics_port: int | None,
    memory: int,
) -> None:
    """Do a share of all that was started, until a signal comes."""
    from lakebed.feed import Feeds

    with session.open() as lake, stop_signals() as stopped:
        feeds = Feeds(lake, only=only, memory_mib=memory)
        chosen = [word for name in only for word in ("--only", name)]
        same = ["--lake", session.lake_path, "feed", "run", "--memory", str(memory), *chosen]
        others = FurtherProcesses(
            lambda number: [*same, *_port_of(metrics_port, number)], (processes or 1) - 1
        )
        missing = feeds.missing_workers() if processes is None else lambda: 0

        def should_stop() -> bool:
            others.keep()
            others.change(missing())
            return stopped.is_set()

        try:
            feeds.work(should_stop)
        finally:
            code = others.end()
    sys.exit(code)


def _port_of(first: int | None, process: int) -> list[str]:
    return [] if first is None else ["--metrics-port", str(first + process)]


for command in positions.COMMANDS:
    feed.add_command(command)


def _text(done: FeedDone) -> str:
    records, commits = counted(done.tally.read, "record", "records"), done.commits
    return f"{done.name}: {records} into {done.table}, {counted(commits, 'commit', 'commits')}"
