"""One step of a feed: read records behind the committed position, stage them, commit both together.

Safe to kill anywhere, and to run several times at once: a step begins at the position that the
table's log holds, and is refused if another one was faster (protocol R1, R2).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Generic, TypeVar

import msgspec

from lakebed.errors import FencedError, GenerationError, UnknownOutcomeError
from lakebed.feed_errors import DefinitionMovedError, OwnerFencedError, PositionMovedError
from lakebed.ingest.stage_rows import StagedRows, StageRows, Writer
from lakebed.model.feeds.positions import Position, decode_position, encode_position, position_name
from lakebed.model.feeds.tallies import Tally
from lakebed.model.names import CommitId, ConnectionId, JobId, TransactionNumber, digest_of
from lakebed.observe import events
from lakebed.ports.record_source import Records, RecordSource, SourceSplit
from lakebed.statestore.log_entries.feed_changes import Count, Define
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.log_entries.transactions import Change, PositionChange, Transaction
from lakebed.statestore.open_table import OpenTable, Start, start_of
from lakebed.statestore.table_state.feed_records import connection_of

BatchT = TypeVar("BatchT")

TRIES_MAX = 5
"""Of a step that is refused because others committed meanwhile."""
SENT_MAX = 3
"""How often a commit without an answer is sent; each time it is tried for a minute."""

AGAIN = (PositionMovedError, GenerationError, FencedError)
"""What refuses one batch, and not the next."""


class FeedConnection(msgspec.Struct, frozen=True):
    """What leads a feed into a table.

    version: of its definition.
    """

    id: ConnectionId
    version: int


class RecordsTaken(msgspec.Struct, frozen=True):
    """What became of the records of a step.

    number: of the log entry.
    end: the position behind them.
    """

    number: TransactionNumber
    end: int
    tally: Tally


class _Known(msgspec.Struct, frozen=True):
    """What the table says before a step."""

    start: Start
    position: bytes | None
    owner: int
    is_defined: bool


class FeedRecords(Generic[BatchT]):
    """Takes records of a source into a table.

    rows_of: makes rows of a source split's records.
    """

    def __init__(
        self, *, stage: StageRows[BatchT], rows_of: Callable[[str, BatchT], BatchT]
    ) -> None:
        self._stage = stage
        self._rows_of = rows_of

    def step(
        self,
        table: OpenTable,
        connection: FeedConnection,
        source: RecordSource[BatchT],
        split: SourceSplit,
        *,
        bytes_max: int,
    ) -> RecordsTaken | None:
        """Take the next records of a source split. None: there are none now.

        Raises:
            InvalidError: the source, or what it gives, can never work as it is.
            OwnerFencedError: another worker has taken the source split over.
            DefinitionMovedError: the table knows a newer definition.
            TableBusyError: compaction must catch up first.
            UnavailableError, ConflictError, UnknownOutcomeError: begin again: what was committed is
                found.
        """
        for tries in range(1, TRIES_MAX + 1):
            try:
                return self._try(table, connection, source, split, bytes_max)
            except OwnerFencedError:
                raise
            except AGAIN:  # the batch is forgotten whole: records are read and staged anew
                if tries == TRIES_MAX:
                    raise
        raise AssertionError("the last try returns or raises")

    def _try(
        self,
        table: OpenTable,
        connection: FeedConnection,
        source: RecordSource[BatchT],
        split: SourceSplit,
        bytes_max: int,
    ) -> RecordsTaken | None:
        name = position_name(connection.id, split.name)
        known = self._known(table, connection, name)
        if known.position is None:
            before = Position(0, source.start(split))
        else:
            before = decode_position(known.position)
        assert isinstance(before.next, int), "sources count their records"
        with closing(source.open(split, before.next, resume=before.resume)) as reader:
            records = reader.read(bytes_max=bytes_max)
        if records is None:
            return None
        id_ = table.fresh_id()
        writer = Writer(known.start.base, JobId(id_), table.fresh_run())
        rows = self._rows_of(split.name, records.batch)
        staged = self._stage.run(table, table.schema, [rows], writer=writer)
        tally = _tally_of(staged, records)
        after = encode_position(Position(before.revision + 1, records.end, resume=records.resume))
        changes: list[Change] = []
        if not known.is_defined:
            changes.append(Define(connection.id, connection.version))
        if staged.references:
            changes.append(AddFiles(staged.references))
        changes.append(Count(connection.id, connection.version, split.name, tally))
        transaction = Transaction(
            CommitId(id_),
            digest_of(id_.encode()),
            known.start.base,
            known.start.generation,
            tuple(changes),
            (PositionChange(name, known.position, after, known.owner),),
        )
        number = _committed(table, transaction)
        events.emit(
            events.FEED_PROGRESSED,
            table=table.name,
            connection=connection.id,
            read_count=tally.read,
            stored_count=tally.stored,
            bytes_count=tally.bytes,
        )
        return RecordsTaken(number, records.end, tally)

    def _known(self, table: OpenTable, connection: FeedConnection, name: str) -> _Known:
        table.head.follow()
        with table.head.reading() as state:
            position, owner = state.position(name) or (None, 0)
            known = connection_of(state, connection.id)
            start = start_of(state)
        version = 0 if known is None else known.version
        if version > connection.version:
            raise DefinitionMovedError(
                "the table knows a newer definition of this feed",
                version=connection.version,
                newest=version,
                hint="run the feed as its newest definition says",
            )
        return _Known(start, position, owner, version == connection.version)


def _tally_of(staged: StagedRows, records: Records[BatchT]) -> Tally:
    return Tally(
        read=staged.read,
        stored=staged.kept,
        filtered=staged.read - staged.kept,
        bytes=records.size,
    )


def _committed(table: OpenTable, transaction: Transaction) -> TransactionNumber:
    """Commit, and send the very same transaction again while it is not known whether it landed."""
    for sent in range(1, SENT_MAX + 1):
        try:
            return table.head.commit(transaction)
        except UnknownOutcomeError:
            if sent == SENT_MAX:
                raise
    raise AssertionError("the last try returns or raises")
