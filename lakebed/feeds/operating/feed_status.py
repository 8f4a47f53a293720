"""Reports how feeds do: what is wanted of them, what their tables say, and what workers say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from lakebed.errors import LakebedError
from lakebed.feeds.known_definitions import KnownDefinitions
from lakebed.feeds.lifecycle import FeedStanding, standing_of
from lakebed.feeds.operating.position_admin import newest_state
from lakebed.feeds.operating.worker_reports import HeardWorker, WorkFigures, work_on
from lakebed.feeds.pacing.elasticity import needed_workers
from lakebed.landing.push.waiting_segments import WaitingSegments
from lakebed.model.feeds.definitions import DefinitionKind, FeedFailure
from lakebed.model.feeds.replays import replay_of
from lakebed.model.feeds.tallies import Tally
from lakebed.model.names import ConnectionId, Micros
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.feed_records import connection_of, ledger_of, positions_of
from lakebed.statestore.table_state.window_records import watermark_of


class Pipe(msgspec.Struct, frozen=True, kw_only=True):
    """A connection, or the landing of a feed, which has the feed's name.

    id: as its table knows it.
    find: gives its table.
    """

    kind: DefinitionKind
    name: str
    version: int
    id: ConnectionId
    table: str
    failed: FeedFailure | None
    find: Callable[[], OpenTable]


class TableFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures that a table holds of a connection.

    version: of the definition that filled it last; 0: none has.
    splits: source splits that were taken from.
    tally: of all records: what became of one when it was replayed last.
    watermark: event time, microseconds since 1970; None: not known.
    missing: why the table cannot be asked; "": it can.
    """

    version: int = 0
    splits: int = 0
    tally: Tally = Tally()
    watermark: Micros | None = None
    missing: str = ""


class PipeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a connection, or of the landing of a feed.

    version: of its definition.
    failed: why it does not go on; "": it has not failed.
    taken: what its table says.
    work: what workers that live say.
    """

    kind: DefinitionKind
    name: str
    table: str
    version: int
    failed: str
    taken: TableFigures
    work: WorkFigures


class FeedStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a feed.

    version: of the newest of its definitions.
    pushed: what waits to be landed of what was pushed into it; None: nothing is pushed into it, or
        the store does not say.
    """

    standing: FeedStanding
    version: int
    pipes: tuple[PipeStatus, ...]
    pushed: WaitingSegments | None = None


class FeedsStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of feeds, and the workers that work on them.

    workers: all of the lake's that have not left.
    wanted_workers: how many there should be; 0: no feed that they run is elastic.
    """

    feeds: tuple[FeedStatus, ...]
    workers: tuple[HeardWorker, ...]
    wanted_workers: int = 0


def feeds_status(
    known: KnownDefinitions,
    pipes: Mapping[str, Sequence[Pipe]],
    workers: Sequence[HeardWorker],
    pushed: Mapping[str, WaitingSegments],
) -> FeedsStatus:
    """Return how feeds do, by name. A table that cannot be asked hides nothing of the others.

    pipes: of each feed that is asked for.
    pushed: what waits of what was pushed into a feed.
    """
    return FeedsStatus(
        feeds=tuple(
            FeedStatus(
                standing=standing_of(known, name),
                version=known.feed(name).version,
                pipes=tuple(_status(pipe, workers) for pipe in of_feed),
                pushed=pushed.get(name),
            )
            for name, of_feed in sorted(pipes.items())
        ),
        workers=tuple(workers),
        wanted_workers=needed_workers(
            report for worker in workers if worker.lives for report in worker.reports
        ),
    )


def replayed(tally: Tally) -> Tally:
    """Return what a replay adds to what is known of its records: they were read and quarantined
    before."""
    quarantined = tally.quarantined - tally.read
    return msgspec.structs.replace(tally, read=0, quarantined=quarantined, bytes=0)


def _status(pipe: Pipe, workers: Sequence[HeardWorker]) -> PipeStatus:
    failed = pipe.failed
    return PipeStatus(
        kind=pipe.kind,
        name=pipe.name,
        table=pipe.table,
        version=pipe.version,
        failed="" if failed is None else f"{failed.code}: {failed.reason}",
        taken=_table_figures(pipe),
        work=work_on(workers, pipe.kind, pipe.name),
    )


def _table_figures(pipe: Pipe) -> TableFigures:
    try:
        with newest_state(pipe.find()) as state:
            known = connection_of(state, pipe.id)
            if known is None:
                return TableFigures()
            tally = Tally()
            for split, _, of_hour in ledger_of(state, known):
                tally = tally.plus(of_hour if replay_of(split) is None else replayed(of_hour))
            return TableFigures(
                version=known.version,
                splits=sum(replay_of(name) is None for name, *_ in positions_of(state, known.id)),
                tally=tally,
                watermark=watermark_of(state, known).time,
            )
    except LakebedError as error:
        return TableFigures(missing=error.code())
