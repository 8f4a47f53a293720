"""The state of a table at one number of its log, made from a snapshot and the entries behind it."""

from __future__ import annotations

from itertools import islice

import msgspec

from lakebed.errors import InvalidError, LogTruncatedError
from lakebed.inspection.drawing import connection_line, draw_tree, size_text
from lakebed.inspection.status import (
    ConnectionStatus,
    NodeStatus,
    changed_settings,
    connection_statuses,
    nodes_of,
)
from lakebed.model.names import Micros, TableName, TransactionNumber
from lakebed.ports.transaction_log import TransactionLog
from lakebed.statestore.past_states import past_state
from lakebed.statestore.snapshots import Snapshots
from lakebed.statestore.table_state.figures import claims_by_job, file_figures, garbage_figures
from lakebed.statestore.table_state.state import TableState


class FileShown(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a file in one leaf.

    rows: about, unless exact.
    bytes: of the whole file.
    """

    partition: int
    file: str
    rows: int
    rows_exact: bool
    bytes: int


class StateShown(msgspec.Struct, frozen=True, kw_only=True):
    """A state.

    at: log time.
    digest: of all that it holds.
    jobs: with the files each has claimed.
    nodes: the partition tree, each parent before its children, in key order.
    references: the first of those that were asked for.
    connections: of feeds that fill the table.
    """

    table: str
    number: TransactionNumber
    at: Micros
    digest: str
    floor: int
    generation: int
    dropped: bool
    schema_version: int
    rows: int
    rows_exact: bool
    files: int
    bytes: int
    garbage_files: int
    garbage_bytes: int
    pins: int
    jobs: dict[str, int]
    settings: dict[str, object]
    nodes: tuple[NodeStatus, ...]
    references: tuple[FileShown, ...] = ()
    connections: tuple[ConnectionStatus, ...] = ()


def state_at(
    log: TransactionLog, snapshots: Snapshots, number: TransactionNumber | None
) -> TableState:
    """Return a state in memory. number: of the last entry that it knows; None: the newest.

    Raises:
        InvalidError: the log ends earlier, or is not kept that far back.
        CorruptError: an entry is damaged.
    """
    try:
        return past_state(log, snapshots, number)
    except LogTruncatedError as error:
        hint = f"the oldest is that of entry {max(1, error.oldest - 1)}, if a snapshot has it"
        raise InvalidError("no state that old is kept", number=number, hint=hint) from None


def show_state(state: TableState, table: TableName, *, files_max: int = 0) -> StateShown:
    """Return what a state holds. files_max: references that are listed."""
    head = state.head()
    files = file_figures(state)
    garbage = garbage_figures(state, before=head.at, now=head.at)
    return StateShown(
        table=table,
        number=head.number,
        at=head.at,
        digest=state.digest().hex(),
        floor=head.floor,
        generation=head.generation,
        dropped=head.dropped,
        schema_version=0 if head.dropped else state.schema().version,
        rows=files.rows,
        rows_exact=files.exact,
        files=files.files,
        bytes=files.size,
        garbage_files=garbage.files,
        garbage_bytes=garbage.size,
        pins=len(state.pins()),
        jobs=dict(claims_by_job(state)),
        settings=changed_settings(state.settings()),
        nodes=() if head.dropped else nodes_of(state, state.schema()),
        references=tuple(
            FileShown(
                partition=r.partition,
                file=r.file.name.hex(),
                rows=r.rows,
                rows_exact=r.exact,
                bytes=r.file.size,
            )
            for r in islice(state.all_references(), files_max)
        ),
        connections=connection_statuses(state),
    )


def draw_state(shown: StateShown, when: str) -> str:
    """Return a state as lines of text. when: its time as text."""
    about = "" if shown.rows_exact else "about "
    garbage = f"{shown.garbage_files:,} files ({size_text(shown.garbage_bytes)})"
    jobs = ", ".join(f"{job[:8]} ({files} files)" for job, files in shown.jobs.items())
    lines = [
        f"{shown.table} at entry {shown.number:,}, {when}{', dropped' if shown.dropped else ''}",
        f"  digest {shown.digest}",
        f"  floor {shown.floor:,}, generation {shown.generation}, schema {shown.schema_version}",
        f"  {about}{shown.rows:,} rows in {shown.files:,} files ({size_text(shown.bytes)})",
        f"  garbage {garbage}, {shown.pins} pins, jobs {jobs or 'none'}",
        *(f"  {connection_line(connection)}" for connection in shown.connections),
        "",
        *draw_tree(shown.nodes),
    ]
    if shown.references:
        lines.append("")
    for one in shown.references:
        rows = f"{'' if one.rows_exact else 'about '}{one.rows:,} rows"
        lines.append(f"leaf {one.partition:<6} {one.file}  {rows:>16}  {size_text(one.bytes):>8}")
    return "\n".join(lines)
