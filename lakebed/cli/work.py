"""`lakebed run` and `lakebed compact`: the work that a lake needs."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

import click
import msgspec

from lakebed.cli.program import EXIT_BUG, EXIT_STOPPED, Command, Session, counted, pass_session
from lakebed.cli.progress import ProgressLine

if TYPE_CHECKING:
    from lakebed.tasks.failed_work import FailedWork
    from lakebed.tasks.work_done import WorkDone

Handler = Callable[[int, FrameType | None], object] | int | signal.Handlers | None
WORDS = {
    "batches_planned": ("batch of submitted files made", "batches of submitted files made"),
    "batches_ingested": ("batch taken in", "batches taken in"),
    "leaves_split": ("leaf split", "leaves split"),
    "jobs_done": ("compaction job done", "compaction jobs done"),
    "commits_answered": ("queued commit answered", "queued commits answered"),
    "jobs_given_up": ("job given up", "jobs given up"),
    "snapshots_written": ("snapshot written", "snapshots written"),
    "files_collected": ("file collected", "files collected"),
    "objects_swept": ("object swept", "objects swept"),
    "days_kept": ("day of jobs kept", "days of jobs kept"),
    "usage_days_kept": ("day of usage kept", "days of usage kept"),
}

KINDS = (
    "batching",
    "splitting",
    "compaction-creation",
    "garbage",
    "sweep",
    "snapshots",
    "compaction",
    "commits",
    "history",
)
"""Kinds of work: on tables by schedule, what waits in queues, what became of jobs."""

LONG_POLL_SECONDS, COMMIT_PAUSE_SECONDS = 5.0, 0.2
"""Seconds that a committer waits for messages and between two rounds: a queue of SQS waits by
itself, a local one is asked again."""


@click.command(
    cls=Command,
    examples="""
    lakebed run
    lakebed run flights trips
    lakebed run flights --kind compaction-creation --kind compaction
    lakebed run --forever --every 30
    """,
)
@click.argument("tables", nargs=-1)
@click.option(
    "--kind",
    "kinds",
    type=click.Choice(KINDS),
    multiple=True,
    help="Only this kind of work. May be repeated.",
)
@click.option("--forever", is_flag=True, help="Go on until stopped by SIGTERM or Ctrl-C.")
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Pause of --forever when nothing is due.",
)
@pass_session
def run(
    session: Session,
    tables: tuple[str, ...],
    *,
    kinds: tuple[str, ...],
    forever: bool,
    every: float,
) -> None:
    """Split, compact, write snapshots, collect garbage and sweep until nothing is due.

    Work that fails on a table is reported on stderr and keeps no other table waiting: with
    --forever it is tried again after a time that doubles up to an hour. The exit code is that of
    the gravest error. SIGTERM and Ctrl-C stop it between two jobs. Several may run at once on one
    lake.
    """
    with (
        session.open() as lake,
        ProgressLine(silent=session.as_json) as line,
        stop_signals() as stopped,
    ):
        failures = ReportedFailures(session)
        while True:
            failures.begin()
            done = lake.run(
                list(tables) or None,
                kinds=list(kinds) or None,
                should_stop=stopped.is_set,
                on_progress=line.show,
                failed=failures.add,
            )
            line.clear()
            is_news = failures.show_new()
            if is_news or not done.is_nothing or not forever:
                _give(session, done, failures)
            if not forever or stopped.wait(every):
                sys.exit(failures.exit_code)


@click.command(
    cls=Command,
    examples="""
    lakebed commit
    lakebed commit --forever
    """,
)
@click.option("--forever", is_flag=True, help="Go on until stopped by SIGTERM or Ctrl-C.")
@pass_session
def commit(session: Session, *, forever: bool) -> None:
    """Put queued commits into the logs of their tables: many into one entry.

    `lakebed run` does it once a round. Several may run at once on one lake.
    """
    answered = 0
    with (
        session.open() as lake,
        ProgressLine(silent=session.as_json) as line,
        stop_signals() as stopped,
    ):
        while True:
            answered += lake.commit_queued(
                wait_seconds=LONG_POLL_SECONDS if forever else 0.0,
                should_stop=stopped.is_set,
                on_progress=lambda count: line.show(counted(count, *WORDS["commits_answered"])),
            )
            line.clear()
            if not forever or stopped.wait(COMMIT_PAUSE_SECONDS):
                break
    said = counted(answered, *WORDS["commits_answered"])
    session.give({"commits_answered": answered}, said)


@click.command(cls=Command, examples="lakebed compact flights")
@click.argument("table")
@pass_session
def compact(session: Session, table: str) -> None:
    """Merge until each leaf of TABLE has one file.

    What was merged is collected later, when no reader needs it: by `lakebed run`.
    """
    with (
        session.open() as lake,
        ProgressLine(silent=session.as_json) as line,
        stop_signals() as stopped,
    ):
        failures = ReportedFailures(session)
        done = lake.table(table).compact(
            should_stop=stopped.is_set, on_progress=line.show, failed=failures.add
        )
        line.clear()
        failures.show_new()
        _give(session, done, failures)
        sys.exit(failures.exit_code)


class ReportedFailures:
    """The failures of work on tables, shown once for each try."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._of_run: list[FailedWork] = []
        self._shown: dict[tuple[str, str], int] = {}

    def begin(self) -> None:
        """Forget what an earlier run showed."""
        self._of_run.clear()

    def add(self, failed: FailedWork) -> None:
        """Take what failed, the gravest first."""
        self._of_run.append(failed)

    def show_new(self) -> bool:
        """Write what was tried since the last time. False: nothing was."""
        news = [failed for failed in self._of_run if self._is_new(failed)]
        for failed in news if not self._session.as_json else ():
            what = f"table {failed.table}, {failed.work}"
            click.echo(f"failed: {what}: {failed.code}: {failed.error}", err=True)
        return bool(news)

    def _is_new(self, failed: FailedWork) -> bool:
        before = self._shown.get((failed.table, failed.work))
        self._shown[failed.table, failed.work] = failed.tries
        return failed.again_at is None or before != failed.tries

    @property
    def exit_code(self) -> int:
        """That of the gravest error; 0: nothing failed."""
        errors = (failed.error for failed in self._of_run)
        return next((getattr(error, "exit_code", EXIT_BUG) for error in errors), 0)

    def values(self) -> list[dict[str, object]]:
        """Return them for --json."""
        return [
            {
                "table": failed.table,
                "work": failed.work,
                "code": failed.code,
                "reason": str(failed.error),
                "tries": failed.tries,
            }
            for failed in self._of_run
        ]

    def text(self) -> str:
        """Return the end of a summary: which tables work failed on."""
        names = sorted({failed.table for failed in self._of_run})
        return f"{counted(len(names), 'table')} failed: {', '.join(names)}" if names else ""


def _give(session: Session, done: WorkDone, failures: ReportedFailures) -> None:
    value = msgspec.to_builtins(done)
    parts = [counted(value[name], *words) for name, words in WORDS.items() if value[name]]
    said = ", ".join(parts) or "nothing was due"
    failed = failures.text()
    session.give(value | {"failed": failures.values()}, f"{said}; {failed}" if failed else said)


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """Yield an event that the first SIGTERM or Ctrl-C sets; a second one ends the process at
    once."""
    stopped = threading.Event()

    def stop(*_: object) -> None:
        if stopped.is_set():
            raise SystemExit(EXIT_STOPPED)
        stopped.set()
        click.echo("\nstopping after this job", err=True)

    before = _handle(dict.fromkeys((signal.SIGTERM, signal.SIGINT), stop))
    try:
        yield stopped
    finally:
        _handle(before)


def _handle(handlers: Mapping[signal.Signals, Handler]) -> dict[signal.Signals, Handler]:
    """Set handlers; return those that were there. Only a main thread may."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    return {number: signal.signal(number, handler) for number, handler in handlers.items()}
