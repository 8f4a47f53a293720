"""Reads what workers say of themselves in their beats, and which of them are heard."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lakebed.feeds.living_workers import listen_to
from lakebed.feeds.worker import FeedReport
from lakebed.model.feeds.tallies import Tally
from lakebed.ports.clock import Clock
from lakebed.ports.leases import Leases, WorkerBeat


class HeardWorker(msgspec.Struct, frozen=True, kw_only=True):
    """A worker that has not left.

    lives: whether it beat while we listened. One that does not is dead, perhaps, or busy.
    reports: of its pipelines, as many as a beat holds; empty too where a newer release wrote them.
    """

    worker: str
    lives: bool
    reports: tuple[FeedReport, ...]


class WorkFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The combined figures of the living workers of one pipeline.

    workers: that have it, by name.
    splits: source splits that they read.
    behind: positions beyond those that were read, as far as sources say.
    waiting: bytes that are read and not committed.
    spooled: bytes that wait on disks of these workers, in spools of a policy.
    commits, tally: of these workers, since each of them began.
    failing: what one of them met last, and tries again; "": nothing.
    congested_by: what one of them does about congestion; "": there is none.
    load: how many workers it needs.
    lag_seconds: how long the oldest record waits that is not committed.
    """

    workers: tuple[str, ...] = ()
    splits: int = 0
    behind: int = 0
    waiting: int = 0
    commits: int = 0
    tally: Tally = Tally()
    failing: str = ""
    congested_by: str = ""
    load: float = 0.0
    lag_seconds: float = 0.0
    spooled: int = 0


def listen(leases: Leases, clock: Clock, seconds: float) -> list[HeardWorker]:
    """Return the workers, by name. seconds: as `listen_to`.

    Raises:
        UnavailableError: ask again.
    """
    beats, lives = listen_to(leases, clock, seconds)
    return [
        HeardWorker(worker=one.worker, lives=one.worker in lives, reports=reports_in(one))
        for one in beats
    ]


def work_on(workers: Sequence[HeardWorker], kind: str, name: str) -> WorkFigures:
    """Return what living workers do for a feed that is landed, or for a connection."""
    found = [
        (worker.worker, report)
        for worker in workers
        if worker.lives
        for report in worker.reports
        if (report.kind, report.name) == (kind, name)
    ]
    reports, tally = [report for _, report in found], Tally()
    for report in reports:
        tally = tally.plus(report.tally)
    return WorkFigures(
        workers=tuple(dict.fromkeys(worker for worker, _ in found)),
        splits=sum(report.splits for report in reports),
        behind=sum(report.behind for report in reports),
        waiting=sum(report.waiting for report in reports),
        commits=sum(report.commits for report in reports),
        tally=tally,
        failing=next((report.failing for report in reports if report.failing), ""),
        congested_by=next((report.congested_by for report in reports if report.congested_by), ""),
        load=sum(report.load for report in reports),
        lag_seconds=max((report.lag_seconds for report in reports), default=0.0),
        spooled=sum(report.spooled for report in reports),
    )


def reports_in(beat: WorkerBeat) -> tuple[FeedReport, ...]:
    """Return what a beat says; nothing, where a newer release wrote it."""
    if not beat.report:
        return ()
    try:
        return msgspec.json.decode(beat.report, type=tuple[FeedReport, ...])
    except (msgspec.MsgspecError, UnicodeDecodeError):  # of a release that says it otherwise
        return ()
