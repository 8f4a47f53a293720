"""Reports what a table looks like now: one version of its state, its jobs and its queue, as
figures."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

import msgspec

from lakebed.config.settings import TableSettings
from lakebed.model.feeds.tallies import Tally
from lakebed.model.keys import key_value_text, prefix_values
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.model.partitions import Partition, PartitionTree
from lakebed.model.ranges import KeyRange
from lakebed.model.schema import Schema
from lakebed.ports.job_tracker import JobTracker
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.snapshots import Snapshots
from lakebed.statestore.table_state.feed_records import (
    Connection,
    errors_in_rows,
    gaps_of,
    ledger_of,
    living_connections,
    positions_of,
)
from lakebed.statestore.table_state.figures import (
    FileFigures,
    GarbageFigures,
    claims_by_job,
    file_figures,
    garbage_figures,
    inexact_leaves,
    leaf_bytes,
)
from lakebed.statestore.table_state.kept_versions import Holder, holders, horizon_of
from lakebed.statestore.table_state.state import CompactionJob, LeafFigures, TableState
from lakebed.statestore.table_state.window_records import open_windows, watermark_of


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A partition.

    min, max: of the field by which its parent is split, as text; None: unbounded.
    left, right: its children; None in a leaf.
    rows, files, claimed, bytes: of a leaf, 0 in others; of a file that leaves share, each has as
        many bytes as its part of the rows.
    unsplittable: it had too many rows and no split point.
    """

    id: int
    field: str
    min: str | None = None
    max: str | None = None
    left: int | None = None
    right: int | None = None
    rows: int = 0
    rows_exact: bool = True
    files: int = 0
    claimed: int = 0
    bytes: int = 0
    unsplittable: bool = False


class JobStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A compaction job that holds a claim.

    report: the newest thing that was heard of it.
    """

    id: str
    partition: int
    files: int
    age_seconds: float
    report: str | None = None
    report_age_seconds: float | None = None
    reason: str = ""


class ConnectionStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a connection, which leads a feed into the table.

    version: of its definition.
    source_splits: whose positions the table keeps.
    read, stored, quarantined: records, since it began. What was read and not stored was filtered,
        quarantined, known already, or left out by its policy.
    gaps: parts of its source that were no longer there, the newest thousand.
    watermark: event time up to which all records were taken, microseconds since 1970; None: it is
        not known.
    windows_open: windows with rows that are not sealed.
    errors_in_row: the most that any of its source splits ends with.
    """

    id: str
    version: int
    source_splits: int
    read: int
    stored: int
    quarantined: int
    gaps: int
    watermark: int | None = None
    windows_open: int = 0
    errors_in_row: int = 0


class TableStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A table at one log entry.

    rows: exact if `rows_exact`, else about.
    nodes: the partition tree, each parent before its children, in key order; the first is the root.
    connections: of feeds that fill it.
    holders: tags, pins and followers that keep versions, with what each costs.
    horizon: versions from it on are whole, older ones where a tag is; None: not known yet.
    snapshots: their log numbers, newest first.
    queued, dead_letters: messages of all queues of the lake.
    dead_letters_of: of each queue that has any.
    settings: those that differ from the defaults.
    online: whether scheduled work is done on it.
    """

    name: str
    id: str
    number: int
    floor: int
    generation: int
    rows: int
    rows_exact: bool
    files: int
    bytes: int
    leaves: int
    nodes: tuple[NodeStatus, ...]
    jobs: tuple[JobStatus, ...]
    garbage_files: int
    garbage_bytes: int
    garbage_due: int
    pins: int
    snapshots: tuple[int, ...]
    settings: Mapping[str, object]
    queued: int | None = None
    dead_letters: int | None = None
    dead_letters_of: Mapping[str, int] = {}
    online: bool = True
    connections: tuple[ConnectionStatus, ...] = ()
    holders: tuple[Holder, ...] = ()
    horizon: int | None = None


def table_status(
    table: OpenTable,
    *,
    tracker: JobTracker,
    snapshots: Snapshots | None = None,
    loads: Mapping[str, tuple[int, int]] | None = None,
    online: bool = True,
) -> TableStatus:
    """Return what a table looks like in its newest version. Changes nothing.

    loads: messages and dead letters of each queue.
    online: as the registry says.

    Raises:
        TableMissingError: it was dropped. UnavailableError: a store is busy; ask again.
    """
    now = table.head.log_time()
    with table.head.reading() as state:
        head, settings = state.head(), state.settings()
        files = file_figures(state)
        before = Micros(now - settings.garbage_seconds_min * MICROS_PER_SECOND)
        garbage = garbage_figures(state, before=before, now=now)
        nodes = nodes_of(state, state.schema())
        jobs, claims, pins = state.jobs(), dict(claims_by_job(state)), len(state.pins())
        fed, kept = connection_statuses(state), holders(state, before=before, now=now)
        horizon = horizon_of(state)
    return TableStatus(
        name=table.name,
        id=table.id,
        number=head.number,
        floor=head.floor,
        generation=head.generation,
        leaves=sum(node.left is None for node in nodes),
        nodes=nodes,
        jobs=tuple(_job(table, tracker, job, claims.get(job.id, 0), now) for job in jobs),
        pins=pins,
        holders=kept,
        horizon=horizon,
        snapshots=tuple(number for number, _ in snapshots.newest_first()) if snapshots else (),
        settings=changed_settings(settings),
        online=online,
        connections=fed,
        **_sums(files, garbage),
        **_messages(loads),
    )


def connection_statuses(state: TableState) -> tuple[ConnectionStatus, ...]:
    """Return what a state says of the feeds that fill its table, by their ids."""
    return tuple(_connection(state, connection) for connection in living_connections(state))


def _connection(state: TableState, connection: Connection) -> ConnectionStatus:
    ledger = (tally for *_, tally in ledger_of(state, connection))
    sums = reduce(Tally.plus, ledger, Tally())
    return ConnectionStatus(
        id=connection.id,
        version=connection.version,
        source_splits=sum(1 for _ in positions_of(state, connection.id)),
        read=sums.read,
        stored=sums.stored,
        quarantined=sums.quarantined,
        gaps=len(gaps_of(state, connection)),
        watermark=watermark_of(state, connection).time,
        windows_open=open_windows(state, connection),
        errors_in_row=max(errors_in_rows(state, connection).values(), default=0),
    )


def _messages(loads: Mapping[str, tuple[int, int]] | None) -> dict[str, Any]:
    if loads is None:
        return {}
    return {
        "queued": sum(waiting for waiting, _ in loads.values()),
        "dead_letters": sum(dead for _, dead in loads.values()),
        "dead_letters_of": {name: dead for name, (_, dead) in loads.items() if dead},
    }


def _sums(files: FileFigures, garbage: GarbageFigures) -> dict[str, Any]:
    return {
        "rows": files.rows,
        "rows_exact": files.exact,
        "files": files.files,
        "bytes": files.size,
        "garbage_files": garbage.files,
        "garbage_bytes": garbage.size,
        "garbage_due": garbage.due,
    }


def nodes_of(state: TableState, schema: Schema) -> tuple[NodeStatus, ...]:
    """Return the partition tree, each parent before its children, in key order."""
    if not state.head().root:
        return ()
    tree = state.tree()
    figures = {figure.partition: figure for figure in state.leaf_figures()}
    inexact, sizes = inexact_leaves(state), leaf_bytes(state)
    nodes = []
    stack = [tree.root]
    while stack:
        node = tree.nodes[stack.pop()]
        figure = figures.get(node.id)
        exact, size = node.id not in inexact, sizes.get(node.id, 0)
        nodes.append(_node(tree, schema, node, figure, exact=exact, size=size))
        if node.left is not None and node.right is not None:
            stack += [node.right, node.left]
    return tuple(nodes)


def _node(
    tree: PartitionTree,
    schema: Schema,
    node: Partition,
    figure: LeafFigures | None,
    *,
    exact: bool,
    size: int,
) -> NodeStatus:
    key_range: KeyRange = tree.key_range(node.id)
    ends = [end for end in (key_range.min, key_range.max) if end]
    depth = max((len(prefix_values(schema.row_keys, end)) for end in ends), default=1)

    def text(end: bytes | None) -> str | None:
        if not end:
            return None
        values = prefix_values(schema.row_keys, end)
        return ",".join(map(key_value_text, schema.row_keys, values))

    found = figure or LeafFigures(node.id, 0, 0, 0, 0, 0)
    return NodeStatus(
        id=node.id,
        field=",".join(field.name for field in schema.row_keys[:depth]),
        min=text(key_range.min),
        max=text(key_range.max),
        left=node.left,
        right=node.right,
        rows=found.rows,
        rows_exact=exact,
        files=found.files,
        claimed=found.claimed,
        bytes=size,
        unsplittable=found.rows_unsplittable > 0,
    )


def _job(
    table: OpenTable, tracker: JobTracker, job: CompactionJob, files: int, now: Micros
) -> JobStatus:
    last = tracker.last(table.id, job.id)
    return JobStatus(
        id=job.id,
        partition=job.partition,
        files=files,
        age_seconds=_seconds(now - job.at),
        report=last.event if last else None,
        report_age_seconds=_seconds(now - last.at) if last else None,
        reason=last.reason if last else "",
    )


def changed_settings(settings: TableSettings) -> dict[str, object]:
    """Return those that differ from the defaults."""
    defaults = msgspec.structs.asdict(TableSettings())
    return {k: v for k, v in msgspec.structs.asdict(settings).items() if v != defaults[k]}


def _seconds(micros: int) -> float:
    return max(0, micros) / MICROS_PER_SECOND
